import { readFileSync, readlinkSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { ProcessIdentity } from './lockClaim.js';
import { errorCode } from '../../domain/index.js';

let known: ProcessIdentity | undefined;

/** This process. Elsewhere than on Linux the host's name stands for the kernel, and no start time is known. */
export function thisProcess(): ProcessIdentity {
  return (known ??= identify());
}
function identify(): ProcessIdentity {
  const pid = process.pid;
  if (process.platform !== 'linux') return { pid, kernel: hostname(), namespace: 'host' };
  const kernel = maybe(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    namespace = maybe(() => readlinkSync('/proc/self/ns/pid')),
    start = maybe(() => statFields(readFileSync('/proc/self/stat', 'utf8'))?.start);
  return {
    pid,
    kernel,
    namespace,
    start,
  };
}
function maybe<T>(f: () => T): T | undefined {
  try {
    return f();
  } catch {
    return undefined;
  }
}

/** State and start time, which follow the program's name; that may itself hold brackets and spaces. */
function statFields(text: string): { readonly state: string; readonly start: string } | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' '),
    state = fields[0],
    start = fields[19];
  return state && start ? { state, start } : undefined;
}

/**
 * Whether a process of our own namespace still runs. A killed one whose other threads have not ended (a write under way)
 * still counts as alive, a zombie alone does not.
 */
export async function processState(pid: number, start: string): Promise<'alive' | 'dead' | 'unknown'> {
  try {
    process.kill(pid, 0);
  } catch (e) {
    if (errorCode(e) === 'ESRCH') return 'dead';
  }
  const found = await readFile(`/proc/${pid}/stat`, 'utf8').then(statFields, () => undefined);
  if (!found) return 'unknown';
  if (found.start !== start) return 'dead';
  if (found.state !== 'Z' && found.state !== 'X') return 'alive';
  const threads = await readdir(`/proc/${pid}/task`).catch((): string[] => []);
  return threads.length > 1 ? 'alive' : 'dead';
}
