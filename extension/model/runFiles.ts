/** The small files of run folders on this machine's disk. */
import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { orUndefined } from '../../runtime/protocol/failures.js';
import type { RunFiles } from './savedRuns.js';

/** A run file with every option is 10 kB; what is longer is none of ours. */
const mostBytes = 1 << 20;

export const runFiles: RunFiles = {
  list: async (dir) => (await orUndefined(readdir(dir), 'a folder that is not there holds no run')) ?? [],
  read: (file) => orUndefined(readSmall(file), 'a folder without it is no run, or has no summary'),
};
async function readSmall(file: string): Promise<string | undefined> {
  // A folder may be a stranger's: a FIFO would hold the thread that opens it, and a link lead anywhere.
  const f = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0));
  try {
    const s = await f.stat();
    return !s.isFile() || s.size > mostBytes ? undefined : await f.readFile('utf8');
  } finally {
    await f.close();
  }
}
