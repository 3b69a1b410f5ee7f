import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { StudioError, type ErrorKind, cancelled } from '../domain/index.js';

/**
 * The program's path, or undefined when it is not installed. Searches sbin folders as well: a user's PATH may lack
 * them.
 */
export function which(name: string): string | undefined {
  for (const d of [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin', '/usr/bin', '/bin']) {
    try {
      accessSync(join(d, name), constants.X_OK);
      return join(d, name);
    } catch {
      /* next */
    }
  }
  return undefined;
}

/**
 * Holds a file lock by flock(1) until the returned function is called. The kernel frees it when we or flock die, so a
 * process that crashed never blocks the next one. Where flock is missing (macOS) there is no lock, and the work may be done
 * twice. Rejects with `kind` where the lock cannot be taken, and with `cancelled`.
 */
export async function fileLock(
  file: string,
  o: { readonly kind: ErrorKind; readonly signal?: AbortSignal | undefined; readonly onWait?: () => void },
): Promise<() => Promise<void>> {
  const flock = which('flock');
  if (o.signal?.aborted) throw waitCancelled();
  if (!flock) return async () => {};
  const child = spawn(flock, ['--exclusive', file, 'sh', '-c', 'echo held; exec cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  const closed = new Promise<void>((r) => child.once('close', () => r()));
  const abort = (): void => {
    child.kill('SIGKILL');
  };
  o.signal?.addEventListener('abort', abort, { once: true });
  const waiting = setTimeout(() => o.onWait?.(), 500);
  try {
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.stdout.once('data', () => resolve());
      void closed.then(() =>
        reject(
          o.signal?.aborted
            ? waitCancelled()
            : new StudioError(o.kind, `The lock ${file} could not be taken.`, 'Check that its folder is writable.'),
        ),
      );
    });
  } finally {
    clearTimeout(waiting);
    o.signal?.removeEventListener('abort', abort);
  }
  return async () => {
    child.stdin.end();
    await closed;
  };
}

const waitCancelled = (): StudioError =>
  cancelled('Waiting for another process', { remedy: 'Start it again when you are ready; finished parts are kept.' });
