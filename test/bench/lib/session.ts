import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Bar } from './report.js';
import { benchArgs, finish, madeOf, stampLine } from './report.js';
import {
  Interrupted,
  Lab,
  StatusLine,
  interruptSignal,
  writeAtomic,
  type Experiment,
  type RunResult,
} from './experiments.js';

/** What a report says of the results there are so far. */
export interface Written {
  readonly rows: readonly Record<string, unknown>[];
  readonly bars: readonly Bar[];
  readonly markdown: string;
  readonly svg: string;
}
export interface SessionArgs {
  readonly quick: boolean;
  readonly json: string | undefined;
  flag(name: string): boolean;
  option(name: string): string | undefined;
  list(name: string): readonly string[] | undefined;
  numbers(name: string, otherwise: readonly number[]): readonly number[];
}

export function sessionArgs(argv?: string[]): SessionArgs {
  const { quick, json, rest } = benchArgs(argv);
  const option = (name: string): string | undefined => {
    const i = rest.indexOf(name);
    return i < 0 ? undefined : rest[i + 1];
  };
  const list = (name: string): readonly string[] | undefined =>
    option(name)
      ?.split(',')
      .filter((s) => s !== '');
  const numbers = (name: string, otherwise: readonly number[]): readonly number[] => {
    const given = list(name)?.map(Number) ?? otherwise;
    if (given.length === 0 || given.some((n) => !Number.isSafeInteger(n) || n < 0))
      throw new Error(`${name}: whole numbers separated by commas are needed`);
    return given;
  };
  return { quick, json, flag: (n) => rest.includes(n), option, list, numbers };
}

/**
 * `npm run bench:NAME`: does the experiments in order and writes the report after each of them, so that what is in the
 * folder is whole at any moment. Run folders are kept under `--work` (default .cache/bench/NAME), results go to `--out`
 * (default dist/bench/NAME): NAME.json, .md, .svg and runs.jsonl, one line a run: what the tables are made from.
 * `--report`: only write the report of what there is, in `--work` or in runs.jsonl. `--only VARIANT[,VARIANT]`: does the
 * experiments of these alone, and the report has them beside what is in runs.jsonl. Ctrl-C ends it cleanly; the same
 * command goes on.
 */
export async function session(
  bench: string,
  args: SessionArgs,
  experiments: readonly Experiment[],
  report: (results: readonly RunResult[], failed: readonly string[]) => Written,
): Promise<void> {
  const began = Date.now(),
    log = new StatusLine(),
    signal = interruptSignal(),
    provider = (args.option('--provider') ?? 'local') as 'auto' | 'docker' | 'local';
  const name = args.quick ? `${bench}-quick` : bench,
    out = resolve(args.option('--out') ?? join('dist/bench', name)),
    runs = join(out, 'runs.jsonl');
  const lab = new Lab({
    bench,
    dir: args.option('--work') ?? join('.cache/bench', name),
    runtime: resolve('dist/runtime.js'),
    provider,
    signal,
    log,
  });
  const given = process.argv.slice(2),
    command = `npm run ${process.env['npm_lifecycle_event'] ?? `bench:${bench}`}${given.length > 0 ? ` -- ${given.join(' ')}` : ''}`;
  const failed: string[] = [];
  mkdirSync(out, { recursive: true });
  const only = variantsOf(args, experiments),
    reportOnly = args.flag('--report'),
    kept = reportOnly || only !== undefined,
    done = kept ? readRuns(runs) : new Map<string, RunResult>();
  for (const e of kept ? experiments : []) {
    const there = lab.finished(e);
    if (there) done.set(e.name, there);
  }
  const resultsOf = (): RunResult[] => inOrder(experiments, done, only !== undefined);
  const write = (): Written => {
    const results = resultsOf(),
      w = report(results, failed),
      // Runs may have been made earlier, or elsewhere.
      made = madeOf(results);
    writeAtomic(join(out, `${bench}.md`), `${w.markdown}\n${stampLine(made)}\n\nCommand: \`${command}\`\n`);
    writeAtomic(join(out, `${bench}.svg`), w.svg);
    writeAtomic(runs, results.map((r) => JSON.stringify(r) + '\n').join(''));
    writeAtomic(
      join(out, `${bench}.json`),
      JSON.stringify({ bench, ...made, command, rows: w.rows, bars: w.bars }, null, 1) + '\n',
    );
    return w;
  };
  for (const [i, e] of experiments.entries()) {
    if (signal.aborted) break;
    if (reportOnly || only?.includes(e.variant) === false) continue;
    try {
      done.set(e.name, await lab.run(e, `[${i + 1}/${experiments.length}]`));
      write();
    } catch (error) {
      if (error instanceof Interrupted) break;
      // One more try of the same experiment is a matter of starting the command again.
      failed.push(`${e.name}: ${(error as Error).message}`);
      log.note(`FAILED ${failed.at(-1)!}`);
    }
  }
  const w = write();
  finish(bench, w.rows, w.bars, args.json, undefined, madeOf(resultsOf()));
  console.log(
    `${out}; ${resultsOf().length} of ${experiments.length} runs, ${((Date.now() - began) / 1000).toFixed(0)} s`,
  );
  if (signal.aborted) process.exitCode = 130;
  else if (failed.length > 0) process.exitCode = 1;
}

/** In the order of the plan; `others`: what was recorded by another plan stays behind it. */
export function inOrder(
  experiments: readonly Pick<Experiment, 'name'>[],
  done: ReadonlyMap<string, RunResult>,
  others: boolean,
): RunResult[] {
  const planned = new Set(experiments.map((e) => e.name));
  return [
    ...experiments.flatMap((e) => done.get(e.name) ?? []),
    ...(others ? [...done.values()].filter((r) => !planned.has(r.name)) : []),
  ];
}
/** What `--only` names; throws where the plan has no such variant. */
export function variantsOf(
  args: Pick<SessionArgs, 'list'>,
  experiments: readonly Pick<Experiment, 'variant'>[],
): readonly string[] | undefined {
  const only = args.list('--only'),
    there = new Set(experiments.map((e) => e.variant)),
    unknown = only?.find((v) => !there.has(v));
  if (unknown !== undefined)
    throw new Error(`--only: there is no ${unknown} in this plan, but ${[...there].join(', ')}`);
  return only;
}
/** The runs of an earlier session, by name; none where there is no such file. */
function readRuns(file: string): Map<string, RunResult> {
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((l) => l !== '');
  return new Map(lines.map((l) => JSON.parse(l) as RunResult).map((r) => [r.name, r]));
}
