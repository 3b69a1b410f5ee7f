import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';

/** One figure that must hold; `goal` is written the way it is compared: ">= 10", "<= 1", "> 0". */
export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly goal: string;
  readonly holds: boolean;
  /** The most that is possible where it was measured. */
  readonly most?: number;
}
export interface BenchReport extends RunStamp {
  readonly bench: string;
  readonly machine: Record<string, unknown>;
  readonly rows: readonly Record<string, unknown>[];
  readonly bars: readonly Bar[];
}

export interface Summary {
  readonly n: number;
  readonly min: number;
  readonly p50: number;
  readonly mean: number;
  readonly p95: number;
  readonly max: number;
}

/** Median and range of a sample; NaN everywhere when it is empty. */
export function summary(xs: readonly number[]): Summary {
  const s = [...xs].sort((a, b) => a - b);
  const q = (p: number): number =>
    s.length === 0 ? NaN : s[Math.min(s.length - 1, Math.floor(p * (s.length - 1) + 0.5))]!;
  return {
    n: s.length,
    min: q(0),
    p50: q(0.5),
    mean: s.reduce((a, b) => a + b, 0) / s.length,
    p95: q(0.95),
    max: q(1),
  };
}

export function bar(name: string, value: number, unit: string, goal: string): Bar {
  const m = /^(>=|<=|>)\s*(.+)$/.exec(goal);
  if (!m) throw new Error(`goal '${goal}' is not ">= N", "<= N" or "> N"`);
  const g = Number(m[2]),
    holds = { '>=': value >= g, '<=': value <= g, '>': value > g }[m[1] as '>=' | '<=' | '>'];
  return { name, value, unit, goal, holds };
}

/** A figure that must reach a share of the most that is possible here. */
export function barOfMost(name: string, value: number, unit: string, most: number, share = 0.9): Bar {
  const goal = share * most;
  return {
    ...bar(name, value, `${unit} (at most ${most.toPrecision(3)} here)`, `>= ${Number(goal.toPrecision(3))}`),
    holds: value >= goal,
    most,
  };
}

export function benchArgs(argv = process.argv.slice(2)): { quick: boolean; json: string | undefined; rest: string[] } {
  const rest: string[] = [];
  let quick = false;
  let json: string | undefined;
  for (let i = 0; i < argv.length; i++) {
    if (argv[i] === '--quick') quick = true;
    else if (argv[i] === '--json') json = argv[++i];
    else rest.push(argv[i]!);
  }
  return { quick, json, rest };
}

/** One table for each kind of row, so that none has columns that are empty in all of its rows. */
const bySection = (rows: readonly Record<string, unknown>[]): readonly (readonly Record<string, unknown>[])[] => {
  const sections = new Map<unknown, Record<string, unknown>[]>();
  for (const { section, ...row } of rows) {
    const there = sections.get(section);
    if (there) there.push(row);
    else sections.set(section, [row]);
  }
  return [...sections.values()];
};

/** Which run of a benchmark figures come from: everything that it writes carries the same. */
export interface RunStamp {
  readonly commit: string;
  readonly at: string;
}
export function stamp(): RunStamp {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const at = new Date().toISOString();
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no') !== '';
    return { commit: `${git('rev-parse', '--short', 'HEAD')}${changed ? ', with changes' : ''}`, at };
  } catch {
    return { commit: 'unknown', at };
  }
}
export const machine = (): Record<string, unknown> => ({
  cpu: cpus()[0]?.model ?? '?',
  cores: cpus().length,
  memoryGb: Math.round(totalmem() / 2 ** 30),
  kernel: release(),
  node: process.version,
});
/**
 * The same of runs that were made before: a report of them has their commits, machine and time, not its own. Where there
 * are none it is of now.
 */
export function madeOf(
  runs: readonly {
    readonly commit: string;
    readonly machine: Readonly<Record<string, unknown>>;
    readonly startedAt: string;
  }[],
): RunStamp & { readonly machine: Record<string, unknown> } {
  const [first] = runs;
  if (!first) return { ...stamp(), machine: machine() };
  return {
    commit: [...new Set(runs.map((r) => r.commit))].join(' '),
    at: runs
      .map((r) => r.startedAt)
      .sort()
      .at(-1)!,
    machine: { ...first.machine },
  };
}
/** As a line of a page; `scripts/readme.mjs` compares it with the JSON's. */
export const stampLine = ({ commit, at }: RunStamp): string => `Run of ${at}, commit ${commit}.`;

/** Prints the rows (or `shown` of them, a table each) and the bars, and writes the JSON when asked. */
export function finish(
  bench: string,
  rows: readonly Record<string, unknown>[],
  bars: readonly Bar[],
  json?: string,
  shown: readonly (readonly Record<string, unknown>[])[] = bySection(rows),
  made: RunStamp & { readonly machine?: Record<string, unknown> } = stamp(),
): void {
  const { commit, at } = made,
    measured = made.machine ?? { ...machine(), loadavg: loadavg().map((x) => Math.round(x * 100) / 100) };
  for (const t of shown) console.table(t);
  if (shown.length > 0)
    for (const b of bars)
      console.log(
        `${b.holds ? 'holds ' : 'MISSED'}  ${b.name} = ${Number(b.value.toPrecision(4))} ${b.unit} (goal ${b.goal})`,
      );
  if (json)
    writeFileSync(
      json,
      JSON.stringify({ bench, commit, at, machine: measured, rows, bars } satisfies BenchReport, null, 2) + '\n',
    );
}
