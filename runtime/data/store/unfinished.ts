import { orUndefined, errorCode } from '../../domain/index.js';
import { lstat, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { namesInside } from '../../files/folderParts.js';

/** Folder in which files are made before they get their name: one listing finds what a killed process left. */
export const unfinishedDir = (dir: string): string => join(dir, 'unfinished');

/**
 * Removes unfinished files of ended processes in `dir` (files or folders named `*.<pid>.tmp` or, by `unfinishedName`,
 * `*.<pid>-<thread>-<n>.tmp`; older versions had no thread). A folder that is not there has none, nor has one behind a link in the run folder `inside`.
 */
export async function removeUnfinished(dir: string, inside = dir): Promise<void> {
  const names = await namesInside(inside, dir);
  await Promise.all(
    names.map(async (name) => {
      const pid = Number(/\.(\d+)(?:-\d+){0,2}\.tmp$/.exec(name)?.[1]);
      if (Number.isInteger(pid) && !alive(pid))
        await orUndefined(rm(join(dir, name), { recursive: true, force: true }), 'the next opening tries again');
    }),
  );
}
/** Gives back its name to a file that was set aside by a process that was killed before the new one was in place. */
export async function restoreReplaced(dir: string, inside: string): Promise<void> {
  for (const name of await namesInside(inside, dir)) {
    if (!name.endsWith(aside)) continue;
    const path = join(dir, name),
      own = path.slice(0, -aside.length),
      there = await orUndefined(lstat(own), 'then it is the one to keep');
    await orUndefined(
      there ? rm(path, { recursive: true, force: true }) : rename(path, own),
      'the next opening tries again',
    );
  }
}
/** trainer/checkpoint.ts writes it. */
const aside = '.replaced';
function alive(pid: number): boolean {
  // EPERM: it exists and belongs to another user.
  try {
    process.kill(pid, 0);
    return true;
  } catch (e) {
    return errorCode(e) !== 'ESRCH';
  }
}
