import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { StudioError } from '../../domain/index.js';
import { removeGroup } from './cgroups.js';

/** What is written about a sandbox, so that a later process can clean up after this one: pids with their start times, since pids come back. */
interface Record_ { readonly id: string; readonly owner: ProcessMark; readonly sandbox: ProcessMark; readonly cgroups: readonly string[] }
interface ProcessMark { readonly pid: number; /** Field 22 of /proc/PID/stat: clock ticks after boot. */ readonly started: string }

/** Folder of records, and of the mount point root's sandboxes use. On a RAM disk, since sandboxes do not outlive the machine. */
export async function stateDir(): Promise<string> {
  const dir = `/dev/shm/dart-studio-${process.getuid!()}`;
  await mkdir(`${dir}/mnt`, { recursive: true, mode: 0o755 });
  // Anyone may make folders here: one that somebody else made in our name must not be trusted.
  const s = await lstat(dir);
  if (!s.isDirectory() || s.uid !== process.getuid!() || (s.mode & 0o022) !== 0) {
    throw new StudioError('desktop.unavailable', `The folder ${dir} belongs to somebody else or can be written by others.`, 'Have it removed, then try again.');
  }
  return dir;
}

/** Start time of a process, undefined when there is none. */
async function startTime(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields?.[0] === 'Z' ? undefined : fields?.[19];
}

const alive = async (m: ProcessMark): Promise<boolean> => (await startTime(m.pid)) === m.started;

/** Write a record; the function it returns takes it back. */
export async function recordSandbox(id: string, pid: number, cgroups: readonly string[]): Promise<() => Promise<void>> {
  const file = `${await stateDir()}/${id}.json`;
  const record: Record_ = { id, cgroups, owner: { pid: process.pid, started: await startTime(process.pid) ?? '' }, sandbox: { pid, started: await startTime(pid) ?? '' } };
  await writeFile(`${file}.new`, JSON.stringify(record));
  await rename(`${file}.new`, file);
  return () => rm(file, { force: true });
}

/** Kill the sandboxes whose owner is dead and forget them; returns how many there were. */
export async function reapSandboxes(): Promise<number> {
  const dir = await stateDir();
  let n = 0;
  for (const name of await readdir(dir)) {
    if (!name.endsWith('.json')) continue;
    let record: Record_;
    try { record = JSON.parse(await readFile(`${dir}/${name}`, 'utf8')) as Record_; } catch { continue; }
    if (await alive(record.owner)) continue;
    if (await alive(record.sandbox)) { try { process.kill(record.sandbox.pid, 'SIGKILL'); } catch { /* ended just now */ } }
    for (const d of record.cgroups) await removeGroup(d);
    await rm(`${dir}/${name}`, { force: true });
    n++;
  }
  return n;
}
