import { orUndefined } from '../../concurrency/failures.js';
import { readdir, readFile, readlink, stat } from 'node:fs/promises';

/**
 * The process that holds a lock the way version 0.1 did on Linux: a listening abstract socket of this name, padded with
 * NULs by Node 20 and bare with Node 24. The kernel lists both; an entry counts only when a process of our own user has
 * the socket, because anybody may take a name. Undefined when there is none, or it cannot be seen from here (another
 * network namespace).
 */
export async function oldLockHolder(name: string): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined;
  const table = await readFile('/proc/net/unix', 'latin1').catch(() => '');
  const sockets = new Set<string>();
  // Num RefCount Protocol Flags Type St Inode Path; a NUL is written as @.
  for (const m of table.matchAll(/ (\d+) @([^\s@]+)@*$/gm)) if (m[2] === name) sockets.add(`socket:[${m[1]}]`);
  if (sockets.size === 0) return undefined;
  for (const pid of await readdir('/proc'))
    if (/^\d+$/.test(pid) && (await ownProcess(pid)) && (await holdsOneOf(pid, sockets))) return Number(pid);
  return undefined;
}

const ownProcess = async (pid: string): Promise<boolean> =>
  (await orUndefined(stat(`/proc/${pid}`), 'the process has ended'))?.uid === process.geteuid?.();

async function holdsOneOf(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
  const fds = await readdir(`/proc/${pid}/fd`).catch((): string[] => []);
  for (const fd of fds) if (sockets.has(await readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))) return true;
  return false;
}
