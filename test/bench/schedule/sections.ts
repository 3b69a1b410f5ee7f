import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Bar } from '../lib/report.js';
import { bar } from '../lib/report.js';
import { VARIANTS } from './arrangements.js';
import { markdown } from './report.js';
import type { Arrangement, Simulation } from './simulate.js';
import { simulate } from './simulate.js';
import type { Measured } from './measure.js';
import { distributionDistance, estimate } from './statistics.js';
import { shorter, type Workload } from './workload.js';

/** A part of the report beside the regimes. */
export interface Section {
  readonly rows: readonly Record<string, unknown>[];
  readonly bars: readonly Bar[];
  readonly notes: readonly string[];
}
type Progress = (what: string) => void;

/**
 * Trajectories the authors sampled in their main run (runtime/rollout/README.md#published-figures); of these they
 * trained on 16 %.
 */
const PUBLISHED_ROLLOUTS = 31_968;

/** Generated = trained + in flight + retired, in rollouts and in steps. */
export function assertClosed({ stats: { ledger: l, stepLedger: s } }: Simulation): void {
  const sum = (r: Readonly<Partial<Record<string, number>>>): number =>
    Object.values(r).reduce<number>((a, b) => a + (b ?? 0), 0);
  if (l.generated !== l.trained + l.inFlight + sum(l.retired))
    throw new Error(`the ledger of rollouts does not close: ${JSON.stringify(l)}`);
  if (s.generated !== s.trained + s.masked + s.human + s.inFlight + sum(s.retired))
    throw new Error(`the ledger of steps does not close: ${JSON.stringify(s)}`);
}

interface WholeRuns {
  readonly w: Workload;
  /** Rollouts a second of `d`. */
  readonly rate: number;
  readonly d: Arrangement;
  /** `d` with dispatch by uncertainty. */
  readonly d2: Arrangement;
  readonly p: Arrangement;
  readonly seeds: readonly number[];
  readonly quick: boolean;
}
/**
 * As many rollouts as the authors sampled, or 60 % of them for a quick look: which carry gradient, and whether those
 * that curation kept and those that were trained are of the same lengths.
 */
export async function wholeRuns(o: WholeRuns, progress: Progress): Promise<Section> {
  const hours = PUBLISHED_ROLLOUTS / (o.rate * 3600),
    rows: Record<string, unknown>[] = [],
    shares = new Map<string, number[]>(),
    distances: { readonly name: string; readonly kept: number; readonly all: number }[] = [],
    cpu: number[] = [];
  // The published rule leaves long rollouts out long before its run ends.
  for (const [a, share, n] of [
    [o.d, o.quick ? 0.6 : 1, o.quick ? 1 : 3],
    [o.d2, o.quick ? 0.6 : 1, o.quick ? 1 : 3],
    [o.p, o.quick ? 0.1 : 0.3, 1],
  ] as const)
    for (const seed of o.seeds.slice(0, n)) {
      const s = await simulate(shorter(o.w, share * hours, 0), a, seed),
        { resolved, candidates, trained } = s.lengths,
        kept = distributionDistance(candidates, trained),
        all = distributionDistance(resolved, trained);
      assertClosed(s);
      shares.set(a.name, [...(shares.get(a.name) ?? []), s.measured.gradientShare]);
      distances.push({ name: a.name, kept: kept.atMost, all: all.atMost });
      if (a === o.d) cpu.push((s.cost.cpu * 24) / (share * hours));
      rows.push({
        section: 'whole run',
        regime: a.name,
        seed,
        rollouts: s.stats.ledger.generated,
        gradientShare: s.measured.gradientShare,
        unusedBy: s.measured.unusedBy,
        lengthDistanceKept: kept,
        lengthDistanceAll: all,
        injections: s.measured.injections,
        cpu: s.cost.cpu,
      });
      progress(
        `${a.name} over ${s.stats.ledger.generated} rollouts: gradient ${pct(s.measured.gradientShare)} %, lengths ${kept.d.toFixed(3)} apart`,
      );
    }
  const mean = (name: string): number => estimate(shares.get(name)!).mean,
    most = (name: string, what: 'kept' | 'all'): number =>
      Math.max(...distances.filter((x) => x.name === name).map((x) => x[what]));
  return {
    rows,
    bars: [
      bar('gradient_rollouts_share', mean(o.d2.name), 'of generated, with dispatch by (p(1-p))^3', '>= 0.6'),
      bar(
        'trained_lengths_distance',
        most(o.d.name, 'kept'),
        'KS distance at most (95 %), kept against trained',
        '<= 0.05',
      ),
      bar('sim_cpu_180x24h', Math.max(...cpu), 's', '<= 60'),
    ],
    notes: [
      `Rollouts that carry gradient, over ${PUBLISHED_ROLLOUTS} of them: ${pct(mean(o.d.name))} % as shipped, ${pct(mean(o.d2.name))} % with dispatch by (p(1-p))^3, ${pct(mean(o.p.name))} % by the published rule (which reports 16 %).`,
      `Lengths of rollouts that curation kept against those of them that were trained, Kolmogorov-Smirnov distance with the upper end of its 95 % interval: at most ${most(o.d.name, 'kept').toFixed(3)} as shipped, ${most(o.p.name, 'kept').toFixed(3)} by the published rule. Against all generated rollouts, also those of groups without variance, at most ${most(o.d.name, 'all').toFixed(3)}: that difference is the variance filter's (groups that all fail are long), not the scheduler's.`,
    ],
  };
}

/** What each mechanism changes, from the shipped defaults. */
export async function variants(w: Workload, progress: Progress): Promise<Section> {
  const rows: Record<string, unknown>[] = [],
    table: string[][] = [];
  for (const v of VARIANTS) {
    const s = await simulate(w, v, 1),
      m = s.measured,
      least = Math.min(...s.stats.families.map((f) => f.total));
    rows.push({
      section: 'variant',
      variant: v.name,
      gradientShare: m.gradientShare,
      alpha: m.alpha,
      ratio: m.ratio,
      trainedActions: m.trainedActions,
      injections: m.injections,
      poolLagMax: m.poolStaleness.max,
      leastVisited: least,
    });
    table.push([
      v.name,
      v.label,
      pct(m.gradientShare),
      pct(m.alpha),
      m.ratio.toFixed(3),
      m.trainedActions.toFixed(1),
      String(m.injections),
      String(least),
    ]);
    progress(`variant ${v.name}: gradient ${pct(m.gradientShare)} %`);
  }
  const head = [
    'variant',
    'what',
    'carry gradient, whole run %',
    'last half %',
    'X/X*',
    'trained actions/min',
    'injections',
    'rollouts of the least visited task',
  ];
  return {
    rows,
    bars: [],
    notes: [
      `Regime d on dart-like for ${w.warmup + w.hours} h, one seed, one thing changed from the shipped defaults:\n\n${markdown(head, table)}`,
    ],
  };
}

/** What the staleness bound costs on a workload; means over the seeds. */
export async function etaTable(
  w: Workload,
  d: Arrangement,
  o: { readonly etas: readonly number[]; readonly seeds: readonly number[] },
  progress: Progress,
): Promise<Section> {
  const rows: Record<string, unknown>[] = [],
    table: string[][] = [];
  for (const eta of o.etas) {
    const runs: Measured[] = [];
    for (const seed of o.seeds) runs.push((await simulate({ ...w, eta }, d, seed)).measured);
    const mean = (of: (m: Measured) => number): number => estimate(runs.map(of)).mean,
      most = (of: (m: Measured) => number): number => Math.max(...runs.map(of)),
      ratio = estimate(runs.map((m) => m.ratio)),
      strict = mean((m) => m.strict),
      loose = mean((m) => m.loose),
      trainedActions = mean((m) => m.trainedActions),
      staleness = {
        mean: mean((m) => m.staleness.mean),
        p95: most((m) => m.staleness.p95),
        max: most((m) => m.staleness.max),
      };
    rows.push({
      section: 'eta',
      workload: w.name,
      seeds: runs.length,
      eta,
      ratio: ratio.mean,
      'ratio±': ratio.half,
      strict,
      loose,
      trainedActions,
      staleness,
    });
    table.push([
      String(eta),
      runs.length > 1 ? `${ratio.mean.toFixed(3)} ± ${ratio.half.toFixed(3)}` : ratio.mean.toFixed(3),
      pct(strict),
      pct(loose),
      trainedActions.toFixed(1),
      `${staleness.mean.toFixed(2)} / ${staleness.p95} / ${staleness.max}`,
    ]);
    progress(`${w.name}, eta ${eta}: X/X* ${ratio.mean.toFixed(3)}`);
  }
  const head = ['eta', 'X/X*', 'desktops strict %', 'loose %', 'trained actions/min', 'staleness mean / p95 / max'],
    seeds = o.seeds.length === 1 ? 'one seed' : `${o.seeds.length} seeds, 95 % interval`;
  return {
    rows,
    bars: [],
    notes: [`What the staleness bound costs (d, ${w.name}, ${seeds}):\n\n${markdown(head, table)}`],
  };
}

/** A thousand desktops: how long the event loop is held. */
export async function manyDesktops(w: Workload, d: Arrangement, quick: boolean): Promise<Section> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const { cost, measured } = await simulate(
    { ...w, desktops: 1000, replicas: 22, batchGroups: 44, hours: quick ? 0.1 : 0.5, warmup: 0.2 },
    d,
    1,
  );
  delay.disable();
  const p99 = delay.percentile(99) / 1e6;
  return {
    rows: [
      {
        section: 'thousand desktops',
        timers: cost.timers,
        cpu: cost.cpu,
        wall: cost.wall,
        loopDelayP99: p99,
        loopDelayMax: delay.max / 1e6,
        ratio: measured.ratio,
      },
    ],
    bars: [],
    notes: [
      `1,000 desktops: ${cost.timers} timers in ${cost.cpu.toFixed(1)} s of CPU, event loop late by ${p99.toFixed(0)} ms at the 99th percentile (64 timers a turn).`,
    ],
  };
}

const pct = (x: number): string => (100 * x).toFixed(1);
