import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { namesInside } from './folderParts.js';

/**
 * Removes unfinished files of ended processes in `dir` (files or folders named `*.<pid>.tmp` or, by `unfinishedName`,
 * `*.<pid>-<thread>-<n>.tmp`; older versions had no thread). A folder that is not there has none, nor has one behind a
 * link in `inside`. `of`: only of the file of this name, for a folder in which people may have files of their own.
 */
export async function removeUnfinished(
  dir: string,
  { inside = dir, of }: { readonly inside?: string; readonly of?: string } = {},
): Promise<void> {
  const names = await namesInside(inside, dir);
  await Promise.all(
    names.map(async (name) => {
      if (of !== undefined && !name.startsWith(`${of}.`)) return;
      const pid = Number(/\.(\d+)(?:-\d+){0,2}\.tmp$/.exec(name)?.[1]);
      if (Number.isInteger(pid) && !alive(pid))
        await orUndefined(rm(join(dir, name), { recursive: true, force: true }), 'the next opening tries again');
    }),
  );
}
function alive(pid: number): boolean {
  // EPERM: it exists and belongs to another user.
  try {
    process.kill(pid, 0);
    return true;
  } catch (e) {
    return errorCode(e) !== 'ESRCH';
  }
}
