import type { RunConfig } from '../config/index.js';
import {
  type BatchId,
  type EmbeddedPolicySpec,
  type Random,
  type StepSample,
  type Trajectory,
} from '../domain/index.js';
import type { ClaimedBatch, DataManager } from '../data/dataManager.js';
import type { ModelPool } from '../rollout/modelPool.js';
import type { RegimeGate } from '../rollout/regime.js';
import type { TrainerEngine, UpdateReport, WeightsFile } from '../trainer/types.js';
import type { TrainedSteps } from '../data/events.js';
import type { SpanRecorder } from './lanes.js';
import { syncMetrics, type Meters } from './meters.js';
import { imitationSamples, policySamples, type Observations } from './samples.js';
import { updateLoop } from './updateLoop.js';

export interface TrainLoopDeps {
  readonly config: RunConfig;
  readonly spec: EmbeddedPolicySpec;
  readonly data: DataManager;
  readonly trainer: TrainerEngine;
  readonly models: ModelPool;
  readonly observations: Observations;
  readonly meters: Meters;
  readonly random: Random;
  /** Pool successes that may be imitated beside a batch. */
  readonly successes: () => readonly Trajectory[];
  readonly version: () => number;
  /** Share of the budget that is used; 0 without one. */
  readonly used: () => number;
  readonly spans: SpanRecorder;
  readonly gate: RegimeGate;
  /** More may be rolled out: weights are published, or the regime's barrier fell. */
  readonly onGenerate: () => void;
  readonly onVersion: (version: number, report: UpdateReport) => void;
  readonly now: () => number;
}

/** The trainer's side of a run: see `updateLoop`; here is what an update and publishing its weights consist of. */
export function trainLoop(d: TrainLoopDeps, signal: AbortSignal, hold: () => Promise<void>): Promise<void> {
  const { updates } = d.config.budget;
  return updateLoop<Update>(
    {
      data: d.data,
      gate: d.gate,
      batchGroups: d.config.trainer.batchGroups,
      version: d.version,
      behavior: () => d.models.oldest,
      onGenerate: d.onGenerate,
      hold,
      done: () => updates !== undefined && d.data.stats().batches >= updates,
      train: (batch) => train(d, batch),
      publish: (u) => publish(d, u),
    },
    signal,
  );
}
interface Update {
  readonly weights: WeightsFile;
  readonly report: UpdateReport;
  readonly batch: ClaimedBatch;
  readonly lr: number;
}

const ratesOf = (data: DataManager): ReadonlyMap<string, number> =>
  new Map(data.stats().families.map((f) => [f.family as string, f.posterior]));

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

/** Least share of the learning rate that a falling one comes to. */
const LR_LEAST = 0.1;
/**
 * Share of the learning rate when `used` of the budget is used: all, and over the last `decay` of it linearly down to a
 * tenth. Pure.
 */
export const lrScale = (used: number, decay: number): number =>
  decay <= 0 ? 1 : 1 - (1 - LR_LEAST) * Math.min(1, Math.max(0, (used - (1 - decay)) / decay));

async function train(d: TrainLoopDeps, batch: ClaimedBatch): Promise<Update> {
  const { trainer: t } = d.config;
  const groups = batch.groups.map((g) => ({
    group: {
      id: g.id,
      family: g.family,
      trajectories: g.members.map((m) => m.trajectory),
      injected: g.members.filter((m) => m.injected).map((m) => m.trajectory.id),
    },
    keep: g.members.map((m) => m.keep),
  }));
  const own = await policySamples(d.spec, d.observations, groups, {
      baseline: t.baseline,
      norm: t.norm,
      balance: t.baseline,
      credit: t.credit,
    }),
    samples: StepSample[] = [...own];
  if (t.replay > 0 && t.imitationCoef > 0) {
    const imitation = await imitationSamples(
      d.spec,
      d.observations,
      chooseReplay(d.successes(), ratesOf(d.data), t.replay, d.random),
    );
    // Together they weigh as much as the policy's own samples; `imitationCoef` then sets the balance.
    const weight = own.reduce((a, s) => a + s.weight, 0);
    samples.push(...imitation.map((s) => ({ ...s, weight: weight / Math.max(1, imitation.length) })));
  }
  const began = d.now(),
    scale = lrScale(d.used(), t.lrDecay);
  d.meters.trainer(true, began);
  let report: UpdateReport;
  try {
    report = await d.trainer.update({
      id: batch.id as BatchId,
      samples,
      epochs: t.epochs,
      lrScale: scale,
      ...(t.reuse.enabled ? { reuse: t.reuse } : {}),
    });
  } finally {
    d.meters.trainer(false, d.now());
  }
  d.spans.trainer('update', began, d.now(), report.version);
  d.meters.trained(
    batch.steps,
    batch.groups.reduce((n, g) => n + g.members.length, 0),
    d.now() - began,
  );
  // The checkpoint is on disk before the journal says "trained": a crash between the two trains the batch again from
  // the old weights, never twice.
  const [weights, checkpoint] = [await d.trainer.exportWeights(), await d.trainer.checkpoint()];
  await Promise.all([
    d.data.trained(batch.id, report.version, trainedSteps(own, report.sampleWeights)),
    d.data.note({ type: 'checkpoint', version: report.version, dir: checkpoint.dir }),
  ]);
  d.onVersion(report.version, report);
  return { weights, report, batch, lr: t.lr * scale };
}

async function publish(d: TrainLoopDeps, { weights, report, batch, lr }: Update): Promise<void> {
  const sync = await d.models.publish(weights);
  const { tisHistogram, sampleWeights: _, ...numbers } = report;
  await Promise.all([
    d.data.note({
      type: 'metrics',
      source: 'update',
      version: report.version,
      values: { ...numbers, lr, batchSteps: batch.steps, batchGroups: batch.groups.length },
      lists: { tisHistogram },
    }),
    d.data.note({
      type: 'metrics',
      source: 'sync',
      version: report.version,
      values: syncMetrics({ type: 'published', report: sync, at: d.now() }),
    }),
  ]);
}

/** Advantage and weights of a batch's policy samples, trajectory by trajectory. */
export function trainedSteps(samples: readonly StepSample[], weights: Float32Array | undefined): TrainedSteps[] {
  const by = new Map<
    string,
    { rollout: TrainedSteps['rollout']; advantage: number; steps: number[]; weights: number[]; advantages: number[] }
  >();
  for (const [i, s] of samples.entries()) {
    // A person's step in a group is imitated: it has neither advantage nor weight of its own to show.
    if (s.coefficient !== undefined) continue;
    let t = by.get(s.rollout);
    if (!t)
      by.set(s.rollout, (t = { rollout: s.rollout, advantage: s.advantage, steps: [], weights: [], advantages: [] }));
    t.steps.push(s.step);
    t.weights.push(weights?.[i] ?? NaN);
    t.advantages.push(s.advantage);
  }
  return [...by.values()].map(({ advantages, ...t }) => ({
    ...t,
    steps: Int32Array.from(t.steps),
    weights: Float32Array.from(t.weights),
    ...(advantages.some((a) => a !== t.advantage) ? { advantages: Float32Array.from(advantages) } : {}),
  }));
}
