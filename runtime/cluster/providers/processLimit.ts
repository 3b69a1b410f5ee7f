import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { release } from 'node:os';

/** How the number of a sandbox's processes is limited. */
export interface ProcessLimit {
  /**
   * Whose processes count: the sandbox's own (`namespace`: the kernel counts by user namespace, or the sandbox has a uid
   * of its own; `scope`: a control group of systemd's), or everything that this user runs (`user`).
   */
  readonly counts: 'namespace' | 'scope' | 'user';
  /** RLIMIT_NPROC inside the sandbox. */
  readonly max: number;
  /** In front of the sandbox's command. */
  readonly prefix: readonly string[];
  /** Variables that the prefix needs. */
  readonly env: Readonly<Record<string, string>>;
}

/** Since Linux 5.14 RLIMIT_NPROC is counted by user namespace. */
export function countsByNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((n) => Number.parseInt(n, 10));
  return major > 5 || (major === 5 && minor >= 14);
}

/** The facts about this machine that the decision needs. */
export interface ProcessLimitFacts {
  readonly kernel: string;
  readonly root: boolean;
  /** Whether systemd gives this user scopes with an effective limit on tasks. */
  readonly scopes: () => Promise<boolean>;
  /** Threads that this user runs now. */
  readonly threads: () => Promise<number>;
}

/**
 * A sandbox that shares its count with the whole user needs room besides what already runs, for itself and for other
 * sandboxes.
 */
const SHARED_ROOM = 16;

/** Linux's own ceiling for process ids: in effect no limit. */
const NO_LIMIT = 4_194_304;

export async function processLimit(pids: number, facts: ProcessLimitFacts = thisMachine): Promise<ProcessLimit> {
  // Root's sandboxes have a uid each.
  if (facts.root || countsByNamespace(facts.kernel)) return { counts: 'namespace', max: pids, prefix: [], env: {} };
  if (await facts.scopes()) return { counts: 'scope', max: NO_LIMIT, prefix: scope(pids), env: userManager() };
  return { counts: 'user', max: (await facts.threads()) + SHARED_ROOM * pids, prefix: [], env: {} };
}

const scope = (pids: number): string[] => [
  'systemd-run',
  '--user',
  '--scope',
  '--quiet',
  '--collect',
  '-p',
  `TasksMax=${pids}`,
  '--',
];

/** How the systemd of this user is reached. */
const userManager = (): Record<string, string> =>
  Object.fromEntries(
    ['XDG_RUNTIME_DIR', 'DBUS_SESSION_BUS_ADDRESS'].flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

const thisMachine: ProcessLimitFacts = {
  kernel: release(),
  root: process.getuid?.() === 0,
  scopes: () => (scopes ??= scopeLimitsStand()),
  threads: threadsOfUser,
};
let scopes: Promise<boolean> | undefined;

/** Requests a scope and reads its effective limit: where the controller was not delegated, there is none. */
function scopeLimitsStand(): Promise<boolean> {
  const [file, ...args] = scope(77);
  return new Promise((resolve) => {
    execFile(
      file!,
      [...args, 'sh', '-c', 'cat "/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/pids.max"'],
      { timeout: 5000 },
      (e, stdout) => resolve(e === null && stdout.trim() === '77'),
    );
  });
}

async function threadsOfUser(): Promise<number> {
  const me = process.getuid!();
  let n = 0;
  for (const pid of (await readdir('/proc')).filter((d) => /^\d+$/.test(d))) {
    try {
      if ((await stat(`/proc/${pid}`)).uid !== me) continue;
      n += Number(/^Threads:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
    } catch {
      /* it has ended */
    }
  }
  return n;
}
