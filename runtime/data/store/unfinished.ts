import { orUndefined } from '../../concurrency/failures.js';
import { lstat, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { namesInside } from '../../files/folderParts.js';

/** Folder in which files are made before they get their name: one listing finds what a killed process left. */
export const unfinishedDir = (dir: string): string => join(dir, 'unfinished');

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
