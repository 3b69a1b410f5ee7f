import { lstat, mkdir, open, readdir, rm, type FileHandle } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { errorCode, StudioError } from '../domain/index.js';

/**
 * Parts of a folder that somebody else may have made: a run folder that was copied here. The folder itself may be
 * reached through links. Within it a link could lead to any file of the user, so none is followed, to read or to write.
 * Files that are there are opened by `openForeign`, with `inside`.
 */

/** The first between `inside` and `folder`, itself included, that is a link or no folder. Rejects where one is missing. */
export async function linkBetween(inside: string, folder: string): Promise<string | undefined> {
  for (const at of between(inside, folder)) if (!(await lstat(at)).isDirectory()) return at;
  return undefined;
}
function between(inside: string, folder: string): string[] {
  const names = relative(inside, folder).split(sep);
  if (names[0] === '..') throw new Error(`${folder} is not inside of ${inside}`);
  let at = inside;
  return names.filter((n) => n !== '').map((n) => (at = join(at, n)));
}

/**
 * Makes a folder where there is none. Rejects with `store.damaged` where a part of its path inside is a link, else with
 * Node's errors.
 */
export async function folderInside(inside: string, folder: string): Promise<void> {
  await mkdir(inside, { recursive: true });
  for (const at of between(inside, folder)) {
    await mkdir(at).catch(async (e: unknown) => {
      const there = errorCode(e) === 'EEXIST' ? await lstat(at) : undefined;
      if (there?.isSymbolicLink()) throw linkRefused(at);
      if (!there?.isDirectory()) throw e;
    });
  }
}
export const linkRefused = (path: string): StudioError =>
  new StudioError(
    'store.damaged',
    `${path} is not used: it is a link, or no file or folder. The parts of a run lie in its own folder.`,
    'If it is your own link, put what it leads to in its place (the whole run folder may be a link). Do not go on with a run of somebody else that has one.',
    { details: { path } },
  );

/** Names in a folder; none where it is not there, or behind a link. */
export async function namesInside(inside: string, folder: string): Promise<string[]> {
  try {
    return (await linkBetween(inside, folder)) === undefined ? await readdir(folder) : [];
  } catch {
    return [];
  }
}

/**
 * A new file to write, under a name that is only ever ours. Whatever has the name is removed and never opened: what a
 * crash left, or a link or FIFO that somebody put there.
 */
export async function createFresh(path: string, mode = 0o666): Promise<FileHandle> {
  await rm(path, { recursive: true, force: true });
  // Exclusive: never through a link.
  return open(path, 'wx', mode);
}
