import { createHash } from 'node:crypto';
import { realpath, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { StudioError } from '../../domain/index.js';

/** Who has a run open for writing. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}
export interface RunLock {
  release(): Promise<void>;
}

/**
 * One writer per run folder, by a lock the kernel takes back when its holder dies: the address of a listening socket.
 * Linux: an abstract socket; Windows: a named pipe; elsewhere a socket file, which stays behind a kill and is then
 * found dead by connecting. Whoever connects is told who holds it. Rejects with `run.busy` naming the holder.
 */
export async function lockRun(dir: string): Promise<RunLock> {
  const real = await realpath(dir),
    address = addressOf(real);
  const holder: LockHolder = { pid: process.pid, host: hostname(), since: new Date().toISOString() };
  for (let attempt = 0; attempt < 2; attempt++) {
    const server = await listen(address, JSON.stringify(holder));
    if (server)
      return {
        release: () =>
          new Promise((resolve) => {
            server.close(() => resolve());
          }),
      };
    const other = await ask(address);
    if (other === 'dead') {
      if (process.platform !== 'linux' && process.platform !== 'win32') await rm(address, { force: true });
      continue;
    }
    const who = other ? `process ${other.pid} on ${other.host}, since ${other.since}` : 'another process';
    throw new StudioError(
      'run.busy',
      `The run ${real} is in use by ${who}.`,
      'Stop that process first, or open the run read-only.',
      { details: { dir: real, ...(other ? { holder: other } : {}) } },
    );
  }
  throw new StudioError(
    'run.busy',
    `The run ${real} is in use.`,
    'Try again; if it stays so, another process keeps opening it.',
    { details: { dir: real } },
  );
}

/** Who writes a run now; undefined when nobody does. A holder that does not answer is somebody all the same. */
export async function runHolder(dir: string): Promise<LockHolder | 'unknown' | undefined> {
  const real = await realpath(dir).catch(() => undefined);
  if (real === undefined) return undefined;
  const other = await ask(addressOf(real));
  return other === 'dead' ? undefined : (other ?? 'unknown');
}

function addressOf(real: string): string {
  const name = `dart-studio-run-${createHash('sha256').update(real).digest('hex').slice(0, 32)}`;
  return process.platform === 'linux'
    ? `\0${name}`
    : process.platform === 'win32'
      ? `\\\\.\\pipe\\${name}`
      : join('/tmp', name);
}

function listen(address: string, greeting: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((s) => {
      s.on('error', () => undefined);
      s.end(greeting);
    });
    server.once('error', (e: NodeJS.ErrnoException) => {
      if (e.code === 'EADDRINUSE' || e.code === 'EACCES') resolve(undefined);
      else
        reject(
          new StudioError(
            'store.io',
            `The run cannot be locked: ${e.message}.`,
            'Check the permissions of the run folder.',
            { cause: e },
          ),
        );
    });
    server.listen(address, () => {
      server.unref();
      resolve(server);
    });
  });
}
/**
 * The holder as it introduces itself; undefined when it says nothing within a second (it is stopped), `dead` when
 * nobody listens.
 */
function ask(address: string): Promise<LockHolder | undefined | 'dead'> {
  return new Promise((resolve) => {
    const s = connect(address);
    let text = '';
    s.setTimeout(1000, () => {
      s.destroy();
      resolve(undefined);
    });
    s.on('data', (d) => {
      text += d.toString();
    });
    s.on('error', (e: NodeJS.ErrnoException) =>
      resolve(e.code === 'ECONNREFUSED' || e.code === 'ENOENT' ? 'dead' : undefined),
    );
    s.on('end', () => {
      try {
        resolve(JSON.parse(text) as LockHolder);
      } catch {
        resolve(undefined);
      }
    });
  });
}
