import { constants } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { DEFAULT_IMAGE, IMAGE_NAME, StudioError } from '../domain/index.js';
import { buildDesktop, desktopStatus, exportDesktop, photographDesktop, referenceOf } from '../service/desktopImage.js';
import { asCalled } from './called.js';
import { buildProgress } from './buildProgress.js';
import { onInterrupt } from './interrupt.js';
import { allowMachine, type Options } from './options.js';
import { print, printJson } from './output.js';

/** The image that --image and --image-extra name. */
export const imageOf = (o: Options): string =>
  referenceOf({
    name: nameOf(String(o['image'] ?? DEFAULT_IMAGE)),
    extra: typeof o['imageExtra'] === 'string' && o['imageExtra'] !== '' ? resolve(o['imageExtra']) : undefined,
  });

function nameOf(image: string): string {
  if (IMAGE_NAME.test(image)) return image;
  throw new StudioError(
    'config.invalid',
    `--image ${image}: not the name of an image`,
    'List the images with `dart-studio desktop status`.',
  );
}

/** `desktop build`: the image in the Docker engine, or the root file system of the local provider. */
export async function build(o: Options): Promise<number> {
  const stop = onInterrupt('Stopping: what was not finished is deleted.'),
    p = buildProgress();
  try {
    const { what } = await buildDesktop({
      provider: String(o['provider'] ?? 'auto'),
      image: imageOf(o),
      force: o['force'] === true,
      push: typeof o['push'] === 'string' ? o['push'] : undefined,
      onProgress: p.on,
      signal: stop.signal,
    });
    p.end();
    print(`${what} is ready.\n`);
  } finally {
    p.end();
    stop.off();
  }
  return 0;
}

/** `desktop export FILE.tar`: the image as a file that a node's container runtime can load. */
export async function exportFile(file: string, o: Options): Promise<number> {
  const stop = onInterrupt('Stopping: what was not finished is deleted.'),
    p = buildProgress();
  try {
    const tag = await exportDesktop({ image: imageOf(o), file, onProgress: p.on, signal: stop.signal });
    p.end();
    print(`${tag} is in ${file}. On every node: ctr -n k8s.io images import ${file}\n`);
  } finally {
    p.end();
    stop.off();
  }
  return 0;
}

/** `desktop status`: what each provider says of itself, and what is built. */
export async function status(o: Options): Promise<number> {
  const { providers, built, images } = await desktopStatus(imageOf(o));
  if (o['json']) {
    printJson({ providers, built, images });
    return 0;
  }
  for (const r of providers)
    print(
      `${r.ok ? '✓' : '✗'} ${r.provider.padEnd(6)} ${r.ok ? r.detail : `${r.problem?.message ?? r.detail}\n         ${asCalled(r.problem?.remedy ?? '')}`}\n`,
    );
  print(
    `image            ${built.image ? `${built.tag}, ${Math.round(built.image.bytes / 1e6)} MB` : 'not built'}\nroot file system ${built.rootfs ? built.rootfs.path : 'not built'}\n`,
  );
  for (const i of images) print(`desktops.image: ${i.name.padEnd(10)} ${i.title}. ${i.description}\n`);
  return 0;
}

/** `desktop screenshot FILE`: a desktop, with a task set up on it when one is named. */
export async function screenshot(file: string, o: Options): Promise<number> {
  allowMachine(o);
  // Before a desktop starts.
  await access(dirname(resolve(file)), constants.W_OK);
  const stop = onInterrupt('Stopping: the desktop is being removed.');
  const { png, instruction } = await photographDesktop({
    provider: String(o['provider'] ?? 'auto') as 'auto',
    image: imageOf(o),
    task: typeof o['task'] === 'string' ? o['task'] : undefined,
    signal: stop.signal,
  }).finally(() => stop.off());
  if (instruction !== undefined) print(`${instruction}\n`);
  await writeFile(file, png);
  return 0;
}
