import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_IMAGE } from '../../domain/index.js';
import { imagesDir, readImage } from '../images.js';
import { extraParts, type Deb, type ExtraParts } from './extra.js';
import type { RecipeFile } from './recipeFile.js';

export type { RecipeFile } from './recipeFile.js';

/**
 * The sources of a desktop. `rootfsHash` leaves out the Dockerfile, and opt/dart (the agent), which the local provider
 * mounts at start, so that editing them never rebuilds a root file system; `imageHash` covers everything, the agent
 * being the image's last layer.
 */
export interface Recipe {
  /** The image's name. */
  readonly image: string;
  /** The name, and the layer of the user's own (imageExtra.ts). */
  readonly reference: string;
  readonly extra?: ExtraParts | undefined;
  /** Folders the image is made of, the one that extends nothing first. */
  readonly layers: readonly string[];
  readonly packages: readonly string[];
  readonly files: readonly RecipeFile[];
  readonly rootfsHash: string;
  readonly imageHash: string;
}

/** Progress of a build; `fraction` (0 to 1) where the tools' output tells it. */
export interface BuildProgress {
  readonly phase: 'check' | 'wait' | 'base' | 'packages' | 'configure' | 'finish' | 'push' | 'done';
  readonly message: string;
  readonly fraction?: number;
}
export type OnProgress = (p: BuildProgress) => void;

const AGENT = 'overlay/opt/dart/';
const SKIPPED = /^image\.json$|(^|\/)(__pycache__|\.gitkeep|.*\.pyc)$/;

/** A hash over names, executable bits and contents, 16 hex digits; the order of the files does not matter. */
export function contentHash(files: readonly RecipeFile[], debs: readonly Deb[] = []): string {
  const h = createHash('sha256');
  for (const f of [...files].sort((a, b) => (a.path < b.path ? -1 : 1)))
    h.update(`${f.path}\0${f.executable ? 'x' : '-'}\0${f.data.length}\0`).update(f.data);
  for (const d of debs) h.update(`debs/${d.name}\0${d.sha256}\0`);
  return h.digest('hex').slice(0, 16);
}

/** The recipe of the image of this name or reference. Rejects as `readImage` does. */
export async function readRecipe(reference: string = DEFAULT_IMAGE, root = imagesDir()): Promise<Recipe> {
  const { name, layers, packages, extra: own } = await readImage(reference, root),
    extra = own && (await extraParts(own.dir, own.debs));
  const merged = new Map<string, RecipeFile>();
  for (const dir of layers)
    for (const f of dir === extra?.dir ? extra.files : await readLayer(dir)) {
      const below = merged.get(f.path);
      merged.set(f.path, below && JOINED.has(f.path) ? { ...f, data: joined(below.data, f.data) } : f);
    }
  const files = [...merged.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  const build = files.filter((f) => !f.path.startsWith(AGENT) && f.path !== 'Dockerfile');
  return {
    image: name,
    reference,
    extra,
    layers,
    packages,
    files,
    rootfsHash: contentHash(build, extra?.debs),
    imageHash: contentHash(files, extra?.debs),
  };
}

/** Files of an image that are added to those of the image it extends; any other file replaces the one below it. */
const JOINED = new Set(['packages.txt', 'setup.sh']);
const joined = (below: Buffer, own: Buffer): Buffer => Buffer.concat([below, Buffer.from('\n'), own]);

/** The files of one folder, but for its manifest, which is not part of what is built. */
async function readLayer(dir: string): Promise<RecipeFile[]> {
  const files: RecipeFile[] = [];
  const walk = async (rel: string): Promise<void> => {
    for (const e of await readdir(join(dir, rel), { withFileTypes: true })) {
      const path = rel === '' ? e.name : `${rel}/${e.name}`;
      if (SKIPPED.test(path)) continue;
      if (e.isDirectory()) await walk(path);
      else if (e.isFile())
        files.push({
          path,
          executable: ((await stat(join(dir, path))).mode & 0o100) !== 0,
          data: await readFile(join(dir, path)),
        });
    }
  };
  await walk('');
  return files;
}
