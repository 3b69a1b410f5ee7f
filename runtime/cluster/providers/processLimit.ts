import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { release } from 'node:os';

/** How the number of a sandbox's processes is limited, and for an ordinary user its memory. */
export interface ProcessLimit {
  /**
   * Whose processes count: the sandbox's own (`namespace`: the kernel counts by user namespace, or the sandbox has a uid
   * of its own; `scope`: a control group of systemd's), or everything that this user runs (`user`).
   */
  readonly counts: 'namespace' | 'scope' | 'user';
  /** Whether the prefix limits the memory of the whole sandbox. */
  readonly memory: boolean;
  /** RLIMIT_NPROC inside the sandbox. */
  readonly max: number;
  /** Words in front of the sandbox's command. */
  readonly prefix: readonly string[];
  /** Variables that the prefix needs. */
  readonly env: Readonly<Record<string, string>>;
}

/** Since Linux 5.14 RLIMIT_NPROC is counted by user namespace. */
export function countsByNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((n) => Number.parseInt(n, 10));
  return major > 5 || (major === 5 && minor >= 14);
}

export interface ScopeLimits {
  readonly tasks: boolean;
  readonly memory: boolean;
}

/** The facts about this machine that the decision needs. */
export interface ProcessLimitFacts {
  readonly kernel: string;
  readonly root: boolean;
  /** Which limits of a scope are effective where systemd gives this user scopes. */
  readonly scopes: () => Promise<ScopeLimits>;
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

export async function processLimit(
  pids: number,
  memoryMb: number,
  facts: ProcessLimitFacts = thisMachine,
): Promise<ProcessLimit> {
  // Root's sandboxes have a uid each, and control groups.
  if (facts.root) return { counts: 'namespace', memory: false, max: pids, prefix: [], env: {} };
  const byNamespace = countsByNamespace(facts.kernel),
    scopes = await facts.scopes();
  const inScope = scopes.memory || (scopes.tasks && !byNamespace);
  const limits = [
    ...(scopes.tasks ? [`TasksMax=${pids}`] : []),
    ...(scopes.memory ? [`MemoryMax=${memoryMb}M`, 'MemorySwapMax=0'] : []),
  ];
  const start = inScope ? { prefix: scope(limits), env: userManager() } : { prefix: [], env: {} };
  if (byNamespace) return { counts: 'namespace', memory: scopes.memory, max: pids, ...start };
  if (scopes.tasks) return { counts: 'scope', memory: scopes.memory, max: NO_LIMIT, ...start };
  return { counts: 'user', memory: scopes.memory, max: (await facts.threads()) + SHARED_ROOM * pids, ...start };
}

const scope = (limits: readonly string[]): string[] => [
  ...['systemd-run', '--user', '--scope', '--quiet', '--collect'],
  ...limits.flatMap((l) => ['-p', l]),
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
let scopes: Promise<ScopeLimits> | undefined;

/** Requests a scope and reads its effective limits: where a controller was not delegated, there is none. */
function scopeLimitsStand(): Promise<ScopeLimits> {
  const [file, ...args] = scope(['TasksMax=77', 'MemoryMax=77M']);
  const read = 'cd "/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)" && cat pids.max memory.max';
  return new Promise((resolve) => {
    execFile(file!, [...args, 'sh', '-c', `${read} 2>/dev/null`], { timeout: 5000 }, (_e, stdout) => {
      const found = stdout.split('\n').map((l) => l.trim());
      resolve({ tasks: found.includes('77'), memory: found.includes(String(77 << 20)) });
    });
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
