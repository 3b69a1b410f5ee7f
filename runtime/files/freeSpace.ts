import { statfs } from 'node:fs/promises';
import { orUndefined } from '../concurrency/failures.js';
import { withFoldersAbove } from './foldersAbove.js';

/** Free bytes on the disk of a folder; undefined where the folder is not there, or its file system does not say. */
export async function freeBytes(dir: string): Promise<number | undefined> {
  const disk = await orUndefined(statfs(dir), 'not every file system says what is free');
  return disk && disk.bavail * disk.bsize;
}

/** Free bytes where a folder is, or will be. */
export async function freeAt(dir: string): Promise<number> {
  for (const at of withFoldersAbove(dir)) {
    const free = await freeBytes(at);
    if (free !== undefined) return free;
  }
  return 0;
}
