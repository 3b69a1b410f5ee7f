import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { DesktopSpec } from './types.js';
import { DEFAULT_IMAGE, IMAGE_NAME, StudioError, type ImageContents, messageOf } from '../domain/index.js';

/**
 * Desktop images by name. Each is a folder of images/: image.json (its description, applications and programs),
 * packages.txt (Debian packages) and, where needed, setup.sh and overlay/. An image may extend another and then has
 * only what it adds; runtime/cluster/README.md#image says how the parts are combined.
 */
export interface DesktopImage {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Its folders: that of the image it extends first, its own last. */
  readonly layers: readonly string[];
  /** Debian packages of all layers, sorted, each once. */
  readonly packages: readonly string[];
  readonly contents: ImageContents;
  /** See the manifest. */
  readonly keepsBrowser: boolean;
  /** What its applications need at least. */
  readonly floor: Manifest['floor'];
}

const provided = z.record(z.string().min(1), z.string().min(1)).default({});
const Manifest = z.strictObject({
  $schema: z.string().optional(),
  title: z.string().min(1),
  description: z.string().min(1),
  /** The image it adds to. */
  extends: z.string().regex(IMAGE_NAME).optional(),
  /** Applications by the name that task files use, each with the package of packages.txt that provides it. */
  apps: provided,
  /** Programs that task files call, each with its package. */
  programs: provided,
  shortcuts: z.array(z.string().min(1)).default([]),
  /** A browser on its whole screen is open all the time, also from one lease to the next (providers/keepBrowser.ts). */
  keepsBrowser: z.boolean().default(false),
  /** What its applications need at least, whatever a run file says: memory and folders in MB, processes. */
  floor: z
    .strictObject({ diskMb: z.number().int(), memoryMb: z.number().int(), pids: z.number().int() })
    .partial()
    .default({}),
});
type Manifest = z.infer<typeof Manifest>;

interface Layer {
  readonly dir: string;
  readonly manifest: Manifest;
  readonly packages: readonly string[];
}

/** The folder of images: beside the bundle (dist/images, from dist/runtime.js or dist/bench/x.mjs) or in the source tree. */
export function imagesDir(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const found = [join(here, 'images'), join(here, '..', 'images')].find((d) =>
    existsSync(join(d, DEFAULT_IMAGE, 'image.json')),
  );
  if (found) return found;
  throw new StudioError(
    'desktop.image',
    `The recipes of desktop images (images/${DEFAULT_IMAGE}) are not beside ${here}.`,
    'Build again with `npm run build`; the installation is incomplete.',
  );
}

/** Names of all images, sorted. */
export async function imageNames(root = imagesDir()): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true });
  return entries
    .filter((e) => e.isDirectory() && IMAGE_NAME.test(e.name) && existsSync(join(root, e.name, 'image.json')))
    .map((e) => e.name)
    .sort();
}

/**
 * The image of this name. Rejects with `config.invalid` when there is none, and with `desktop.image` when its folder is
 * broken.
 */
export async function readImage(name: string, root = imagesDir()): Promise<DesktopImage> {
  const layers = await readLayers(name, root),
    own = layers.at(-1)!.manifest,
    packages = [...new Set(layers.flatMap((l) => l.packages))].sort();
  const merged = (key: 'apps' | 'programs'): Record<string, string> =>
    Object.assign({}, ...layers.map((l) => l.manifest[key])) as Record<string, string>;
  const apps = merged('apps'),
    programs = merged('programs');
  for (const [what, pkg] of [...Object.entries(apps), ...Object.entries(programs)])
    if (!packages.includes(pkg))
      throw broken(name, `${what} comes from the package ${pkg}, which packages.txt does not list.`);
  return {
    name,
    title: own.title,
    description: own.description,
    layers: layers.map((l) => l.dir),
    packages,
    keepsBrowser: layers.some((l) => l.manifest.keepsBrowser),
    floor: own.floor,
    contents: {
      apps: Object.keys(apps),
      programs: Object.keys(programs),
      shortcuts: [...new Set(layers.flatMap((l) => l.manifest.shortcuts))],
    },
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

/** The applications and programs of the image of this name. */
export const imageContents = async (name: string): Promise<ImageContents> => (await readImage(name)).contents;

/** A file of an image, from the last of its layers that has it. */
export async function imageAsset(name: string, path: string): Promise<string> {
  const { layers } = await readImage(name),
    found = layers.map((dir) => join(dir, path)).findLast((file) => existsSync(file));
  if (!found) throw broken(name, `${path} is missing.`);
  return found;
}

/** Names of packages, one a line; empty lines and `#` comments are left out. */
export function parsePackages(text: string): string[] {
  return [
    ...new Set(
      text
        .split('\n')
        .map((l) => l.replace(/#.*/, '').trim())
        .filter((l) => l !== ''),
    ),
  ].sort();
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
