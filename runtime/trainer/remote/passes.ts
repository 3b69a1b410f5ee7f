import { random, toRunError, type TrainBatch } from '../../domain/index.js';
import type { ObjectiveOptions } from '../objective/objective.js';
import { klMoved, movedTooFar } from '../objective/kl.js';
import { equalParts, imitationRate, minibatches, reportedSteps } from '../schedule.js';
import type { ImitateOptions } from '../types.js';
import type { AdamParams } from './client.js';
import type { Connection } from './connection.js';
import type { Prepared } from './datums.js';
import { gradientDatums, ownTokens, passedTokens, score, slopeOf, type Carriage, type Slope } from './gradient.js';
import { reuseEss, type RemoteReport } from './report.js';
import type { TokenSample } from './sample.js';
import type { ForwardBackwardOutput } from './wire/index.js';
import { serverLoss, serverLossDatums, type ServerLoss } from './serverLoss.js';

/** The optimizer steps of an update or a lesson on one model; a failure ends them, and nothing here is kept. */

export interface AdamOptions extends Omit<AdamParams, 'learningRate'> {
  readonly lr: number;
  /** Optimizer steps over which the learning rate of `update` rises to `lr`. */
  readonly warmup: number;
}
export interface Progress {
  readonly kind: 'update' | 'imitate';
  readonly step: number;
  readonly steps: number;
  readonly loss: number;
  readonly lr: number;
  readonly ms: number;
}
export interface Job {
  readonly connection: Connection;
  readonly report: RemoteReport;
  readonly carriage: Carriage;
  readonly loss: 'client' | 'server';
  readonly objective: ObjectiveOptions;
  readonly adam: AdamOptions;
  readonly minibatch: number;
  /** KL per token beyond which, times 1.5, an update is stopped; 0 = never. Needs `loss: client`. */
  readonly targetKl: number;
  readonly seed: number;
  readonly onProgress?: ((p: Progress) => void) | undefined;
  readonly signal: AbortSignal;
}
/** A step that nobody answered is asked for again so often, by its number. */
const STEP_ASKED = 3;

type Batch = Pick<TrainBatch<TokenSample>, 'id' | 'epochs' | 'reuse' | 'lrScale'>;

export interface Passed {
  /** Whole passes. */
  readonly epochs: number;
  /** Optimizer steps of the passes that were to be made. */
  readonly planned: number;
  /** Samples that a step was made on, in the batch's order: all, unless the update was stopped in its first pass. */
  readonly trained: readonly Prepared[];
}
/** Passes over a batch, in minibatches of equal size; `done` = optimizer steps of updates before. */
export async function updatePasses(job: Job, samples: readonly Prepared[], b: Batch, done: number): Promise<Passed> {
  if (samples.length === 0) return { epochs: 0, planned: 0, trained: samples };
  const start = performance.now(),
    perEpoch = equalParts(samples, job.minibatch).length,
    single = Math.max(b.epochs, b.reuse?.epochs ?? 0) * perEpoch === 1;
  await scoreReference(job, samples);
  // Log-probs of the policy before the update; a single step's own forward pass gives them.
  let fresh = single ? undefined : await scoreOld(job, samples);
  const reached = new Set<Prepared>();
  let step = 0,
    planned = 0;
  const passes = minibatches(samples, b, {
    size: job.minibatch,
    shuffled: (pass) => random(`remote/${job.seed}/${b.id}/${pass}`).shuffle(samples),
    ess: () => reuseEss(samples),
  });
  for (const m of passes) {
    planned = m.planned;
    const lr = job.adam.lr * (b.lrScale ?? 1) * Math.min(1, (done + step + 1) / Math.max(1, job.adam.warmup)),
      rows = fresh && m.items.flatMap((s) => fresh!.get(s) ?? []),
      made = await minibatch(job, m.items, { lr, single, rows, first: step === 0 });
    // Scores are valid only until the weights have changed.
    fresh = undefined;
    if (!made) break;
    job.report.step({ ...made, lr });
    step++;
    for (const s of m.items) reached.add(s);
    job.onProgress?.({
      kind: 'update',
      step,
      steps: planned,
      loss: made.result.loss,
      lr,
      ms: performance.now() - start,
    });
  }
  return { epochs: Math.floor(step / perEpoch), planned, trained: samples.filter((s) => reached.has(s)) };
}

/**
 * Samples whose gradient depends on log-probs under the present weights: what is imitated does not, unless its carrier
 * does.
 */
const scoredOnes = (samples: readonly Prepared[], c: Carriage): readonly Prepared[] =>
  c.carrier === 'cross_entropy' ? samples.filter((s) => s.sample.kind === 'policy') : samples;

/** Rows of all targets by sample, of those that are scored: the first step's are these, for the weights are still the same. */
async function scoreOld(job: Job, samples: readonly Prepared[]): Promise<Map<Prepared, Float32Array[]>> {
  const asked = scoredOnes(samples, job.carriage),
    rows = await score(job.connection.model, asked, job.signal),
    own = ownTokens(asked, rows),
    bySample = new Map<Prepared, Float32Array[]>();
  let next = 0;
  asked.forEach((s, i) => {
    s.old = own[i]!;
    s.now = own[i]!;
    bySample.set(s, rows.slice(next, (next += s.parts.length)));
  });
  return bySample;
}
async function scoreReference(job: Job, samples: readonly Prepared[]): Promise<void> {
  const { reference } = job.connection;
  if (!reference || job.objective.klBeta === 0) return;
  const own = ownTokens(samples, await score(reference, samples, job.signal));
  samples.forEach((s, i) => {
    s.reference = own[i]!;
  });
}

interface Stepped {
  readonly result: Slope['result'];
  readonly metrics: ReadonlyMap<string, number>;
}
interface MinibatchOptions {
  readonly lr: number;
  /** Whether it is the update's only step. */
  readonly single: boolean;
  /** Whether it is the first step, which is made however far the policy has moved. */
  readonly first: boolean;
  /** Log-probs of all targets of those that are scored, with the present weights, where known. */
  readonly rows: readonly Float32Array[] | undefined;
}
/** One optimizer step of an update; undefined: the policy has moved too far for it (`targetKl`). */
async function minibatch(
  job: Job,
  samples: readonly Prepared[],
  { lr, single, first, rows }: MinibatchOptions,
): Promise<Stepped | undefined> {
  const { connection: c, signal } = job,
    own = job.loss === 'server' ? serverLoss(samples, job.objective, single) : undefined;
  if (own) return serverMinibatch(job, samples, lr, own, single);
  const asked = scoredOnes(samples, job.carriage),
    present = rows ?? (await score(c.model, asked, signal)),
    kl = seen(job, asked, ownTokens(asked, present), single);
  // The check comes before the backward pass: a gradient that is not stepped on would be added to the next one.
  if (!first && movedTooFar(kl, job.targetKl)) return undefined;
  const { result, gradient } = await slopeOf(samples, job.objective),
    all = asked.length === samples.length,
    data = await gradientDatums(samples, gradient, job.carriage, all ? present : undefined, c.client.config),
    out = await c.model.forwardBackward(data, { name: job.carriage.carrier }, signal);
  return { result: all ? result : await withImitated(job, samples, out), metrics: await step(job, lr) };
}
/** The objective of samples of which the imitated ones were not scored: their pass says their log-probs. */
async function withImitated(
  job: Job,
  samples: readonly Prepared[],
  out: ForwardBackwardOutput,
): Promise<Slope['result']> {
  const now = passedTokens(samples, out) ?? ownTokens(samples, await score(job.connection.model, samples, job.signal));
  samples.forEach((s, i) => {
    if (s.sample.kind === 'imitation') s.now = now[i]!;
  });
  return (await slopeOf(samples, job.objective)).result;
}
/** The server computes the gradient; its log-probs say here what that was. */
async function serverMinibatch(
  job: Job,
  samples: readonly Prepared[],
  lr: number,
  own: ServerLoss,
  single: boolean,
): Promise<Stepped> {
  const { connection: c, signal } = job,
    out = await c.model.forwardBackward(serverLossDatums(samples, own, job.objective), own.loss, signal);
  seen(job, samples, passedTokens(samples, out) ?? ownTokens(samples, await score(c.model, samples, signal)), single);
  const { result } = await slopeOf(samples, job.objective);
  return { result, metrics: await step(job, lr) };
}
/** Keeps the log-probs under the present weights; how far these have moved since the update began. */
function seen(job: Job, samples: readonly Prepared[], now: readonly Float32Array[], single: boolean): number {
  samples.forEach((s, i) => {
    s.now = now[i]!;
    if (single) s.old = now[i]!;
  });
  const kl = klMoved(samples.flatMap(({ now: n, old, rollout }) => (n && old ? [{ now: n, old, rollout }] : [])));
  job.report.moved(kl);
  return kl;
}

/** An optimizer step that nobody answered may have been done: the same number asks for the same step. */
async function step(job: Job, lr: number): Promise<ReadonlyMap<string, number>> {
  const { model } = job.connection,
    { beta1, beta2, eps, weightDecay, gradClip } = job.adam,
    params: AdamParams = { learningRate: lr, beta1, beta2, eps, weightDecay, gradClip };
  let seq: number | undefined;
  for (let asked = 1; ; asked++)
    try {
      return await model.optimStep(params, job.signal, seq);
    } catch (e) {
      if (toRunError(e).kind !== 'trainer.remote' || asked === STEP_ASKED) throw e;
      seq = model.seq;
    }
}

export interface LessonPart extends ImitateOptions {
  /** Steps [from, to) of the lesson. */
  readonly from: number;
  readonly to: number;
}
export interface LessonStep extends Stepped {
  readonly index: number;
  readonly lr: number;
}
/** Steps of a lesson until `to`, or until it is interrupted. */
export async function imitatePart(
  job: Job,
  picks: (step: number) => Prepared[],
  o: LessonPart,
  interrupted: () => boolean,
): Promise<{ readonly steps: LessonStep[]; readonly end: number; readonly reported: number }> {
  const start = performance.now(),
    steps: LessonStep[] = [];
  let i = o.from;
  // The first step is made whatever happens: a lesson that was begun has taught something.
  for (; i < o.to && (i === o.from || !interrupted()); i++) {
    const lr = imitationRate(o.lr, i, o.steps),
      done = await lessonStep(job, picks(i), lr);
    steps.push({ index: i, lr, ...done });
    job.onProgress?.({
      kind: 'imitate',
      step: i + 1,
      steps: o.steps,
      loss: done.result.imitationLoss,
      lr,
      ms: performance.now() - start,
    });
  }
  return { steps, end: i, reported: reportedSteps(o.steps) };
}
/** The gradient of -log p needs no log-probs, unless its carrier does; the pass itself says how large the loss was. */
async function lessonStep(job: Job, samples: readonly Prepared[], lr: number): Promise<Stepped> {
  const { connection: c, signal } = job,
    blind = job.carriage.carrier === 'cross_entropy',
    rows = blind ? undefined : await score(c.model, samples, signal);
  const { gradient } = await slopeOf(samples, job.objective),
    data = await gradientDatums(samples, gradient, job.carriage, rows, c.client.config),
    out = await c.model.forwardBackward(data, { name: job.carriage.carrier }, signal),
    now = rows ? ownTokens(samples, rows) : passedTokens(samples, out),
    metrics = await step(job, lr);
  samples.forEach((s, k) => {
    s.now = now?.[k];
  });
  const { result } = await slopeOf(samples, job.objective);
  return { result: now ? result : { ...result, loss: NaN, imitationLoss: NaN }, metrics };
}
