import { readFile } from 'node:fs/promises';
import { parseRunFile, parseRunText } from '../config/index.js';
import { messageOf, StudioError } from '../domain/index.js';
import { clusterManifests } from '../service/kubernetes.js';
import { numberOption, type Options } from './options.js';

/** `kubernetes manifests`: what a cluster needs, as YAML on standard output. */
export async function printManifests(o: Options): Promise<number> {
  const file = o['run'],
    count = numberOption(o, 'desktops'),
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
  process.stdout.write(clusterManifests({ config, runFile: config, jobImage }));
  return 0;
}

const textOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((e: unknown) => {
    throw new StudioError('config.invalid', `${file} cannot be read: ${messageOf(e)}`, 'Give an existing run file.');
  });
