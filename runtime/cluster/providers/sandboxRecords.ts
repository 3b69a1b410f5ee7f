import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StudioError, messageOf } from '../../domain/index.js';
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

/** A RAM disk, because sandboxes do not survive a reboot. */
const SHM = '/dev/shm';

/**
 * The folder of records, and of the mount point that root's sandboxes use. Anyone may create folders in `base`: one of
 * the usual name that another user created is not trusted, and another name is taken that nobody can foresee. Rejects
 * with `desktop.unavailable` where no folder can be made.
 */
export async function stateDir(base = SHM): Promise<string> {
  try {
    await orUndefined(mkdir(usualDir(base), { mode: 0o755 }), 'it is there already, or cannot be ours');
    const [dir = await mkdtemp(`${usualDir(base)}-`)] = await ownDirs(base);
    await chmod(dir, 0o755);
    await mkdir(join(dir, 'mnt'), { recursive: true, mode: 0o755 });
    return dir;
  } catch (e) {
    throw new StudioError(
      'desktop.unavailable',
      `The records of local desktops cannot be kept in ${base}: ${messageOf(e)}`,
      `Make ${base} writable for everybody, with the sticky bit (chmod 1777 ${base}), or use Docker.`,
      { cause: e },
    );
  }
}
const usualDir = (base: string): string => join(base, `dart-studio-${process.getuid!()}`);

/** Folders of records that are this user's and that nobody else can write into; the usual one is first. */
async function ownDirs(base: string): Promise<string[]> {
  const usual = usualDir(base),
    own: string[] = [];
  for (const name of (await readdir(base)).sort()) {
    const dir = join(base, name);
    if (dir !== usual && !dir.startsWith(`${usual}-`)) continue;
    const s = await orUndefined(lstat(dir), 'it has just gone');
    if (s?.isDirectory() && s.uid === process.getuid!() && (s.mode & 0o022) === 0) own.push(dir);
  }
  return own;
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
  return nameIn(await startedWith(pid));
}

/** A process's environment and command line; undefined where it has ended or belongs to another user. */
interface StartedWith {
  readonly environment: string | undefined;
  readonly command: string | undefined;
}
async function startedWith(pid: number): Promise<StartedWith> {
  const read = (file: string): Promise<string | undefined> =>
    orUndefined(readFile(`/proc/${pid}/${file}`, 'latin1'), 'it has ended, or belongs to another user');
  return { environment: await read('environ'), command: await read('cmdline') };
}
function nameIn({ environment = '', command = '' }: StartedWith): string | undefined {
  const variable = environment.split('\0').find((v) => v.startsWith(`${NAME_VARIABLE}=`));
  if (variable) return variable.slice(NAME_VARIABLE.length + 1);
  const args = command.split('\0');
  return args.at(-3) === AGENT_PATH ? args.at(-2) : undefined;
}

/** Whether a process is between two programs (execve), when it has neither environment nor command line. */
async function isBetweenPrograms(pid: number, p: StartedWith): Promise<boolean> {
  if (p.environment !== '' || p.command !== '') return false;
  // Threads of the kernel and processes that have ended have neither for good, and no program either.
  return (await orUndefined(readlink(`/proc/${pid}/exe`), 'it has no program')) !== undefined;
}

/** Scans of `killNamed` at most: a process that hides its command line for good looks as if it were starting. */
const MAX_SCANS = 50;

/**
 * Kills every process that carries one of these names. One scan is not enough: a process may start another while it is
 * being looked for, and cannot be told while it changes its program. So scans go on until two in a row find nobody new.
 */
async function killNamed(ids: ReadonlySet<string>): Promise<void> {
  const killed = new Set<number>();
  for (let scan = 0, quiet = 0; quiet < 2 && scan < MAX_SCANS; scan++) {
    quiet++;
    for (const pid of (await readdir('/proc')).filter((n) => /^\d+$/.test(n)).map(Number)) {
      const p = await startedWith(pid),
        name = nameIn(p);
      if (name !== undefined && ids.has(name)) {
        if (!killed.has(pid)) quiet = 0;
        killed.add(pid);
        kill(pid);
      } else if (await isBetweenPrograms(pid, p)) quiet = 0;
    }
  }
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
  await stateDir();
  const dead: (Record_ & { readonly file: string })[] = [];
  for (const dir of await ownDirs(SHM)) {
    await removeUnfinished(dir);
    for (const name of await readdir(dir)) {
      if (!name.endsWith('.json')) continue;
      const file = join(dir, name);
      let record: Record_;
      try {
        record = JSON.parse(await readFile(file, 'utf8')) as Record_;
      } catch {
        continue;
      }
      if (!(await alive(record.owner))) dead.push({ ...record, file });
    }
  }
  if (dead.length === 0) return 0;
  for (const m of dead.flatMap((r) => r.processes ?? [])) if (await alive(m)) kill(m.pid);
  await killNamed(new Set(dead.map((r) => r.id)));
  for (const r of dead) {
    for (const d of r.cgroups) await removeGroup(d);
    await rm(r.file, { force: true });
  }
  return dead.length;
}
