import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { lockFolder } from '../data/store/folderLock.js';
import { oldLockHolder } from '../data/store/oldLockName.js';
import { listenPipe } from '../data/store/pipeLock.js';

/** Held while the process lives; the kernel lets go of it, however the process ends. */
export interface Lock {
  release(): Promise<void>;
}

/**
 * One daemon per storage folder; undefined when another process has the lock. It lies in the folder
 * (data/store/folderLock.ts); on Windows it is a named pipe. A daemon of version 0.1 that still serves the folder is
 * noticed, where it is in our network namespace: it goes when its runs have ended, and clients attach to it until then.
 */
export async function lockStorage(storage: string): Promise<Lock | undefined> {
  const real = await realpath(storage);
  if (process.platform === 'win32') return listenPipe(`\\\\.\\pipe\\${nameOf(real, userInfo().username)}`, '');
  const taken = await lockFolder(real);
  if ('holder' in taken) return undefined;
  if ((await oldLockHolder(nameOf(real, process.geteuid?.() ?? 0))) === undefined) return taken.lock;
  await taken.lock.release();
  return undefined;
}

const nameOf = (real: string, user: string | number): string =>
  `dart-studio-${user}-${createHash('sha256').update(real).digest('hex').slice(0, 32)}`;
