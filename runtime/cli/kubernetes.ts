import { readFile } from 'node:fs/promises';
import { parseRunFile, parseRunText } from '../config/index.js';
import { messageOf, StudioError } from '../domain/index.js';
import { printableJson } from '../foreign/terminalText.js';
import { buildRuntimeImage, clusterManifests } from '../service/kubernetes.js';
import { asCalled } from './called.js';
import { buildProgress } from './buildProgress.js';
import { onInterrupt } from './interrupt.js';
import { countOption, textOption, type Options } from './options.js';
import { print } from './output.js';

/** `kubernetes manifests`: what a cluster needs, as YAML on standard output. */
export async function printManifests(o: Options): Promise<number> {
  const file = o['run'],
    count = countOption(o, 'desktops'),
    namespace = typeof o['namespace'] === 'string' ? o['namespace'] : undefined;
  const over = {
    desktops: {
      provider: 'kubernetes' as const,
      ...(count === undefined ? {} : { count }),
      ...(namespace === undefined ? {} : { kubernetes: { namespace } }),
    },
  };
  const config = typeof file === 'string' ? parseRunText(await textOf(file), file, over) : parseRunFile({}, over);
  if (o['job'] !== undefined && config.desktops.imageExtra)
    throw new StudioError(
      'config.invalid',
      'desktops.imageExtra names a folder of this machine, which the Job in the cluster has not.',
      'Push the image with its layer (`desktop build --image NAME --image-extra DIR --push REF`), set desktops.kubernetes.image to REF and leave desktops.imageExtra out.',
    );
  const jobImage = typeof o['job'] === 'string' ? o['job'] : undefined;
  // Its strings are JSON's.
  print(printableJson(clusterManifests({ config, runFile: config, jobImage })));
  return 0;
}

/** `kubernetes image`: what `manifests --job` starts. */
export async function buildImage(o: Options): Promise<number> {
  const stop = onInterrupt('Stopping: what was not finished is deleted.'),
    p = buildProgress(),
    file = textOption(o, 'export');
  try {
    const image = await buildRuntimeImage({
      base: textOption(o, 'base'),
      push: textOption(o, 'push'),
      file,
      onProgress: p.on,
      signal: stop.signal,
    });
    p.end();
    if (file !== undefined) print(`It is in ${file}. On every node: ctr -n k8s.io images import ${file}\n`);
    print(asCalled(`${image} is ready: dart-studio kubernetes manifests --run RUN.json --job ${image}\n`));
  } finally {
    p.end();
    stop.off();
  }
  return 0;
}

const textOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((e: unknown) => {
    throw new StudioError('config.invalid', `${file} cannot be read: ${messageOf(e)}`, 'Give an existing run file.');
  });
