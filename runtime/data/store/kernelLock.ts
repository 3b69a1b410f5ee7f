import { spawn } from 'node:child_process';
import { orUndefined } from '../../domain/index.js';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

/**
 * flock(2), which Node does not have. Linux: flock(1) of util-linux or BusyBox locks a descriptor that it inherits; the
 * lock belongs to the open file, which we share, so it stays when flock(1) has ended, and falls when our last thread is
 * gone. macOS: a flag of open(2). Where neither is there, `locked` is false. Nobody else may open the file: to read it
 * is enough to lock it.
 */
export async function openKernelLocked(path: string): Promise<{ readonly file: FileHandle; readonly locked: boolean }> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
  if (process.platform === 'darwin') return { file: await open(path, flags | O_EXLOCK, 0o600), locked: true };
  const file = await open(path, flags, 0o600);
  return { file, locked: (await flock(file, '-x')) === 'locked' };
}

/** Whether somebody holds the kernel lock of a file; undefined when that cannot be found out. */
export async function hasKernelLock(path: string): Promise<boolean | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  if (process.platform === 'darwin')
    return open(path, flags | O_SHLOCK).then(
      async (f) => {
        await f.close();
        return false;
      },
      (e: NodeJS.ErrnoException) => (e.code === 'EAGAIN' || e.code === 'EWOULDBLOCK' ? true : undefined),
    );
  const file = await orUndefined(open(path, flags), 'a file that cannot be opened tells nothing of its lock');
  if (!file) return undefined;
  try {
    // Shared: two that ask at once are not in each other's way.
    const answer = await flock(file, '-s');
    return answer === 'unavailable' ? undefined : answer === 'refused';
  } finally {
    await file.close();
  }
}

/** Of <fcntl.h> on macOS; Node names neither. */
const O_SHLOCK = 0x10,
  O_EXLOCK = 0x20;
/** flock(1) does not wait; what takes longer hangs, on a network file system without its server. */
const deadlineMs = 5_000;

function flock(file: FileHandle, how: '-x' | '-s'): Promise<'locked' | 'refused' | 'unavailable'> {
  if (process.platform !== 'linux') return Promise.resolve('unavailable');
  return new Promise((resolve) => {
    const child = spawn('flock', [how, '-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', file.fd] });
    const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs);
    child.once('error', () => {
      clearTimeout(timer);
      resolve('unavailable');
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      resolve(code === 0 ? 'locked' : code === 1 ? 'refused' : 'unavailable');
    });
  });
}
