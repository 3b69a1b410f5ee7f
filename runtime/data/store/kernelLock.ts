import { spawn } from 'node:child_process';
import { orUndefined } from '../../concurrency/failures.js';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

/**
 * flock(2), which Node does not have. Linux: flock(1) of util-linux or BusyBox locks a descriptor that it inherits; the
 * lock belongs to the open file, which we share, so it stays when flock(1) has ended, and is released when our last
 * thread is gone. macOS: a flag of open(2). Where neither exists, `locked` is false. No other user may open the file:
 * reading it is enough to lock it.
 */
export async function openKernelLocked(path: string): Promise<{ readonly file: FileHandle; readonly locked: boolean }> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
  if (process.platform === 'darwin') return { file: await open(path, flags | O_EXLOCK, 0o600), locked: true };
  const file = await open(path, flags, 0o600);
  return { file, locked: (await flock(file, '-x')) === 'locked' };
}

/** Whether the kernel lock of a file is held; undefined when that cannot be determined. */
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
    // A shared lock, so that two checks at once do not interfere.
    const answer = await flock(file, '-s');
    return answer === 'unavailable' ? undefined : answer === 'refused';
  } finally {
    await file.close();
  }
}

/** Flags of <fcntl.h> on macOS, which Node does not name. */
const O_SHLOCK = 0x10,
  O_EXLOCK = 0x20;
/** flock(1) does not wait; if it takes longer than this it hangs, on a network file system without its server. */
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
