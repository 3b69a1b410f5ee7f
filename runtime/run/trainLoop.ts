import { join } from 'node:path';
import {
  random,
  toRunError,
  type LearnStep,
  type PolicyVersion,
  type Random,
  type Trajectory,
} from '../domain/index.js';
import type { RunConfig } from '../config/index.js';
import type { ClaimedBatch, ClaimedMember } from '../data/claims.js';
import type { DataManager } from '../data/dataManager.js';
import type { RegimeGate } from '../rollout/regime.js';
import type { UpdateReport } from '../trainer/types.js';
import { countTrained, type TrainedSteps } from '../data/events.js';
import type { Learner, Replicas, Snapshot } from './backends/index.js';
import { imitationSteps, policySteps, type Expressible } from './credit.js';
import { weighByNeed, type WeighedImitation } from './imitationWeights.js';
import { syncMetrics } from './meters.js';
import type { OrderQueue } from './orders.js';
import type { RunParts } from './parts.js';
import { pruneCheckpoints } from './checkpoints.js';
import { SparedBatches } from './sparedBatches.js';
import { updateLoop, type BetweenUpdates } from './updateLoop.js';

/** The trainer's side of a run whose policy learns. */
interface Training {
  readonly run: RunParts;
  readonly learner: Learner;
  readonly orders: OrderQueue;
  readonly spared: SparedBatches;
}
interface Update {
  readonly snapshot: Snapshot;
  readonly report: UpdateReport;
  readonly batch: ClaimedBatch;
  /** Metrics of the imitation beside it, where that is weighed by need. */
  readonly imitation: WeighedImitation['metrics'] | undefined;
}

/**
 * Updates until the run ends, by `updateLoop`; this module says what an update and publishing its weights consist of.
 * `between` comes between them.
 */
export function trainLoop(
  run: RunParts,
  { learner, replicas }: { readonly learner: Learner; readonly replicas: Replicas },
  o: { readonly orders: OrderQueue; readonly gate: RegimeGate; readonly between: BetweenUpdates },
): Promise<void> {
  const training: Training = {
    run,
    learner,
    orders: o.orders,
    spared: new SparedBatches(run),
  };
  return updateLoop<Update>(
    {
      data: run.data,
      gate: o.gate,
      batchGroups: run.config.trainer.batchGroups,
      version: () => run.state.version,
      behavior: () => replicas.oldest,
      onGenerate: () => o.orders.wake(),
      between: o.between,
      done: () => run.budget.spent,
      train: (batch) => train(training, batch),
      publish: (u) => publish(training, u),
      spare: (batch, error) => training.spared.spare(batch, error),
    },
    run.ending,
  );
}

const ratesOf = (data: DataManager): ReadonlyMap<string, number> =>
  new Map<string, number>(data.stats().families.map((f) => [f.family, f.posterior]));

/**
 * Pool successes to imitate beside a batch: families that fail get more of them, within a family any success is as good
 * as another. Pure.
 */
export function chooseReplay(
  successes: readonly Trajectory[],
  rates: ReadonlyMap<string, number>,
  n: number,
  r: Random,
): Trajectory[] {
  const byFamily = new Map<string, Trajectory[]>();
  for (const t of successes) byFamily.set(t.family, [...(byFamily.get(t.family) ?? []), t]);
  const families = [...byFamily],
    weights = families.map(([f]) => 0.1 + 1 - (rates.get(f) ?? 0.5)),
    total = weights.reduce((a, b) => a + b, 0);
  return Array.from({ length: families.length === 0 ? 0 : n }, () => {
    let x = r.next() * total,
      i = 0;
    while (i < families.length - 1 && x >= weights[i]!) x -= weights[i++]!;
    return r.pick(families[i]![1]);
  });
}

/** Share of the learning rate at the end of its decay. */
const FINAL_LR_SHARE = 0.1;
/**
 * Share of the learning rate when `used` of the budget is used: 1, falling linearly to a tenth over the last `decay` of
 * the budget. Pure.
 */
export const lrScale = (used: number, decay: number): number =>
  decay <= 0 ? 1 : 1 - (1 - FINAL_LR_SHARE) * Math.min(1, Math.max(0, (used - (1 - decay)) / decay));

async function train(d: Training, batch: ClaimedBatch): Promise<Update> {
  const { monitor, clock, data, budget, config } = d.run;
  const own = ownSteps(d, batch),
    beside = replayed(d, own),
    steps = [...own, ...beside.steps];
  d.spared.check(steps);
  const began = clock.now(),
    scale = lrScale(budget.used, config.trainer.lrDecay);
  monitor.meters.trainer(true, began);
  monitor.spans.trainerBegins('update', began);
  let report: UpdateReport | undefined;
  try {
    // An engine of the run's own saves on the same disk. An update that fails for lack of room has changed nothing.
    report = await data.room.write(() =>
      d.learner.update({
        id: batch.id,
        steps,
        epochs: config.trainer.epochs,
        lrScale: scale,
        reuse: config.trainer.reuse.enabled ? config.trainer.reuse : undefined,
      }),
    );
  } finally {
    monitor.meters.trainer(false, clock.now());
    monitor.spans.trainerEnds(clock.now(), report?.version);
  }
  d.spared.trained();
  const trained = trainedSteps(own, report);
  monitor.meters.trained(
    countTrained(trained),
    batch.groups.reduce((n, g) => n + g.members.filter(isOwn).length, 0),
    clock.now() - began,
  );
  // The checkpoint is on disk before the journal says "trained": a crash between the two trains the batch again from
  // the old weights, never twice. Both are one record: what was trained without its weights would be lost.
  const snapshot = await data.room.write(() => d.learner.snapshot()),
    checkpoint = await data.room.write(() => d.learner.checkpoint());
  await data.trained(batch.id, report.version, trained, checkpoint.dir);
  newVersion(d, report.version);
  return { snapshot, report, batch, imitation: beside.metrics };
}

/** A rollout of the batch's own that is trained on: neither from the pool, nor with all of its steps masked. */
const isOwn = (m: ClaimedMember): boolean => !m.injected && m.keep.some(Boolean);

/** The policy's own steps of a batch. */
function ownSteps({ run: r, learner }: Training, batch: ClaimedBatch): LearnStep[] {
  const { baseline, norm, credit } = r.config.trainer;
  const groups = batch.groups.map((g) => ({
    group: {
      id: g.id,
      family: g.family,
      trajectories: g.members.map((m) => m.trajectory),
      injected: g.members.filter((m) => m.injected).map((m) => m.trajectory.id),
    },
    keep: g.members.map((m) => m.keep),
    aged: g.members.map((m) => m.aged === true),
  }));
  return policySteps(groups, { baseline, norm, balance: baseline, credit }, (t, i) => learner.expressible(t, i));
}

/** The draws and rates of an update's replay. */
function replayed({ run: r, learner }: Training, own: readonly LearnStep[]): Replayed {
  const { trainer, seed } = r.config;
  if (trainer.replay === 0 || trainer.imitationCoef === 0) return { steps: [] };
  return replayedSteps(own, {
    ...trainer,
    successes: r.successes.imitable(),
    // The rates of the ledger when the update begins. In a deterministic run no rollout ends during an update, so they
    // are the same after a crash.
    rates: ratesOf(r.data),
    // Seeded by the version, so that a repeated update imitates the same successes.
    random: random(`replay/${seed}/${r.state.version}`),
    expressible: (t, i) => learner.expressible(t, i),
  });
}

export interface Replayed {
  readonly steps: readonly LearnStep[];
  /** Present where the steps are weighed by need. */
  readonly metrics?: WeighedImitation['metrics'];
}
export interface ReplayOptions extends Pick<RunConfig['trainer'], 'replay' | 'imitation' | 'imitationCoef'> {
  readonly successes: readonly Trajectory[];
  /** Success rate of each family's latest rollouts. */
  readonly rates: ReadonlyMap<string, number>;
  readonly random: Random;
  readonly expressible: Expressible;
}
/**
 * Successes to imitate beside the policy's own samples. Together they have the same weight; `imitationCoef` then sets
 * the balance, of all alike or by what each family needs. Pure.
 */
export function replayedSteps(own: readonly LearnStep[], o: ReplayOptions): Replayed {
  const bare = imitationSteps(chooseReplay(o.successes, o.rates, o.replay, o.random), o.expressible),
    weight = own.reduce((a, s) => a + s.weight, 0) / Math.max(1, bare.length),
    steps = bare.map((s) => ({ ...s, weight }));
  return o.imitation === 'adaptive' && steps.length > 0 ? weighByNeed(steps, o.rates, o.imitationCoef) : { steps };
}

/** Records the version; the staleness bound may now admit more orders. */
function newVersion({ run: r, orders }: Training, version: PolicyVersion): void {
  r.state.version = version;
  r.scheduler.wake();
  orders.fill();
  r.log.mustSucceed(r.monitor.noteProgress(version));
  pruneCheckpoints(join(r.dir, 'checkpoints'), r.config.store.keepCheckpoints).catch((e: unknown) =>
    r.log.note(`Old checkpoints could not be removed: ${toRunError(e).message}`),
  );
}

async function publish({ run: r }: Training, { snapshot, report, batch, imitation }: Update): Promise<void> {
  const sync = await snapshot.publish();
  const { tisHistogram, sampleWeights: _s, tokenWeights: _t, ...numbers } = report;
  await Promise.all([
    r.data.note({
      type: 'metrics',
      source: 'update',
      version: report.version,
      values: { ...numbers, batchSteps: batch.steps, batchGroups: batch.groups.length, ...imitation },
      lists: { tisHistogram },
    }),
    r.data.note({
      type: 'metrics',
      source: 'sync',
      version: report.version,
      values: syncMetrics({ type: 'published', report: sync, at: r.clock.now() }),
    }),
  ]);
}

/** Advantage and weights of a batch's policy steps: for each group, trajectory by trajectory. */
export function trainedSteps(
  steps: readonly LearnStep[],
  report: Pick<UpdateReport, 'sampleWeights' | 'tokenWeights'>,
): TrainedSteps[] {
  const by = new Map<
    string,
    {
      rollout: TrainedSteps['rollout'];
      injected?: true;
      advantage: number;
      steps: number[];
      weights: number[];
      advantages: number[];
      tokenWeights: Float32Array[];
    }
  >();
  for (const [i, s] of steps.entries()) {
    // A person's step in a group is imitated: it has no advantage or weight to show.
    if (s.coefficient !== undefined) continue;
    const { id: rollout, group } = s.trajectory,
      // A success can be trained in its own group and, injected, in others of the same batch.
      use = `${s.group} ${rollout}`,
      injected = s.group === group ? {} : { injected: true as const };
    let t = by.get(use);
    if (!t)
      by.set(
        use,
        (t = {
          rollout,
          ...injected,
          advantage: s.advantage,
          steps: [],
          weights: [],
          advantages: [],
          tokenWeights: [],
        }),
      );
    t.steps.push(s.step);
    t.weights.push(report.sampleWeights?.[i] ?? NaN);
    t.tokenWeights.push(report.tokenWeights?.[i] ?? new Float32Array());
    t.advantages.push(s.advantage);
  }
  return [...by.values()].map(({ advantages, tokenWeights, ...t }) => ({
    ...t,
    steps: Int32Array.from(t.steps),
    weights: Float32Array.from(t.weights),
    advantages: advantages.some((a) => a !== t.advantage) ? Float32Array.from(advantages) : undefined,
    ...(tokenWeights.some((w) => w.length > 0) ? { tokenWeights } : {}),
  }));
}
