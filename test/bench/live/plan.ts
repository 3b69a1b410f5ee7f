import { random } from '../../../runtime/domain/index.js';
import type { RunFile } from '../../../runtime/config/index.js';
import type { Experiment } from '../lib/experiments.js';
import { REGIMES } from '../schedule/arrangements.js';
import type { Arrangement } from '../schedule/simulate.js';

export const BASE = 'base';
/** Starting processes and desktops, and the first batch, are no steady state. */
const WARMUP_MS = 10_000;

const NO_WARM_START: RunFile['warmStart'] = { reading: { screens: 0, steps: 0 }, demonstrations: 0, steps: 0 };

export interface LivePlan {
  readonly regimes: readonly string[];
  readonly turns: number;
  /** Of one run, its start included. */
  readonly minutes: number;
  readonly seed: number;
  readonly quick: boolean;
}

/**
 * One warm start, then the regimes in turn on the quick start's families, desktops, policy and trainer; they differ in
 * `rollout.regime` and
 * `policy.sync` alone. Every run starts from the same policy with the same seed, so that all are offered the same
 * tasks.
 */
export function livePlan(p: LivePlan): Experiment[] {
  const shared: RunFile = {
    // One pass over a batch and nothing imitated beside it, as in the paper: what is compared is scheduling, and the
    // trainer shares the desktops' cores.
    preset: 'quickstart',
    seed: p.seed,
    trainer: { epochs: 1, replay: 0 },
    evaluation: { episodes: 0, everyMinutes: 0 },
    ...(p.quick ? { tasks: { families: ['press-button', 'list-pick'] } } : {}),
  };
  const warm: RunFile['warmStart'] = p.quick
    ? { ...NO_WARM_START, demonstrations: 3, steps: 40, lr: 2e-3 }
    : { reading: { screens: 600, steps: 700 }, demonstrations: 4, steps: 200, lr: 2e-3, shift: 16 };
  const base: Experiment = {
    name: BASE,
    variant: BASE,
    seed: p.seed,
    half: 'redo',
    file: { ...shared, name: 'live-base', warmStart: warm, budget: { rollouts: 1 } },
  };
  const compared = REGIMES.filter((r) => p.regimes.includes(r.name));
  const turns = inTurns({ ...p, order: 'live', regimes: compared, warmupMs: p.quick ? 1000 : WARMUP_MS }, (r) => ({
    ...shared,
    name: `live-${r.name}`,
    warmStart: NO_WARM_START,
    policy: { sync: syncOf(r) },
    rollout: { regime: r.regime },
    budget: { minutes: p.minutes },
  }));
  return [base, ...turns];
}

/** How a run file names the sync of a regime. */
export const syncOf = (r: Arrangement): 'replica' | 'global' => (r.sync === 'replica' ? 'replica' : 'global');

/**
 * Regimes turn after turn, each from the base. The order is drawn, and each second turn has that of the one before it
 * turned over: what drifts over an hour, and what one run leaves to the next, hits each alike, also where few turns are made.
 */
export function inTurns(
  o: {
    /** Of the draw of the order. */
    readonly order: string;
    readonly seed: number;
    readonly turns: number;
    readonly regimes: readonly Arrangement[];
    readonly warmupMs: number;
  },
  fileOf: (r: Arrangement) => RunFile,
): Experiment[] {
  return Array.from({ length: o.turns }, (_, turn) => {
    const drawn = random(`${o.order}/${o.seed}/${turn - (turn % 2)}`).shuffle(o.regimes);
    return (turn % 2 === 0 ? drawn : [...drawn].reverse()).map((r): Experiment => ({
      name: `turn${turn + 1}-${r.name}`,
      variant: r.name,
      seed: o.seed,
      from: BASE,
      half: 'redo',
      warmupMs: o.warmupMs,
      file: fileOf(r),
    }));
  }).flat();
}
