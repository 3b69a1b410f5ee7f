import { rename, rm } from 'node:fs/promises';
import { threadId } from 'node:worker_threads';
import { orUndefined } from '../concurrency/failures.js';
import { createFresh } from './folderParts.js';

let made = 0;
/**
 * A name that no other call, thread or process uses at the moment. It names the process that makes the file, for those
 * who remove what a process that ended has left (removeUnfinished.ts).
 */
export const unfinishedName = (name: string): string => `${name}.${process.pid}-${threadId}-${++made}.tmp`;

export interface ReplaceOptions {
  /** The content is on disk before the file gets its name: it survives a power cut. */
  readonly durable?: boolean;
  /** Permissions of the file, less the umask. Default 0o666. */
  readonly mode?: number;
}
/**
 * Writes a file so that a reader sees the old content or the new, never part of it. A failure leaves the old one, and
 * nothing beside it. No link is followed, neither at the file's own name nor where it is made.
 */
export async function replaceFile(path: string, data: string | Uint8Array, o: ReplaceOptions = {}): Promise<void> {
  const part = unfinishedName(path);
  try {
    const f = await createFresh(part, o.mode);
    try {
      await f.writeFile(data);
      if (o.durable) await f.sync();
    } finally {
      await f.close();
    }
    await rename(part, path);
  } catch (e) {
    await orUndefined(rm(part, { force: true }), 'the error that matters is thrown');
    throw e;
  }
}
