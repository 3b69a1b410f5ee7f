import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { DesktopSpec } from './types.js';
import { DEFAULT_IMAGE, IMAGE_NAME, StudioError, type ImageContents, messageOf } from '../domain/index.js';
import { shippedFolder } from '../files/shippedFolder.js';
import { partsOf, readExtra } from './imageExtra.js';
import { Manifest, parsePackages, type ExtraManifest } from './imageManifest.js';

/**
 * Desktop images by name. Each is a folder of images/: image.json (its description, applications and programs),
 * packages.txt (Debian packages) and, where needed, setup.sh and overlay/. An image may extend another and then has
 * only what it adds; runtime/cluster/README.md#image says how the parts are combined.
 */
export interface DesktopImage {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Folders of the image: that of the image it extends first, its own last; then `extra`. */
  readonly layers: readonly string[];
  /** The layer of the user's own, where it has one. */
  readonly extra?: { readonly dir: string; readonly debs: readonly string[] } | undefined;
  /** Debian packages of all layers, sorted, each once. */
  readonly packages: readonly string[];
  readonly contents: ImageContents;
  /** See the manifest. */
  readonly keepsBrowser: boolean;
  /** The least that its applications need. */
  readonly floor: Manifest['floor'];
}

interface Layer {
  readonly dir: string;
  readonly manifest: Manifest;
  readonly packages: readonly string[];
}

/** The folder of images. */
export const imagesDir = (): string =>
  shippedFolder(
    { from: import.meta.url, name: 'images', holds: join(DEFAULT_IMAGE, 'image.json'), inSources: 'images' },
    'desktop.image',
    'The recipes of desktop images',
  );

/** Names of all images, sorted. */
export async function imageNames(root = imagesDir()): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true });
  return entries
    .filter((e) => e.isDirectory() && IMAGE_NAME.test(e.name) && existsSync(join(root, e.name, 'image.json')))
    .map((e) => e.name)
    .sort();
}

/**
 * The image of this name, or of this reference (imageExtra.ts). Rejects with `config.invalid` when there is none, and
 * with `desktop.image` when its folder is broken.
 */
export async function readImage(reference: string, root = imagesDir()): Promise<DesktopImage> {
  const { name, extra: dir } = partsOf(reference),
    named = await readLayers(name, root),
    own = named.at(-1)!.manifest,
    extra = dir === undefined ? undefined : await readExtra(dir),
    layers = [...named, ...(extra ? [extra] : [])],
    packages = [...new Set(layers.flatMap((l) => l.packages))].sort();
  const merged = (
    of: readonly { readonly manifest: ExtraManifest }[],
    key: 'apps' | 'programs',
  ): Record<string, string> => Object.assign({}, ...of.map((l) => l.manifest[key])) as Record<string, string>;
  for (const [what, pkg] of [...Object.entries(merged(named, 'apps')), ...Object.entries(merged(named, 'programs'))])
    if (!packages.includes(pkg))
      throw broken(name, `${what} comes from the package ${pkg}, which packages.txt does not list.`);
  return {
    name,
    title: own.title,
    description: own.description,
    layers: layers.map((l) => l.dir),
    ...(extra ? { extra: { dir: extra.dir, debs: extra.debs } } : {}),
    packages,
    keepsBrowser: named.some((l) => l.manifest.keepsBrowser),
    floor: higher(own.floor, extra?.manifest.floor ?? {}),
    contents: {
      apps: Object.keys(merged(layers, 'apps')),
      programs: Object.keys(merged(layers, 'programs')),
      shortcuts: [...new Set(layers.flatMap((l) => l.manifest.shortcuts))],
      packages,
    },
  };
}

function higher(a: Manifest['floor'], b: Manifest['floor']): Manifest['floor'] {
  const most = (key: keyof Manifest['floor']): number => Math.max(a[key] ?? 0, b[key] ?? 0);
  return {
    diskMb: most('diskMb') || undefined,
    memoryMb: most('memoryMb') || undefined,
    pids: most('pids') || undefined,
  };
}

/** A desktop as large as its image's applications need. */
export async function roomFor(image: string, spec: DesktopSpec): Promise<DesktopSpec> {
  const { floor } = await readImage(image);
  return {
    ...spec,
    memoryMb: Math.max(spec.memoryMb, floor.memoryMb ?? 0),
    pids: Math.max(spec.pids, floor.pids ?? 0),
    diskMb: floor.diskMb,
  };
}

/** The applications and programs of the image of this name or reference. */
export const imageContents = async (reference: string): Promise<ImageContents> => (await readImage(reference)).contents;

/** A file of an image, from the last of its layers that has it; a layer of the user's own has none of these. */
export async function imageAsset(reference: string, path: string): Promise<string> {
  const { name } = partsOf(reference),
    { layers } = await readImage(name),
    found = layers.map((dir) => join(dir, path)).findLast((file) => existsSync(file));
  if (!found) throw broken(name, `${path} is missing.`);
  return found;
}

/** The folders of an image, the one that extends nothing first. */
async function readLayers(name: string, root: string): Promise<Layer[]> {
  const layers: Layer[] = [],
    seen: string[] = [];
  for (let next: string | undefined = name; next !== undefined; next = layers[0]!.manifest.extends) {
    if (seen.includes(next)) throw broken(name, `It extends itself: ${[...seen, next].join(' -> ')}.`);
    seen.push(next);
    const names = await imageNames(root);
    if (!names.includes(next))
      throw next === name ? unknown(name, names) : broken(name, `It extends ${next}, which is not an image.`);
    layers.unshift(await readLayer(next, root));
  }
  return layers;
}

async function readLayer(name: string, root: string): Promise<Layer> {
  const dir = join(root, name);
  const text = async (file: string): Promise<string> => {
    try {
      return await readFile(join(dir, file), 'utf8');
    } catch (cause) {
      throw broken(name, `${file} cannot be read: ${messageOf(cause)}.`, cause);
    }
  };
  let json: unknown;
  try {
    json = JSON.parse(await text('image.json'));
  } catch (cause) {
    if (cause instanceof StudioError) throw cause;
    throw broken(name, `image.json is not JSON: ${messageOf(cause)}.`, cause);
  }
  const parsed = Manifest.safeParse(json);
  if (!parsed.success) throw broken(name, `image.json: ${z.prettifyError(parsed.error)}`, parsed.error);
  return { dir, manifest: parsed.data, packages: parsePackages(await text('packages.txt')) };
}

const unknown = (name: string, names: readonly string[]): StudioError =>
  new StudioError(
    'config.invalid',
    `desktops.image: there is no desktop image "${name}"; there are: ${names.join(', ')}.`,
    'Choose one of these. A new image is a folder of runtime/cluster/images.',
  );

const broken = (name: string, what: string, cause?: unknown): StudioError =>
  new StudioError(
    'desktop.image',
    `The recipe of the desktop image "${name}" is broken. ${what}`,
    `Correct the folder images/${name}, or build again with \`npm run build\` if you did not change it.`,
    cause === undefined ? {} : { cause },
  );
