import { open, readFile, rm, stat } from 'node:fs/promises';
import { orUndefined } from '../domain/index.js';

/** A lock without the id of its process is one that is just being made, if it is younger than this, ms. */
const MAKING_MS = 10_000;

/**
 * One holder at a time, by a file with its process id; a lock whose process is gone does not count. Rejects with
 * `busy` of the holder's id, which is undefined where it is not known yet. Returns what gives the lock back.
 */
export async function lockFile(file: string, busy: (pid: number | undefined) => Error): Promise<() => Promise<void>> {
  for (;;) {
    try {
      const handle = await open(file, 'wx');
      await handle.writeFile(String(process.pid));
      await handle.close();
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const text = await orUndefined(readFile(file, 'utf8'), 'its owner has just removed it'),
      pid = Number(text ?? '0');
    if (pid > 0 && isAlive(pid)) throw busy(pid);
    if (text === '' && (await isYoung(file))) throw busy(undefined);
    await rm(file, { force: true });
  }
}

async function isYoung(file: string): Promise<boolean> {
  const s = await orUndefined(stat(file), 'its owner has just removed it');
  return s !== undefined && Date.now() - s.mtimeMs < MAKING_MS;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
