import { connect, createServer, type Server } from 'node:net';
import type { LockHolder } from './lockClaim.js';

/**
 * A lock for Windows, where a folder with open files cannot be renamed: a named pipe, which vanishes with its process.
 * Its server identifies itself in one line; a client reads `maxBytes` of the answer, for at most `deadlineMs`.
 */
export interface PipeLock {
  release(): Promise<void>;
}
const maxBytes = 4096,
  deadlineMs = 1000;

/** Undefined when the name is taken. */
export function listenPipe(path: string, greeting: string): Promise<PipeLock | undefined> {
  return new Promise((resolve, reject) => {
    const server: Server = createServer((s) => {
      s.on('error', () => undefined);
      s.end(greeting);
    });
    server.once('error', (e: NodeJS.ErrnoException) => {
      if (e.code === 'EADDRINUSE' || e.code === 'EACCES') resolve(undefined);
      else reject(e);
    });
    server.listen(path, () => {
      server.unref();
      resolve({ release: () => new Promise((done) => server.close(() => done())) });
    });
  });
}

/** The holder as it introduces itself; 'unknown' when it does not in time or in words we know, undefined when nobody listens. */
export function askPipe(path: string): Promise<LockHolder | 'unknown' | undefined> {
  return new Promise((resolve) => {
    const s = connect(path);
    const chunks: Buffer[] = [];
    let bytes = 0;
    const answer = (a: LockHolder | 'unknown' | undefined): void => {
      clearTimeout(timer);
      s.destroy();
      resolve(a);
    };
    // The deadline covers the whole answer: single bytes do not prolong it.
    const timer = setTimeout(() => answer('unknown'), deadlineMs);
    s.on('data', (d) => {
      chunks.push(d);
      bytes += d.length;
      if (bytes > maxBytes) answer('unknown');
    });
    s.on('error', (e: NodeJS.ErrnoException) =>
      answer(e.code === 'ECONNREFUSED' || e.code === 'ENOENT' ? undefined : 'unknown'),
    );
    s.on('end', () => answer(holderOf(Buffer.concat(chunks).toString('utf8'))));
  });
}

function holderOf(text: string): LockHolder | 'unknown' {
  try {
    const h = JSON.parse(text) as Partial<Record<keyof LockHolder, unknown>> | null;
    const { pid, host, since } = h ?? {};
    if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || typeof host !== 'string' || typeof since !== 'string')
      return 'unknown';
    return { pid, host: host.slice(0, 300), since: since.slice(0, 100) };
  } catch {
    return 'unknown';
  }
}
