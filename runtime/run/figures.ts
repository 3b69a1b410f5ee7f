import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { traitsOf, type RunConfig } from '../config/index.js';
import { outcomesOf, removedInOneSeed, type BootstrapInterval } from '../domain/bootstrap.js';
import { type EvaluationSplit } from '../domain/index.js';
import { replaceFile } from '../files/replaceFile.js';
import { evaluateAll, type Asked, type Evaluated, type EvaluateRequest } from './evaluateCheckpoint.js';
import type { EvalPoint } from './evaluateEpisodes.js';
import { solvedBlind } from './solvedBlind.js';

/**
 * The measurements of the final policy. Each split is asked greedily, with the screen and with a blank one (whole looks
 * alone, not their parts); sampling as in training and choices at random are measured on one split each. Splits of
 * templates never trained on have at least 20 episodes per template. The policy before training is in the run's own
 * evaluations.
 */
export const ASKED: readonly Asked[] = [
  { split: 'heldout' },
  { split: 'heldout', sampled: true },
  { split: 'heldout', blind: true },
  ...beside('words'),
  { split: 'words', random: true },
  ...beside('pairs'),
  ...beside('looks'),
  ...beside('near'),
  ...beside('templates', 20),
  ...beside('fresh', 20),
];
function beside(split: EvaluationSplit, each?: number): Asked[] {
  const asked: Asked = { split, ...(each === undefined ? {} : { each }) };
  return [asked, { ...asked, blind: true }];
}
/** The measurements that fit a run's policy: only one whose choices have numbers can choose at random. */
export const askedOf = (c: Pick<RunConfig, 'policy'>): readonly Asked[] =>
  ASKED.filter((a) => !a.random || traitsOf(c.policy.kind).random);
export interface FiguresRow extends Omit<Evaluated, 'at' | 'infeasible' | 'set'> {
  readonly rate: number;
}
/**
 * The result of a run, as `npm run quickstart -- --json FILE` writes it. Rates are shares of all episodes asked for,
 * and null where the run's tasks have nothing held out that way.
 */
export interface RunFigures {
  readonly bench: 'quickstart';
  readonly run: string;
  readonly seed: number;
  readonly at: string;
  /** Commit of the checkout that it was trained and measured with; a packaged runtime has none. */
  readonly commit?: string;
  readonly minutes: number;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly node: string;
    readonly loadavg: readonly number[];
  };
  /** Success on instructions whose words or numbers are in no training task. */
  readonly unseen_words_success: number | null;
  /** The same where other words on the screen differ from the right one by a letter. */
  readonly near_duplicates_success: number | null;
  readonly heldout_looks_success: number | null;
  /** Share of the failures after imitation that are gone after reinforcement learning, on the run's own probes. */
  readonly failures_removed_by_rl: number | null;
  readonly failures_removed_by_rl_interval: BootstrapInterval | null;
  /** The same policy, its screen blanked, on other arrangements of the words of training. */
  readonly blind_success: number | null;
  /** A choice at random, on instructions as in `unseen_words_success`. */
  readonly random_success: number | null;
  /**
   * Success on held-out tasks. A folder of tasks has none held out: then on tasks that are trained (`trained` of its
   * row).
   */
  readonly heldout_success: number | null;
  readonly heldout_templates_success: number | null;
  /** Success on held-out templates that were not considered when those of training were chosen. */
  readonly fresh_templates_success: number | null;
  /** Families of training of which the policy with a blank screen still solves a fifth or more, over all rows asked so. */
  readonly solved_blind: readonly string[];
  /** `heldout` over the other families alone, which need to see. */
  readonly heldout_success_sighted: number | null;
  readonly rows: readonly FiguresRow[];
  /** The run's own evaluations. */
  readonly points: readonly EvalPoint[];
}

/** Measures the newest checkpoint of a run; it is only read. */
export async function measureRun(
  r: Pick<EvaluateRequest, 'dir' | 'entry' | 'signal' | 'provider' | 'onProgress' | 'onNote'> & {
    readonly run: string;
    readonly config: RunConfig;
    readonly points: readonly EvalPoint[];
    readonly minutes: number;
    readonly commit?: string | undefined;
  },
): Promise<RunFigures> {
  const asked = askedOf(r.config).map((a) => ({
      ...a,
      ifAny: true as const,
      episodes: r.config.evaluation.episodes || 64,
    })),
    rows = (await evaluateAll(r, asked)).map(rowOf);
  return figuresOf(r, rows);
}

/** Pure. */
export function figuresOf(
  r: {
    readonly run: string;
    readonly config: Pick<RunConfig, 'seed'>;
    readonly points: readonly EvalPoint[];
    readonly minutes: number;
    readonly commit?: string | undefined;
  },
  rows: readonly FiguresRow[],
): RunFigures {
  const row = (split: FiguresRow['split'], blind = false): FiguresRow | undefined =>
      rows.find((x) => x.split === split && x.blind === blind && !x.sampled),
    rate = (split: FiguresRow['split'], blind = false): number | null => row(split, blind)?.rate ?? null,
    removed = removedBy(r.points),
    seen = row('heldout'),
    blindly = solvedBlind(rows).families;
  return {
    bench: 'quickstart',
    run: r.run,
    seed: r.config.seed,
    at: new Date().toISOString(),
    ...(r.commit === undefined ? {} : { commit: r.commit }),
    minutes: r.minutes,
    machine: {
      cpu: cpus()[0]?.model ?? '?',
      cores: cpus().length,
      node: process.version,
      loadavg: loadavg().map((x) => Math.round(100 * x) / 100),
    },
    unseen_words_success: rate('words'),
    near_duplicates_success: rate('near'),
    heldout_looks_success: rate('looks'),
    failures_removed_by_rl: removed?.mean ?? null,
    // So few failures before that there is no telling.
    failures_removed_by_rl_interval: removed && Number.isFinite(removed.low) ? removed : null,
    blind_success: rate('heldout', true),
    random_success: rows.find((x) => x.split === 'words' && x.random)?.rate ?? null,
    heldout_success: seen?.rate ?? null,
    heldout_templates_success: rate('templates'),
    fresh_templates_success: rate('fresh'),
    solved_blind: blindly,
    heldout_success_sighted: seen ? rateWithout(seen, blindly) : null,
    rows,
    points: r.points,
  };
}

const rowOf = ({ at: _, infeasible: _i, set: _s, ...e }: Evaluated): FiguresRow => ({
  ...e,
  rate: e.episodes === 0 ? 0 : e.successes / e.episodes,
});
function removedBy(points: readonly EvalPoint[]): BootstrapInterval | undefined {
  const warm = points.find((p) => p.label === 'warm start'),
    final = points.findLast((p) => p.label === 'final');
  if (!warm || !final || warm.successes === warm.episodes) return undefined;
  return removedInOneSeed(outcomesOf(warm.successes, warm.episodes), outcomesOf(final.successes, final.episodes));
}
function rateWithout(row: FiguresRow, families: readonly string[]): number | null {
  const left = Object.entries(row.perFamily).filter(([name]) => !families.includes(name)),
    sum = (of: 'episodes' | 'successes'): number => left.reduce((n, [, f]) => n + f[of], 0);
  return sum('episodes') === 0 ? null : sum('successes') / sum('episodes');
}

/** Writes `figures.json` of a run folder, which may be somebody else's: no link in it is followed. Returns its text. */
export async function writeFigures(dir: string, f: RunFigures): Promise<string> {
  const text = `${JSON.stringify(f, null, 2)}\n`;
  await replaceFile(join(dir, 'figures.json'), text);
  return text;
}
