import {
  random,
  type EmbeddedPolicySpec,
  type PolicyVersion,
  type Random,
  type StepSample,
  type TrainBatch,
} from '../../domain/index.js';
import type { ImitateOptions, ReadingScreen, ReadOptions, ReadReport, UpdateReport } from '../types.js';
import type * as Ort from 'onnxruntime-node';
import { augment, neighbourChoices } from './augment.js';
import { correctionMetrics, sequenceRatio } from '../objective/corrections.js';
import { ADAM_KNOBS } from './model/adamGraph.js';
import { TOKENS, type GradVariant, type KNOBS } from './model/lossGraph.js';
import { decayMask, initialTheta } from './model/params.js';
import { policyModel, type PolicyModel } from './model/policyGraph.js';
import type { TrainerOptions } from './options.js';
import { makeSlot, toPlaces, weigh, type PackedState, type Slot } from './places.js';
import { lesson, READ_CELLS } from './reading.js';
import { ReportBuilder } from './report.js';
import { loadOrt, Sessions } from './sessions.js';

/** Everything a checkpoint holds. Arrays are f32[P]. */
export interface LearnerState {
  readonly version: PolicyVersion;
  readonly adamSteps: number;
  readonly updateSteps: number;
  readonly rng: readonly [number, number, number, number];
  readonly theta: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly reference: Float32Array;
}
export interface LearnerProgress {
  readonly kind: 'update' | 'imitate' | 'read';
  readonly step: number;
  readonly steps: number;
  readonly loss: number;
  readonly lr: number;
  readonly ms: number;
}
type OnProgress = (p: LearnerProgress) => void;

/**
 * The learning itself: weights, optimizer and objective over ONNX sessions. Knows nothing of processes or files; time
 * comes in as `now`.
 */
export class Learner {
  readonly model: PolicyModel;
  readonly options: TrainerOptions;
  /** For full micro-batches and, one state at a time, for what is left over: cheaper than padding. */
  private readonly sessions: { readonly many: Sessions; readonly one: Sessions };
  private readonly decay: Float32Array;
  /** Screens of past lessons, for those mixed into later steps. */
  private lessons: readonly ReadingScreen[] = [];
  private shift = 0;
  private readonly now: () => number;
  private rng: Random;
  private version: PolicyVersion = 0;
  private adamSteps = 0;
  private updateSteps = 0;
  private interrupted = false;
  theta: Float32Array;
  private m: Float32Array;
  private v: Float32Array;
  private reference: Float32Array;

  private constructor(
    model: PolicyModel,
    o: TrainerOptions,
    sessions: { readonly many: Sessions; readonly one: Sessions },
    seed: number,
    now: () => number,
  ) {
    this.model = model;
    this.options = o;
    this.sessions = sessions;
    this.now = now;
    this.decay = decayMask(model.layout);
    this.rng = random(`trainer/${seed}`);
    this.theta = initialTheta(model.layout, seed);
    this.m = new Float32Array(model.layout.total);
    this.v = new Float32Array(model.layout.total);
    this.reference = this.theta.slice();
  }
  static async create(
    spec: EmbeddedPolicySpec,
    o: TrainerOptions,
    seed: number,
    now: () => number = () => performance.now(),
  ): Promise<Learner> {
    const model = policyModel(spec),
      ort = await loadOrt();
    const many = new Sessions(ort, model, o.microBatch, o.slots, o.threads);
    return new Learner(
      model,
      o,
      { many, one: o.microBatch === 1 ? many : new Sessions(ort, model, 1, o.slots, o.threads) },
      seed,
      now,
    );
  }

  state(): LearnerState {
    return {
      version: this.version,
      adamSteps: this.adamSteps,
      updateSteps: this.updateSteps,
      rng: this.rng.state(),
      theta: this.theta,
      m: this.m,
      v: this.v,
      reference: this.reference,
    };
  }
  load(s: LearnerState): void {
    this.version = s.version;
    this.adamSteps = s.adamSteps;
    this.updateSteps = s.updateSteps;
    this.rng = random(s.rng);
    this.theta = s.theta;
    this.m = s.m;
    this.v = s.v;
    this.reference = s.reference;
  }
  /** Lets the running `read` or `imitate` end after its present step. */
  interrupt(): void {
    this.interrupted = true;
  }
  async release(): Promise<void> {
    await Promise.all([...new Set([this.sessions.many, this.sessions.one])].map((s) => s.release()));
  }

  private *microBatches(
    places: readonly PackedState[],
  ): Generator<{ readonly s: Sessions; readonly micro: readonly PackedState[] }> {
    const { many, one } = this.sessions,
      full = places.length - (places.length % many.batch);
    for (let i = 0; i < full; i += many.batch) yield { s: many, micro: places.slice(i, i + many.batch) };
    for (const p of places.slice(full)) yield { s: one, micro: [p] };
  }

  /**
   * Policy-gradient passes over a batch (dart-algorithm.md 3g): `epochs` times, in minibatches of `minibatchStates`.
   */
  async update(b: TrainBatch, onProgress?: OnProgress): Promise<UpdateReport> {
    const o = this.options,
      start = this.now(),
      places = toPlaces(b.samples, o.slots),
      report = new ReportBuilder(o);
    const size = o.minibatchStates > 0 ? o.minibatchStates : Math.max(1, places.length);
    const perEpoch = Math.ceil(places.length / size),
      most = Math.max(b.epochs, b.reuse?.epochs ?? 0);
    const fresh = most * perEpoch === 1,
      reference = o.klBeta > 0;
    if (!fresh && places.length > 0) await this.score(places, this.theta, 'old');
    if (reference) await this.score(places, this.reference, 'ref');
    let epoch = 0,
      step = 0;
    // Worth another pass while the samples still speak for the weights reached: the pass before told how far these
    // went.
    for (
      ;
      places.length > 0 &&
      (epoch < b.epochs || (b.reuse !== undefined && epoch < b.reuse.epochs && reuseEss(places) >= b.reuse.ess));
      epoch++
    ) {
      const order = size >= places.length ? places : this.rng.shuffle(places);
      for (let i = 0; i < order.length; i += size) {
        const minibatch = order.slice(i, i + size);
        weigh(minibatch, o.imitationCoef, o.entropyBonus);
        const lr = o.lr * (b.lrScale ?? 1) * Math.min(1, (this.updateSteps + 1) / Math.max(1, o.warmup));
        const done = await this.optimizerStep(
          minibatch,
          { algorithm: o.algorithm, tis: o.tis.enabled, fresh, reference },
          lr,
        );
        if (fresh) for (const p of minibatch) for (const s of p.slots) s.old.set(s.now);
        if (done.applied) this.updateSteps++;
        report.step(minibatch, done.parts, done.norm, done.applied, reference);
        onProgress?.({
          kind: 'update',
          step: ++step,
          steps: Math.max(step, Math.max(b.epochs, epoch + 1) * perEpoch),
          loss: done.parts[0]!,
          lr,
          ms: this.now() - start,
        });
      }
    }
    report.passes(epoch, places.length > 0 ? reuseEss(places) : 1);
    if (places.length > 0) this.version++;
    return report.build(
      this.version,
      this.now() - start,
      places.reduce((n, p) => n + p.slots.length, 0),
      places,
      b.samples.length,
    );
  }

  /**
   * Behaviour cloning: `steps` optimizer steps on random samples, randomly shifted; warm-up and cosine decay of the
   * learning rate. The result becomes the reference.
   */
  async imitate(b: TrainBatch, i: ImitateOptions, onProgress?: OnProgress): Promise<UpdateReport> {
    const o = this.options,
      start = this.now(),
      report = new ReportBuilder(o);
    const samples = b.samples.filter((s) => s.weight !== 0);
    let queue: StepSample[] = [],
      seen = 0;
    const last = Math.max(1, Math.ceil(i.steps / 10));
    const recent = new ReportBuilder(o);
    this.interrupted = false;
    for (let step = 0; step < i.steps && samples.length > 0 && !this.interrupted; step++) {
      const picked: StepSample[] = [];
      while (picked.length < o.imitateStates) {
        if (queue.length === 0) queue = this.rng.shuffle(samples);
        picked.push(queue.pop()!);
      }
      const norm = picked.reduce((n, s) => n + s.weight, 0);
      const places = picked.map((s) => this.imitationPlace(s, s.weight / norm, i.shift));
      const lr = imitationRate(i.lr, step, i.steps);
      // Imitation fits the policy itself; sampling it at another temperature then sharpens or flattens what was
      // learned.
      const done = await this.optimizerStep(
        places,
        { algorithm: 'ppo', tis: false, fresh: true, reference: false },
        lr,
        1,
      );
      seen += places.length;
      (i.steps - step <= last ? recent : report).step(places, done.parts, done.norm, done.applied, false);
      onProgress?.({
        kind: 'imitate',
        step: step + 1,
        steps: i.steps,
        loss: done.parts[2]!,
        lr,
        ms: this.now() - start,
      });
    }
    if (seen > 0) {
      this.version++;
      this.reference = this.theta.slice();
    }
    const early = report.build(this.version, 0, 0, []),
      late = recent.build(this.version, this.now() - start, seen, []);
    // Losses of the last tenth of the steps say what was reached; counts are of all steps.
    return {
      ...late,
      states: seen,
      optimizerSteps: early.optimizerSteps + late.optimizerSteps,
      skippedNonFinite: early.skippedNonFinite + late.skippedNonFinite,
    };
  }

  /**
   * Reading lessons: find each of a screen's words. Only eyes, word table and `find` learn. The screens stay for later
   * steps (`readingCoef`).
   */
  async read(screens: readonly ReadingScreen[], r: ReadOptions, onProgress?: OnProgress): Promise<ReadReport> {
    const start = this.now(),
      size = this.options.imitateStates,
      { many } = this.sessions,
      last = Math.max(1, Math.ceil(r.steps / 10));
    let queue: ReadingScreen[] = [],
      lossSum = 0;
    this.lessons = screens;
    this.shift = r.shift;
    this.interrupted = false;
    for (let step = 0; step < r.steps && screens.length > 0 && !this.interrupted; step++) {
      const picked = Array.from({ length: Math.ceil(size / many.batch) * many.batch }, () => {
        if (queue.length === 0) queue = this.rng.shuffle(screens);
        return lesson(this.model.spec, queue.pop()!, r.shift, this.rng);
      });
      const scale = 1 / Math.max(1, picked.reduce((n, l) => n + l.words, 0) * READ_CELLS),
        lr = imitationRate(r.lr, step, r.steps);
      let gradient: Ort.Tensor = many.floats(new Float32Array(this.theta.length)),
        loss = 0;
      for (const micro of chunks(picked, many.batch)) {
        const out = await many.read({
          ...many.packLessons(micro, scale),
          theta: many.floats(this.theta),
          accumulated: gradient,
        });
        gradient = out.gradient as Ort.Tensor;
        loss += (out.loss!.data as Float32Array)[0]!;
      }
      await this.step(gradient, lr);
      if (r.steps - step <= last) lossSum += loss;
      onProgress?.({ kind: 'read', step: step + 1, steps: r.steps, loss, lr, ms: this.now() - start });
    }
    if (r.steps > 0 && screens.length > 0) this.version++;
    return {
      version: this.version,
      ms: this.now() - start,
      loss: lossSum / last,
      screens: screens.length,
      steps: r.steps,
    };
  }

  private imitationPlace(s: StepSample, weight: number, shift: number): PackedState {
    const { state, choices } = augment(this.model.spec, s.state, s.choices, shift, this.rng);
    const own: number[] = [],
      extra: Slot[] = [];
    for (const c of choices) {
      const near = this.options.cellSmoothing > 0 ? neighbourChoices(this.model.spec, c) : [];
      own.push(weight * (near.length > 0 ? 1 - this.options.cellSmoothing : 1));
      for (let k = 0; k < near.length; k += TOKENS) {
        const ids = near.slice(k, k + TOKENS);
        extra.push(
          makeSlot(ids, {
            term: 'imitation',
            imitation: ids.map(() => (weight * this.options.cellSmoothing) / near.length),
          }),
        );
      }
    }
    return {
      state,
      slots: [makeSlot(choices, { term: 'imitation', imitation: own }), ...extra],
      entropyWeight: 0,
      entropy: 0,
    };
  }

  private knobs(): Record<(typeof KNOBS)[number], number> {
    const o = this.options;
    return {
      epsLow: o.epsLow,
      epsHigh: o.epsHigh,
      dualClip: o.dualClip,
      tisCap: o.tis.cap,
      klBeta: o.klBeta,
      temperature: o.temperature,
    };
  }

  /** Log-probs of all slots under given weights, into `old` or `ref`. */
  private async score(places: readonly PackedState[], theta: Float32Array, into: 'old' | 'ref'): Promise<void> {
    for (const { s, micro } of this.microBatches(places)) {
      const out = await s.score({ ...s.pack(micro, this.knobs()), theta: s.floats(theta) });
      this.unpack(micro, out.logprobs!.data as Float32Array, out.entropy!.data as Float32Array, into);
    }
  }
  private unpack(
    micro: readonly PackedState[],
    logprobs: Float32Array,
    entropy: Float32Array,
    into: 'old' | 'ref' | 'now',
  ): void {
    micro.forEach((p, i) => {
      p.entropy = entropy[i]!;
      p.slots.forEach((s, j) => {
        const at = (i * this.options.slots + j) * TOKENS;
        s[into].set(logprobs.subarray(at, at + TOKENS));
      });
    });
  }

  /**
   * Accumulates the gradient over the micro-batches, then AdamW. A non-finite gradient leaves weights and optimizer as
   * they were.
   */
  private async optimizerStep(
    places: readonly PackedState[],
    v: GradVariant,
    lr: number,
    temperature = this.options.temperature,
  ): Promise<{ parts: number[]; norm: number; applied: boolean }> {
    const s = this.sessions.one,
      n = this.theta.length,
      parts = [0, 0, 0, 0, 0],
      theta = s.floats(this.theta);
    let gradient = s.floats(new Float32Array(n));
    for (const { s: by, micro } of this.microBatches(places)) {
      const out = await by.grad(v, {
        ...by.pack(micro, { ...this.knobs(), temperature }),
        theta,
        accumulated: gradient,
      });
      gradient = out.gradient as typeof gradient;
      (out.parts!.data as Float32Array).forEach((x, i) => {
        parts[i]! += x;
      });
      this.unpack(micro, out.logprobs!.data as Float32Array, out.entropy!.data as Float32Array, 'now');
    }
    if (this.lessons.length > 0 && this.options.readingCoef > 0) {
      const { many } = this.sessions,
        picked = Array.from({ length: many.batch }, () =>
          lesson(this.model.spec, this.rng.pick(this.lessons), this.shift, this.rng),
        );
      const scale = this.options.readingCoef / Math.max(1, picked.reduce((a, l) => a + l.words, 0) * READ_CELLS);
      gradient = (await many.read({ ...many.packLessons(picked, scale), theta, accumulated: gradient }))
        .gradient as typeof gradient;
    }
    return { parts, ...(await this.step(gradient, lr)) };
  }

  /** One AdamW step; a non-finite gradient changes nothing. */
  private async step(gradient: Ort.Tensor, lr: number): Promise<{ norm: number; applied: boolean }> {
    const s = this.sessions.one,
      theta = s.floats(this.theta);
    const o = this.options,
      t = this.adamSteps + 1;
    const knob: Record<(typeof ADAM_KNOBS)[number], number> = {
      lr,
      beta1: o.beta1,
      beta2: o.beta2,
      epsilon: o.adamEpsilon,
      weightDecay: o.weightDecay,
      gradClip: o.gradClip,
      c1: 1 - o.beta1 ** t,
      c2: 1 - o.beta2 ** t,
    };
    const out = await s.adam({
      theta,
      gradient,
      m: s.floats(this.m),
      v: s.floats(this.v),
      decay: s.floats(this.decay),
      knobs: s.floats(Float32Array.from(ADAM_KNOBS, (k) => knob[k])),
    });
    const norm = (out.norm!.data as Float32Array)[0]!;
    const applied = Number.isFinite(norm);
    if (applied) {
      this.theta = out.theta2!.data as Float32Array;
      this.m = out.m2!.data as Float32Array;
      this.v = out.v2!.data as Float32Array;
      this.adamSteps = t;
    }
    return { norm, applied };
  }
}

/**
 * Effective sample size / n of the policy samples as last seen (`now`) against the policy before the update (`old`),
 * one weight a step.
 */
function reuseEss(places: readonly PackedState[]): number {
  const weights = places.flatMap((p) =>
    p.slots.flatMap((s) =>
      s.term === 'policy' ? [sequenceRatio(s.now.subarray(0, s.tokens), s.old.subarray(0, s.tokens))] : [],
    ),
  );
  return correctionMetrics(weights, 1).ess;
}

/** Linear warm-up over the first tenth (at most 50 steps), then a cosine down to 5 %. */
export function imitationRate(lr: number, step: number, steps: number): number {
  const warm = Math.max(1, Math.min(50, Math.floor(steps / 10)));
  if (step < warm) return (lr * (step + 1)) / warm;
  const x = (step - warm) / Math.max(1, steps - warm);
  return lr * (0.05 + 0.95 * 0.5 * (1 + Math.cos(Math.PI * x)));
}

function* chunks<T>(xs: readonly T[], n: number): Generator<readonly T[]> {
  for (let i = 0; i < xs.length; i += n) yield xs.slice(i, i + n);
}
