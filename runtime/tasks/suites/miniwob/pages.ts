import { readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { StudioError } from '../../../domain/index.js';
import { readForeign } from '../../../files/foreignFile.js';
import { tar } from '../../../files/tar.js';

/** A user's copy of MiniWoB++, which is never part of ours. */
export interface Pages {
  /** The folder that holds `core` and `miniwob`. */
  readonly root: string;
  /** Names of its tasks, sorted: `click-button` is miniwob/click-button.html. */
  readonly names: readonly string[];
  /** A gzipped tar of everything under `root`; made once. */
  packed(): Promise<Buffer>;
}

const packing = promisify(gzip);
/** Paths of the pages in a checkout, an unpacked wheel or the folder itself. */
const PLACES = ['', 'html', 'miniwob/html', 'src/miniwob/html', 'miniwob'];
/** MiniWoB++ 1.0 has 400 files and 8 MB. */
const MOST_FILES = 5_000,
  MOST_BYTES = 64 << 20;

/** Rejects with `task.invalid` where there is no copy of MiniWoB++, or one that is far too large. */
export async function openPages(dir: string): Promise<Pages> {
  const root = await rootOf(dir);
  const names = (await readdir(join(root, 'miniwob')))
    .filter((f) => f.endsWith('.html'))
    .map((f) => f.slice(0, -'.html'.length))
    .filter((n) => /^[\w.-]{1,64}$/.test(n))
    .sort();
  if (names.length === 0) throw notThere(dir);
  let made: Promise<Buffer> | undefined;
  return { root, names, packed: () => (made ??= pack(root)) };
}

/** Whether a folder is a copy of MiniWoB++. */
export const isMiniwob = async (dir: string): Promise<boolean> =>
  rootOf(dir).then(
    () => true,
    () => false,
  );

async function rootOf(dir: string): Promise<string> {
  for (const place of PLACES) {
    const root = join(dir, place),
      [core, pages] = await Promise.all([stat(join(root, 'core', 'core.js')), stat(join(root, 'miniwob'))]).catch(
        () => [],
      );
    if (core?.isFile() && pages?.isDirectory()) return root;
  }
  throw notThere(dir);
}

const notThere = (dir: string): StudioError =>
  new StudioError(
    'task.invalid',
    `${dir} is no copy of MiniWoB++: core/core.js and miniwob/*.html are not in it.`,
    'Give a checkout of Farama-Foundation/miniwob-plusplus, its unpacked wheel (pip download miniwob; unzip), or its folder html.',
  );

async function pack(root: string): Promise<Buffer> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((e) => e.isFile())
    .map((e) => relative(root, join(e.parentPath, e.name)))
    .sort();
  if (paths.length > MOST_FILES) throw tooLarge(root, `${paths.length} files`);
  const files: { path: string; data: Buffer }[] = [];
  let bytes = 0;
  for (const path of paths) {
    const data = await readForeign(join(root, path), MOST_BYTES);
    bytes += data.length;
    if (bytes > MOST_BYTES) throw tooLarge(root, `more than ${MOST_BYTES >> 20} MB`);
    files.push({ path, data });
  }
  return packing(tar(files));
}

const tooLarge = (root: string, what: string): StudioError =>
  new StudioError('task.invalid', `${root} holds ${what}.`, 'Give the folder html of MiniWoB++ alone.');
