import type { RunConfig } from '../config/index.js';
import { toRunError, type BatchId, type EmbeddedPolicySpec, type Random, type StepSample, type Trajectory } from '../domain/index.js';
import type { ClaimedBatch, DataManager } from '../data/dataManager.js';
import type { ModelPool } from '../rollout/modelPool.js';
import type { TrainerEngine, UpdateReport } from '../trainer/types.js';
import { syncMetrics, type Meters } from './meters.js';
import { imitationSamples, policySamples, type Observations } from './samples.js';

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
  readonly onVersion: (version: number, report: UpdateReport) => void;
  readonly now: () => number;
}

/**
 * The trainer's side of a run: claim a batch as soon as there is one, update, checkpoint, publish replica by replica, again. Rollouts go on
 * meanwhile; the staleness bound of admission is all that ties the two.
 */
export async function trainLoop(d: TrainLoopDeps, signal: AbortSignal, gate: () => Promise<void>): Promise<void> {
  const changed = changes(d.data, signal);
  const { updates } = d.config.budget;
  while (!signal.aborted) {
    await gate();
    if (signal.aborted || (updates !== undefined && d.data.stats().batches >= updates)) return;
    const batch = await d.data.claimBatch({ version: d.version(), minGroups: d.config.trainer.batchGroups });
    if (!batch) { await changed.next(); continue; }
    try { await train(d, batch); } catch (e) {
      await d.data.release(batch.id, toRunError(e).message).catch(() => undefined);
      throw e;
    }
  }
}

const ratesOf = (data: DataManager): ReadonlyMap<string, number> => new Map(data.stats().families.map((f) => [f.family as string, f.posterior]));

/** Pool successes to imitate beside a batch: families that fail get more of them, within a family any success is as good as another. Pure. */
export function chooseReplay(successes: readonly Trajectory[], rates: ReadonlyMap<string, number>, n: number, r: Random): Trajectory[] {
  const byFamily = new Map<string, Trajectory[]>();
  for (const t of successes) byFamily.set(t.family, [...(byFamily.get(t.family) ?? []), t]);
  const families = [...byFamily], weights = families.map(([f]) => 0.1 + 1 - (rates.get(f) ?? 0.5)), total = weights.reduce((a, b) => a + b, 0);
  return Array.from({ length: families.length === 0 ? 0 : n }, () => {
    let x = r.next() * total, i = 0;
    while (i < families.length - 1 && x >= weights[i]!) x -= weights[i++]!;
    return r.pick(families[i]![1]);
  });
}

async function train(d: TrainLoopDeps, batch: ClaimedBatch): Promise<void> {
  const { trainer: t } = d.config;
  const groups = batch.groups.map((g) => ({ group: { id: g.id, family: g.family, trajectories: g.members.map((m) => m.trajectory), injected: g.members.filter((m) => m.injected).map((m) => m.trajectory.id) }, keep: g.members.map((m) => m.keep) }));
  const samples: StepSample[] = await policySamples(d.spec, d.observations, groups, { baseline: t.baseline, norm: t.norm, balance: t.baseline });
  if (t.replay > 0 && t.imitationCoef > 0) {
    const imitation = await imitationSamples(d.spec, d.observations, chooseReplay(d.successes(), ratesOf(d.data), t.replay, d.random));
    // Together they weigh as much as the policy's own samples; `imitationCoef` then sets the balance.
    const own = samples.reduce((a, s) => a + s.weight, 0);
    samples.push(...imitation.map((s) => ({ ...s, weight: own / Math.max(1, imitation.length) })));
  }
  d.meters.trainer(true, d.now());
  let report: UpdateReport;
  try { report = await d.trainer.update({ id: batch.id as BatchId, samples, epochs: t.epochs }); } finally { d.meters.trainer(false, d.now()); }
  d.meters.trainedActions += batch.steps;
  // The checkpoint is on disk before the journal says "trained": a crash between the two trains the batch again from the old weights, never twice.
  const [weights, checkpoint] = [await d.trainer.exportWeights(), await d.trainer.checkpoint()];
  await Promise.all([d.data.trained(batch.id, report.version), d.data.note({ type: 'checkpoint', version: report.version, dir: checkpoint.dir })]);
  d.onVersion(report.version, report);
  const sync = await d.models.publish(weights);
  const { tisHistogram, ...numbers } = report;
  await Promise.all([
    d.data.note({ type: 'metrics', source: 'update', version: report.version, values: { ...numbers, batchSteps: batch.steps, batchGroups: batch.groups.length }, lists: { tisHistogram } }),
    d.data.note({ type: 'metrics', source: 'sync', version: report.version, values: syncMetrics({ type: 'published', report: sync, at: d.now() }) }),
  ]);
}

/** Turns "something changed" callbacks into something to await, without losing one in between. */
function changes(data: DataManager, signal: AbortSignal): { next(): Promise<void> } {
  let pending = false;
  let wake: (() => void) | undefined;
  const ring = (): void => { pending = true; wake?.(); };
  const off = data.onChange(ring);
  signal.addEventListener('abort', () => { off(); ring(); }, { once: true });
  return {
    async next() {
      if (!pending) await new Promise<void>((r) => { wake = r; });
      pending = false; wake = undefined;
    },
  };
}
