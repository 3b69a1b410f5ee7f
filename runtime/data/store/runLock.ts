import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { StudioError, messageOf } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { folderHolder, lockFolder, type FolderLock } from './folderLock.js';
import type { LockHolder } from './lockClaim.js';
import { oldLockHolder } from './oldLockName.js';
import { askPipe, listenPipe } from './pipeLock.js';

export type { LockHolder } from './lockClaim.js';

export interface RunLock {
  /** Rejects with `run.lost` when another process has taken the folder over: nothing may be written any more. */
  verify(): Promise<void>;
  release(): Promise<void>;
}

/**
 * One writer per run folder: the lock of folderLock.ts, on Windows a named pipe. Rejects with `run.busy` naming the
 * holder. A writer of version 0.1 knows only its old lock name: we notice it, but it does not notice us; if it writes,
 * the journal's fence stops us.
 */
export async function lockRun(dir: string): Promise<RunLock> {
  const real = await realpath(dir);
  if (process.platform === 'win32') return lockByPipe(real);
  const taken = await lockFolder(real);
  if ('holder' in taken) throw busy(real, taken.holder);
  const old = await oldLockHolder(nameOf(real));
  if (old !== undefined) {
    await taken.lock.release();
    throw busyWith(real, `process ${old}, an earlier version of DART Studio`, {});
  }
  return fenced(taken.lock, real);
}

/** The current writer of a run; undefined when there is none, 'unknown' when it cannot be named. */
export async function runHolder(dir: string): Promise<LockHolder | 'unknown' | undefined> {
  const real = await orUndefined(realpath(dir), 'a folder that is not there yet has no other name');
  if (real === undefined) return undefined;
  return process.platform === 'win32' ? askPipe(pipeOf(real)) : folderHolder(real);
}

function fenced(lock: FolderLock, dir: string): RunLock {
  return {
    verify: async () => {
      if (await lock.verify()) return;
      throw new StudioError(
        'run.lost',
        `${dir} can no longer be written: another process has taken it over, or removed its lock.`,
        'Stop the other program that writes there, then resume the run. Everything acknowledged so far is on disk.',
        { details: { dir } },
      );
    },
    release: () => lock.release(),
  };
}

function busy(dir: string, holder: LockHolder | 'unknown'): StudioError {
  return holder === 'unknown'
    ? busyWith(dir, 'another process', {})
    : busyWith(dir, `process ${holder.pid} on ${holder.host}, since ${holder.since}`, { holder });
}
const busyWith = (dir: string, who: string, details: { readonly holder?: LockHolder }): StudioError =>
  new StudioError(
    'run.busy',
    `The run ${dir} is in use by ${who}.`,
    'Stop that process first, or open the run read-only.',
    { details: { dir, ...details } },
  );

/** Name of the lock of version 0.1; Windows still uses it. */
const nameOf = (real: string): string =>
  `dart-studio-run-${createHash('sha256').update(real).digest('hex').slice(0, 32)}`;
const pipeOf = (real: string): string => `\\\\.\\pipe\\${nameOf(real)}`;

async function lockByPipe(real: string): Promise<RunLock> {
  const me: LockHolder = { pid: process.pid, host: hostname(), since: new Date().toISOString() };
  const lock = await listenPipe(pipeOf(real), JSON.stringify(me)).catch((e: unknown) => {
    throw new StudioError(
      'store.io',
      `The run cannot be locked: ${messageOf(e)}.`,
      'Check the permissions of the run folder.',
      { cause: e },
    );
  });
  if (!lock) throw busy(real, (await askPipe(pipeOf(real))) ?? 'unknown');
  return { verify: () => Promise.resolve(), release: () => lock.release() };
}
