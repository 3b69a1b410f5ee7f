import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StudioError } from '../../domain/index.js';

/** One file of the image folder; `path` is relative to it, with forward slashes. */
export interface RecipeFile {
  readonly path: string;
  readonly executable: boolean;
  readonly data: Buffer;
}

/**
 * What a desktop is built from. `rootfsHash` leaves out opt/dart (the agent), which the local provider mounts at start,
 * so that editing the agent never rebuilds a root file system; `imageHash` covers everything, the agent being the
 * image's last layer.
 */
export interface Recipe {
  readonly dir: string;
  readonly packages: readonly string[];
  readonly files: readonly RecipeFile[];
  readonly rootfsHash: string;
  readonly imageHash: string;
}

/** What a build reports while it goes on; `fraction` (0 to 1) where it can be told from the tools' own output. */
export interface BuildProgress {
  readonly phase: 'check' | 'wait' | 'base' | 'packages' | 'configure' | 'finish' | 'done';
  readonly message: string;
  readonly fraction?: number;
}
export type OnProgress = (p: BuildProgress) => void;

/** The image folder: beside the bundle (dist/image, from dist/runtime.js or dist/bench/x.mjs) or in the source tree. */
export function imageDir(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const found = [join(here, 'image'), join(here, '..', 'image')].find((d) => existsSync(join(d, 'packages.txt')));
  if (found) return found;
  throw new StudioError(
    'desktop.image',
    `The desktop's recipe (image/packages.txt) is not beside ${here}.`,
    'Build again with `npm run build`; the installation is incomplete.',
  );
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

const AGENT = 'overlay/opt/dart/';
const SKIPPED = /(^|\/)(__pycache__|\.gitkeep|.*\.pyc)$/;

/** A hash over names, executable bits and contents, 16 hex digits; the order of the files does not matter. */
export function contentHash(files: readonly RecipeFile[]): string {
  const h = createHash('sha256');
  for (const f of [...files].sort((a, b) => (a.path < b.path ? -1 : 1)))
    h.update(`${f.path}\0${f.executable ? 'x' : '-'}\0${f.data.length}\0`).update(f.data);
  return h.digest('hex').slice(0, 16);
}

export async function readRecipe(dir = imageDir()): Promise<Recipe> {
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
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  const list = files.find((f) => f.path === 'packages.txt');
  if (!list)
    throw new StudioError(
      'desktop.image',
      `There is no packages.txt in ${dir}.`,
      'Build again with `npm run build`; the installation is incomplete.',
    );
  const build = files.filter((f) => !f.path.startsWith(AGENT));
  return {
    dir,
    packages: parsePackages(list.data.toString('utf8')),
    files,
    rootfsHash: contentHash(build),
    imageHash: contentHash(files),
  };
}
