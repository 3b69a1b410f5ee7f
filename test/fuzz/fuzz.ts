import { performance } from 'node:perf_hooks';
import { random, type Random, ServiceError, StudioError, messageOf } from '../../runtime/domain/index.js';
import { BadLine } from '../../runtime/cluster/agentReplies.js';
import { Unusable } from '../../runtime/interchange/types.js';

/** One input, made and not tried yet. */
export interface Case {
  /** To make a failure understood; bounded. */
  readonly input: string;
  /** Resolves or rejects as the runtime does with it; may be run again. */
  run(): Promise<unknown>;
}
export interface Target {
  readonly name: string;
  open?(): Promise<void>;
  make(r: Random): Case | Promise<Case>;
  /** Where the work is done elsewhere: the longest that its event loop was held up by the latest case, and its memory. */
  elsewhere?(): Promise<{ readonly longestMs: number; readonly bytes: number }>;
  close?(): Promise<void>;
}
export interface FuzzOptions {
  readonly seed: number;
  readonly ms: number;
  /** Cases of each target at most: the same ones on every machine that has the time. */
  readonly most?: number;
  readonly targets: readonly Target[];
  /** Only this case of each target: to see a failure again. */
  readonly only?: number;
  readonly log?: (line: string) => void;
}
export interface Failure {
  readonly target: string;
  readonly case: number;
  readonly what: string;
  readonly input: string;
}
export interface FuzzReport {
  readonly seed: number;
  readonly ms: number;
  readonly targets: Readonly<
    Record<
      string,
      {
        readonly cases: number;
        /** How they ended: 'taken', or the kind of the error. */
        readonly ended: Readonly<Record<string, number>>;
        readonly longestMs: number;
        readonly grownMb: number;
      }
    >
  >;
  readonly failures: readonly Failure[];
}

/** The event loop is never held up longer than this, and memory never grows by more. */
export const MOST_MS = 50,
  MOST_BYTES = 768 << 20;
/** One case may take so long altogether. */
const HANGS_MS = 20_000,
  /** Cases of one target in a row. */
  TURN = 10,
  MOST_FAILURES = 20;

/** The kind of an error that was foreseen; undefined for any other. */
export function kindOf(e: unknown): string | undefined {
  if (e instanceof StudioError) return e.kind === 'internal' ? undefined : e.kind;
  if (e instanceof ServiceError) return e.kind;
  if (e instanceof Unusable) return 'unusable';
  if (e instanceof BadLine) return 'bad line';
  return undefined;
}

/**
 * The longest stretch in which nothing else could run while `run` was under way: by the clock, but not more than the
 * processor time of this process in it, since a busy machine stops a process too.
 */
async function heldUp(run: () => Promise<unknown>): Promise<{ readonly ms: number; readonly ended: unknown }> {
  let ms = 0,
    last = performance.now(),
    used = cpuMs(),
    going = true;
  const look = (): void => {
    const now = performance.now(),
      cpu = cpuMs();
    ms = Math.max(ms, Math.min(now - last, cpu - used));
    last = now;
    used = cpu;
    if (going) setImmediate(look);
  };
  setImmediate(look);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<unknown>((done) => {
    timer = setTimeout(() => done('hangs'), HANGS_MS);
  });
  const ended = await Promise.race([
    Promise.resolve()
      .then(run)
      .then(
        () => 'taken',
        (e: unknown) => e ?? 'nothing',
      ),
    late,
  ]);
  clearTimeout(timer);
  await new Promise<void>((done) => setImmediate(done));
  look();
  going = false;
  return { ms, ended };
}

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** Tries the targets in turn until the time is over. */
export async function fuzz(o: FuzzOptions): Promise<FuzzReport> {
  const failures: Failure[] = [],
    stray: unknown[] = [],
    onStray = (e: unknown): void => void stray.push(e);
  process.on('uncaughtException', onStray).on('unhandledRejection', onStray);
  const tallies = o.targets.map((target) => new Tally(target));
  try {
    for (const t of tallies) await t.target.open?.();
    const end = performance.now() + o.ms,
      { most = Infinity } = o,
      goesOn = (): boolean => performance.now() < end && failures.length < MOST_FAILURES;
    const one = async (t: Tally, n: number): Promise<void> => {
      const c = await t.target.make(random(`${o.seed}/${t.target.name}/${n}`)),
        wrong = [...(await t.judge(c)), ...stray.splice(0).map((e) => `uncaught: ${stackOf(e)}`)];
      for (const what of wrong) {
        failures.push({ target: t.target.name, case: n, what, input: c.input.slice(0, 4000) });
        o.log?.(`${t.target.name} case ${n}: ${what}\n${c.input.slice(0, 300)}`);
      }
    };
    if (o.only !== undefined) for (const t of tallies) await one(t, o.only);
    else
      while (goesOn() && tallies.some((t) => t.cases < most))
        for (const t of tallies) for (let i = 0; i < TURN && t.cases < most && goesOn(); i++) await one(t, t.cases);
  } finally {
    for (const t of tallies) await t.target.close?.();
    process.off('uncaughtException', onStray).off('unhandledRejection', onStray);
  }
  return {
    seed: o.seed,
    ms: o.ms,
    targets: Object.fromEntries(tallies.map((t) => [t.target.name, t.report()])),
    failures,
  };
}

class Tally {
  readonly target: Target;
  cases = 0;
  readonly #ended = new Map<string, number>();
  #longestMs = 0;
  #before: number | undefined;
  #grown = 0;

  constructor(target: Target) {
    this.target = target;
  }

  /** What is wrong with how a case went, in words. */
  async judge(c: Case): Promise<string[]> {
    this.cases++;
    const wrong: string[] = [];
    let { ms, ended } = await this.#try(c);
    const kind = ended === 'taken' ? 'taken' : kindOf(ended);
    this.#ended.set(kind ?? 'unforeseen', (this.#ended.get(kind ?? 'unforeseen') ?? 0) + 1);
    if (ended === 'hangs') return [`it did not end in ${HANGS_MS} ms`];
    if (kind === undefined) wrong.push(`an error that nobody foresaw: ${stackOf(ended)}`);
    // On a busy machine a turn may be late for reasons of others: what counts is slow every time.
    for (let again = 0; ms > MOST_MS && again < 5; again++) ({ ms, ended } = atMost(ms, await this.#try(c)));
    this.#longestMs = Math.max(this.#longestMs, ms);
    if (ms > MOST_MS) wrong.push(`the event loop was held up for ${ms.toFixed(0)} ms`);
    const bytes = (await this.target.elsewhere?.())?.bytes ?? process.memoryUsage.rss();
    this.#before ??= bytes;
    this.#grown = Math.max(this.#grown, bytes - this.#before);
    if (bytes - this.#before > MOST_BYTES)
      wrong.push(`memory grew by ${((bytes - this.#before) / 2 ** 20).toFixed(0)} MB`);
    return wrong;
  }
  async #try(c: Case): Promise<{ readonly ms: number; readonly ended: unknown }> {
    const here = await heldUp(() => c.run()),
      there = await this.target.elsewhere?.();
    return there ? { ms: there.longestMs, ended: here.ended } : here;
  }
  report(): FuzzReport['targets'][string] {
    return {
      cases: this.cases,
      ended: Object.fromEntries([...this.#ended].sort(([a], [b]) => (a < b ? -1 : 1))),
      longestMs: Math.round(this.#longestMs * 10) / 10,
      grownMb: Math.round(this.#grown / 2 ** 20),
    };
  }
}
const atMost = (ms: number, t: { readonly ms: number; readonly ended: unknown }): { ms: number; ended: unknown } => ({
  ...t,
  ms: Math.min(ms, t.ms),
});
const stackOf = (e: unknown): string => (e instanceof Error ? (e.stack ?? e.message) : messageOf(e)).slice(0, 1500);
