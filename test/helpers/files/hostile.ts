import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Files that hold up whoever opens them as if they were ordinary ones. */

/** Nobody ever writes to it: opened for reading the plain way, the thread waits for good. */
export const fifo = (path: string): void => void execFileSync('mkfifo', [path]);
/** So many bytes that take no room on the disk. */
export async function sparse(path: string, bytes: number): Promise<void> {
  await writeFile(path, '');
  await truncate(path, bytes);
}
/** A socket of the file system; resolves with what closes it. */
export async function socket(path: string): Promise<() => Promise<void>> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(path, done));
  return () => new Promise((done) => server.close(() => done()));
}

export async function scratch<T>(f: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-hostile-'));
  try {
    return await f(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** How something ended, or 'hangs' after `ms`. */
export async function ending(p: Promise<unknown>, ms = 5000): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const hangs = new Promise<'hangs'>((done) => {
    timer = setTimeout(() => done('hangs'), ms);
  });
  try {
    return await Promise.race([
      p.then(
        () => 'done',
        (e: unknown) => e,
      ),
      hangs,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
