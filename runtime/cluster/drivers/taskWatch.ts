import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { errorCode } from '../../domain/index.js';

/** The result of one look at all tasks of a desktop. */
export interface Look {
  /** Some task is running, runnable or in an uninterruptible wait, or ran while we looked. */
  readonly active: boolean;
  /** Some task ran since the previous look. */
  readonly ranSince: boolean;
  /**
   * Smallest time-out (ms) of the poll or epoll calls that tasks sleep in; undefined when none has one. One that is due
   * soon enough is answered at once, before the other tasks are looked at.
   */
  readonly soonestMs: number | undefined;
  /** Processor time of all tasks so far, ms; 0 where some task is at work. */
  readonly ranMs: number;
  /** Whether time-outs could be read (/proc/T/syscall); without them the hold detector must judge. */
  readonly exact: boolean;
  /**
   * Some task has a terminal: what is written to one reaches its reader through a kernel thread, which is not a task of
   * the desktop.
   */
  readonly terminal: boolean;
}

/**
 * The state of a task by its /proc/T/syscall: running, or in a call, with the time-out of a poll. The process state
 * says whether it sleeps there.
 */
export type Doing = { readonly is: 'running' } | { readonly is: 'in a call'; readonly timeoutMs?: number };

// x86-64 and arm64 system call numbers: [poll, epoll_wait, epoll_pwait]; where their time-out is (0-based argument).
// Other calls keep theirs behind pointers and count as having none (runtime/cluster/README.md#settle).
const TIMED: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  x64: { 7: 2, 232: 3, 281: 3 },
  arm64: { 22: 3 },
};

export function parseSyscall(text: string, arch: string = process.arch): Doing {
  if (text.startsWith('running')) return { is: 'running' };
  const f = text.split(' ');
  const nr = Number(f[0]);
  const arg = TIMED[arch]?.[nr];
  if (arg === undefined) return { is: 'in a call' };
  const raw = Number(BigInt(f[arg + 1] ?? '0xffffffff') & 0xffffffffn);
  return raw < 0x80000000 ? { is: 'in a call', timeoutMs: raw } : { is: 'in a call' };
}

/** States of a task that works: running, runnable or just woken (R), in an uninterruptible wait (D). */
const AT_WORK: ReadonlySet<string> = new Set(['R', 'D']);

/**
 * State letter in /proc/T/stat and whether the task has a controlling terminal; the command name before them may
 * contain anything.
 */
export function parseStat(stat: string): { state: string; terminal: boolean } {
  const [state = '', , , , tty = '0'] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 5);
  return { state, terminal: tty !== '0' };
}

/**
 * Time on a run queue, ns, from /proc/T/schedstat (run time, time on a run queue, time slices); 0 where it is missing.
 */
export const parseWait = (schedstat: string): number => (Number(schedstat.split(' ')[1]) || 0) / 1e6;

interface Task {
  readonly key: string;
  readonly path: string;
  readonly sched: number;
  /** Below 0 while it cannot be opened: a program that is just being started, or one that refuses inspection. */
  call: number;
  readonly stat: number;
  /** Its run time and switch count when they were read last. */
  mark: string;
  /** Its state since the mark changed: it cannot be anything else now. */
  doing: Doing | undefined;
  /** Number of the look in which it was last found to have run. */
  ran: number;
}

/** A task is among the first to be looked at until it has slept for so many looks. */
const RECENT_LOOKS = 8;

/**
 * A desktop with more tasks counts as working, and no more are followed: its programs must not use up our descriptors.
 */
const MOST_TASKS = 1024;

/**
 * Looks at every task of one PID namespace through its own /proc. Files stay open between looks, so a look costs three
 * short reads a task that slept all the while; a task's file descriptors die with the task, so a reused number cannot be confused.
 */
export class TaskWatch {
  readonly #proc: string;
  readonly #skip: string;
  readonly #tasks = new Map<string, Task>();
  readonly #buf = Buffer.allocUnsafe(512);
  #hot: Task | undefined;
  #exact: boolean;
  #stale = true;
  #terminal = false;
  #looks = 0;
  /** Whether a file could not be read for want of descriptors or memory. */
  #lacking = false;
  #closed = false;

  /**
   * @param proc a proc file system, e.g. /proc/4711/root/proc @param skip the agent's pid in it, whose work does not
   * count @param exact false: do not try to read time-outs
   */
  constructor(proc: string, skip = '1', exact = process.arch in TIMED) {
    this.#proc = proc;
    this.#skip = skip;
    this.#exact = exact;
  }

  /** `dueMs`: a time-out up to this is all that needs to be known; -1: all tasks are looked at. */
  look(dueMs = -1): Look {
    if (this.#closed) return this.#busy(undefined);
    this.#lacking = false;
    // The task that ran last most likely still runs: then one read is enough.
    if (this.#hot && this.#exact && this.#call(this.#hot).startsWith('running')) return this.#busy(this.#hot);
    this.#hot = undefined;
    this.#looks++;
    this.#terminal = false;
    // The tasks that ran last are looked at first: they most likely work, or soon will.
    const early = this.#scan(this.#recent(), dueMs);
    if (early === undefined) return this.#busy(this.#hot);
    if (early <= dueMs) return this.#due(early);
    // All are marked before any is looked at: one that is woken by another after its turn shows nothing of it until it runs,
    // but the other one has run since it was marked.
    this.#remark();
    const ranSince = this.#stale;
    let soonest = this.#scan(this.#tasks.values(), dueMs);
    if (soonest === undefined) return this.#busy(this.#hot);
    if (soonest <= dueMs) return this.#due(soonest);
    // New tasks are worth looking for only when all known ones sleep.
    if (this.#stale) {
      const more = this.#scan(this.#list(), dueMs);
      if (this.#tasks.size >= MOST_TASKS) return this.#busy(undefined);
      if (more === undefined) return this.#busy(this.#hot);
      if (more <= dueMs) return this.#due(more);
      soonest = Math.min(soonest, more);
    }
    // Tasks that cannot be seen may be working.
    if (this.#lacking) return this.#busy(undefined);
    // Nothing in the list ran since it was marked, so nothing can have been forked either: the look is consistent.
    if (this.#remark()) return this.#busy(undefined);
    this.#stale = false;
    return {
      active: false,
      ranSince,
      soonestMs: soonest === Infinity ? undefined : soonest,
      ranMs: this.#ranMs(),
      exact: this.#exact,
      terminal: this.#terminal,
    };
  }

  #busy(hot: Task | undefined): Look {
    this.#hot = hot;
    return this.#cutShort({ active: true, soonestMs: undefined });
  }
  #due(soonestMs: number): Look {
    return this.#cutShort({ active: false, soonestMs });
  }
  /** A look that ended before all tasks were seen: the next one looks for new ones, too. */
  #cutShort(found: Pick<Look, 'active' | 'soonestMs'>): Look {
    this.#stale = true;
    return { ...found, ranSince: true, ranMs: 0, exact: this.#exact, terminal: this.#terminal };
  }

  /**
   * The smallest time-out among sleeping tasks (Infinity: none has one), or the first that is due; undefined, and `hot`
   * set, when one is at work.
   */
  #scan(tasks: Iterable<Task>, dueMs: number): number | undefined {
    let soonest = Infinity;
    for (const t of tasks) {
      const doing = this.#doing(t);
      if (doing.is === 'running') {
        this.#hot = t;
        return undefined;
      }
      if (doing.timeoutMs !== undefined) soonest = Math.min(soonest, doing.timeoutMs);
      if (soonest <= dueMs) break;
    }
    return soonest;
  }
  /** The tasks that ran not long ago, last first, each with a mark of now. */
  *#recent(): Iterable<Task> {
    const since = this.#looks - RECENT_LOOKS,
      recent = [...this.#tasks.values()].filter((t) => t.ran >= since).sort((a, b) => b.ran - a.ran);
    for (const t of recent) if (this.#marked(t)) yield t;
  }
  #doing(t: Task): Doing {
    let doing: Doing = t.doing ?? { is: 'in a call' };
    if (this.#exact && !t.doing) {
      const text = this.#call(t);
      if (text === EPERM) this.#exact = false;
      else if (text !== '') doing = parseSyscall(text);
      if (doing.is === 'running') return doing;
      if (text !== '') t.doing = doing;
    }
    // Woken, but not yet taken up by the idle core it was given to, a task still shows the call it slept in, and neither
    // its run time nor its switch count has moved: only its state says so. That lasts until the core is awake, on a busy
    // host for milliseconds.
    const { state, terminal } = parseStat(this.#read(t.stat));
    if (terminal) this.#terminal = true;
    return AT_WORK.has(state) ? { is: 'running' } : doing;
  }

  /** ms that each task has waited for a processor since it began, by its number. */
  waits(): ReadonlyMap<string, number> {
    return new Map([...this.#tasks].map(([key, t]) => [key, parseWait(this.#read(t.sched))]));
  }

  close(): void {
    this.#closed = true;
    for (const t of this.#tasks.values()) this.#drop(t);
  }

  #ranMs(): number {
    let ns = 0;
    for (const t of this.#tasks.values()) ns += Number.parseInt(t.mark, 10) || 0;
    return ns / 1e6;
  }

  /** Reads every task's run time and switch count again; true when one changed or ended. */
  #remark(): boolean {
    let changed = false;
    for (const t of this.#tasks.values()) {
      const { mark } = t;
      if (!this.#marked(t) || t.mark !== mark) changed = true;
    }
    return changed;
  }
  /** Reads its run time and switch count; false when it has ended. What changed makes the list of tasks stale. */
  #marked(t: Task): boolean {
    const m = this.#read(t.sched);
    if (m === t.mark && m !== '') return true;
    this.#stale = true;
    if (m === '') {
      this.#drop(t);
      return false;
    }
    t.mark = m;
    t.doing = undefined;
    t.ran = this.#looks;
    return true;
  }

  /** Find tasks that are not known yet. */
  #list(): Task[] {
    const found: Task[] = [];
    for (const pid of this.#entries(this.#proc)) {
      const c = pid.charCodeAt(0);
      if (c < 48 || c > 57 || pid === this.#skip) continue;
      for (const tid of this.#entries(`${this.#proc}/${pid}/task`)) {
        if (this.#tasks.has(tid)) continue;
        const path = `${this.#proc}/${pid}/task/${tid}/`;
        const fds: number[] = [];
        try {
          for (const f of ['schedstat', 'stat']) fds.push(openSync(path + f, 'r'));
          const [sched, stat] = fds as [number, number],
            t: Task = {
              key: tid,
              path,
              sched,
              call: -1,
              stat,
              mark: this.#read(sched),
              doing: undefined,
              ran: this.#looks,
            };
          this.#tasks.set(tid, t);
          found.push(t);
          if (this.#tasks.size >= MOST_TASKS) return found;
        } catch (e) {
          this.#missed(e);
          for (const fd of fds) closeSync(fd);
        }
      }
    }
    return found;
  }

  #drop(t: Task): void {
    for (const fd of [t.sched, t.call, t.stat]) if (fd >= 0) closeSync(fd);
    this.#tasks.delete(t.key);
    if (this.#hot === t) this.#hot = undefined;
  }

  /** The text of a task's /proc/T/syscall; '' when it cannot be opened or the task is gone. */
  #call(t: Task): string {
    if (t.call < 0) {
      try {
        t.call = openSync(`${t.path}syscall`, 'r');
      } catch (e) {
        this.#missed(e);
        return '';
      }
    }
    return this.#read(t.call);
  }

  #entries(dir: string): string[] {
    try {
      return readdirSync(dir);
    } catch (e) {
      this.#missed(e);
      return [];
    }
  }
  #missed(e: unknown): void {
    if (LACKING.has(errorCode(e))) this.#lacking = true;
  }

  /** Text of an open proc file; '' when the task is gone, EPERM when we may not read it. */
  #read(fd: number): string {
    try {
      return this.#buf.toString('latin1', 0, readSync(fd, this.#buf, 0, 512, 0));
    } catch (e) {
      const code = errorCode(e);
      return code === 'EPERM' || code === 'EACCES' ? EPERM : '';
    }
  }
}

const EPERM = 'EPERM';
/** Errors that mean that this process lacks something, not that the task is gone. */
const LACKING: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);
