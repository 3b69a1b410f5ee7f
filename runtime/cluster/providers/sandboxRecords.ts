import { lstat, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { StudioError } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { removeUnfinished } from '../../files/removeUnfinished.js';
import { replaceFile } from '../../files/replaceFile.js';
import { removeGroup } from './cgroups.js';

/**
 * The record of a sandbox, so that a later process can clean up after this one: pids with their start times, because
 * pids are reused.
 */
interface Record_ {
  readonly id: string;
  readonly owner: ProcessMark;
  /** Empty while it is being started. */
  readonly processes?: readonly ProcessMark[];
  readonly cgroups: readonly string[];
}
interface ProcessMark {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks after boot. */
  readonly started: string;
}

/**
 * The folder of records, and of the mount point that root's sandboxes use. On a RAM disk, because sandboxes do not
 * survive a reboot.
 */
export async function stateDir(): Promise<string> {
  const dir = `/dev/shm/dart-studio-${process.getuid!()}`;
  await mkdir(`${dir}/mnt`, { recursive: true, mode: 0o755 });
  // Anyone may create folders here: one of this name that another user created must not be trusted.
  const s = await lstat(dir);
  if (!s.isDirectory() || s.uid !== process.getuid!() || (s.mode & 0o022) !== 0) {
    throw new StudioError(
      'desktop.unavailable',
      `The folder ${dir} belongs to another user or is writable by others.`,
      'Remove it, then try again.',
    );
  }
  return dir;
}

/** Start time of a process, undefined when there is none. */
async function startTime(pid: number): Promise<string | undefined> {
  const stat = await orUndefined(readFile(`/proc/${pid}/stat`, 'utf8'), 'the process has ended');
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields?.[0] === 'Z' ? undefined : fields?.[19];
}

const alive = async (m: ProcessMark): Promise<boolean> => (await startTime(m.pid)) === m.started;
const markOf = async (pid: number): Promise<ProcessMark> => ({ pid, started: (await startTime(pid)) ?? '' });

/** Writes or replaces a record; returns a function that deletes it. */
export async function recordSandbox(
  id: string,
  pids: readonly number[],
  cgroups: readonly string[],
): Promise<() => Promise<void>> {
  const file = `${await stateDir()}/${id}.json`;
  const record: Record_ = {
    id,
    cgroups,
    owner: await markOf(process.pid),
    processes: await Promise.all(pids.map(markOf)),
  };
  await replaceFile(file, JSON.stringify(record));
  return () => rm(file, { force: true });
}

/**
 * Environment variable of a sandbox's processes (bubblewrap and PID 1) with its name, by which they are found when no
 * pid is recorded yet.
 */
export const NAME_VARIABLE = 'DART_DESKTOP';
/** Path of the agent's code inside a sandbox. */
export const AGENT_PATH = '/run/agent.py';

/**
 * The sandbox that a process belongs to, or undefined. The agent's environment can be read by root only (it refuses
 * inspection), so it has its name on its command line as well.
 */
export async function sandboxOf(pid: number): Promise<string | undefined> {
  const env = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => ''); // it has ended, or belongs to another user
  const variable = env.split('\0').find((v) => v.startsWith(`${NAME_VARIABLE}=`));
  if (variable) return variable.slice(NAME_VARIABLE.length + 1);
  const args = (await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')).split('\0');
  return args.at(-3) === AGENT_PATH ? args.at(-2) : undefined;
}

/** Processes that carry one of these names. */
async function named(ids: ReadonlySet<string>): Promise<number[]> {
  const found: number[] = [];
  for (const pid of (await readdir('/proc')).filter((n) => /^\d+$/.test(n))) {
    const name = await sandboxOf(Number(pid));
    if (name !== undefined && ids.has(name)) found.push(Number(pid));
  }
  return found;
}

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    /* ended just now */
  }
};

/** Kills orphaned sandboxes and deletes their records; returns how many there were. */
export async function reapSandboxes(): Promise<number> {
  const dir = await stateDir();
  await removeUnfinished(dir);
  const dead: Record_[] = [];
  for (const name of await readdir(dir)) {
    if (!name.endsWith('.json')) continue;
    let record: Record_;
    try {
      record = JSON.parse(await readFile(`${dir}/${name}`, 'utf8')) as Record_;
    } catch {
      continue;
    }
    if (!(await alive(record.owner))) dead.push(record);
  }
  if (dead.length === 0) return 0;
  for (const m of dead.flatMap((r) => r.processes ?? [])) if (await alive(m)) kill(m.pid);
  for (const pid of await named(new Set(dead.map((r) => r.id)))) kill(pid);
  for (const r of dead) {
    for (const d of r.cgroups) await removeGroup(d);
    await rm(`${dir}/${r.id}.json`, { force: true });
  }
  return dead.length;
}
