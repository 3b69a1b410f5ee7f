import { type Random } from '../../domain/index.js';
import type * as Ort from 'onnxruntime-node';
import type { ReadingScreen } from '../types.js';
import { ADAM_PARAMS } from './model/adamGraph.js';
import { TOKENS, type GradVariant, type LOSS_PARAMS } from './model/lossGraph.js';
import { decayMask, initialTheta } from './model/params.js';
import type { PolicyModel } from './model/policyGraph.js';
import type { TrainerOptions } from './options.js';
import type { PackedState } from './packing.js';
import { lesson, READ_CELLS, type Lesson } from './reading.js';
import type { Sessions } from './sessions.js';

/** One optimizer step: losses [loss, policy, imitation, kl, bonus], the gradient's norm, and whether it was applied. */
export interface OptimizerStep {
  readonly parts: readonly number[];
  readonly norm: number;
  readonly applied: boolean;
}
/** Weights and AdamW moments, f32[P], as a checkpoint holds them. */
export interface OptimizerState {
  readonly adamSteps: number;
  readonly theta: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
}

/** The weights and their updates: forward passes, gradients summed over micro-batches, AdamW. */
export class Optimizer {
  readonly #model: PolicyModel;
  readonly #options: TrainerOptions;
  /** Sessions for full micro-batches and, one state at a time, for the rest, which is cheaper than padding. */
  readonly #sessions: { readonly many: Sessions; readonly one: Sessions };
  readonly #decay: Float32Array;
  #adamSteps = 0;
  #theta: Float32Array;
  #m: Float32Array;
  #v: Float32Array;
  /** Screens of past reading lessons, for those mixed into later steps. */
  #screens: readonly ReadingScreen[] = [];
  #shift = 0;

  constructor(
    model: PolicyModel,
    o: TrainerOptions,
    sessions: { readonly many: Sessions; readonly one: Sessions },
    seed: number,
  ) {
    this.#model = model;
    this.#options = o;
    this.#sessions = sessions;
    this.#decay = decayMask(model.layout);
    this.#theta = initialTheta(model.layout, seed);
    this.#m = new Float32Array(model.layout.total);
    this.#v = new Float32Array(model.layout.total);
  }

  get theta(): Float32Array {
    return this.#theta;
  }
  state(): OptimizerState {
    return { adamSteps: this.#adamSteps, theta: this.#theta, m: this.#m, v: this.#v };
  }
  load(s: OptimizerState): void {
    this.#adamSteps = s.adamSteps;
    this.#theta = s.theta;
    this.#m = s.m;
    this.#v = s.v;
  }
  async release(): Promise<void> {
    await Promise.all([...new Set([this.#sessions.many, this.#sessions.one])].map((s) => s.release()));
  }

  /** From now on every step mixes in lessons on these screens, by `readingCoef`. */
  keepScreens(screens: readonly ReadingScreen[], shift: number): void {
    this.#screens = screens;
    this.#shift = shift;
  }

  /** Log-probs of all slots under given weights, into `old` or `ref`. */
  async score(states: readonly PackedState[], theta: Float32Array, into: 'old' | 'ref'): Promise<void> {
    for (const { s, micro } of this.#microBatches(states)) {
      const out = await s.score({
        ...s.pack(micro, lossParams(this.#options, this.#options.temperature)),
        theta: s.floats(theta),
      });
      this.#unpack(micro, floatsOf(out.logprobs), floatsOf(out.entropy), into);
    }
  }

  /** Accumulates the gradient over the micro-batches, then AdamW. `rng` draws the lessons mixed in. */
  async step(
    states: readonly PackedState[],
    variant: GradVariant,
    lr: number,
    rng: Random,
    temperature = this.#options.temperature,
  ): Promise<OptimizerStep> {
    const { many, one } = this.#sessions,
      parts = [0, 0, 0, 0, 0],
      theta = one.floats(this.#theta),
      params = lossParams(this.#options, temperature);
    let gradient: Ort.Tensor = one.floats(new Float32Array(this.#theta.length));
    for (const { s, micro } of this.#microBatches(states)) {
      const out = await s.grad(variant, { ...s.pack(micro, params), theta, accumulated: gradient });
      gradient = out.gradient!;
      floatsOf(out.parts).forEach((x, i) => {
        parts[i]! += x;
      });
      this.#unpack(micro, floatsOf(out.logprobs), floatsOf(out.entropy), 'now');
    }
    if (this.#screens.length > 0 && this.#options.readingCoef > 0) {
      const picked = Array.from({ length: many.batch }, () =>
        lesson(this.#model.spec, rng.pick(this.#screens), this.#shift, rng),
      );
      ({ gradient } = await this.#read(picked, this.#options.readingCoef / targetCells(picked), gradient));
    }
    return { parts, ...(await this.#adamW(gradient, lr)) };
  }

  /** The number of lessons in one reading step: at least `wanted`, in whole micro-batches. */
  wholeBatches(wanted: number): number {
    const { batch } = this.#sessions.many;
    return Math.ceil(wanted / batch) * batch;
  }
  /** One optimizer step on reading lessons alone; returns the mean loss of a target cell. */
  async readingStep(lessons: readonly Lesson[], lr: number): Promise<number> {
    const { many } = this.#sessions,
      scale = 1 / targetCells(lessons);
    let gradient: Ort.Tensor = many.floats(new Float32Array(this.#theta.length)),
      total = 0;
    for (let i = 0; i < lessons.length; i += many.batch) {
      const out = await this.#read(lessons.slice(i, i + many.batch), scale, gradient);
      gradient = out.gradient;
      total += out.loss;
    }
    await this.#adamW(gradient, lr);
    return total;
  }

  /** Adds the gradient of at most one micro-batch of lessons. */
  async #read(
    lessons: readonly Lesson[],
    scale: number,
    accumulated: Ort.Tensor,
  ): Promise<{ readonly gradient: Ort.Tensor; readonly loss: number }> {
    const { many } = this.#sessions,
      out = await many.read({ ...many.packLessons(lessons, scale), theta: many.floats(this.#theta), accumulated });
    return { gradient: out.gradient!, loss: floatsOf(out.loss)[0]! };
  }

  *#microBatches(
    states: readonly PackedState[],
  ): Generator<{ readonly s: Sessions; readonly micro: readonly PackedState[] }> {
    const { many, one } = this.#sessions,
      full = states.length - (states.length % many.batch);
    for (let i = 0; i < full; i += many.batch) yield { s: many, micro: states.slice(i, i + many.batch) };
    for (const p of states.slice(full)) yield { s: one, micro: [p] };
  }

  #unpack(
    micro: readonly PackedState[],
    logprobs: Float32Array,
    entropy: Float32Array,
    into: 'old' | 'ref' | 'now',
  ): void {
    micro.forEach((p, i) => {
      p.entropy = entropy[i]!;
      p.slots.forEach((s, j) => {
        const at = (i * this.#options.slots + j) * TOKENS;
        s[into].set(logprobs.subarray(at, at + TOKENS));
      });
    });
  }

  /** One AdamW step; a gradient that is not finite leaves weights and moments unchanged. */
  async #adamW(gradient: Ort.Tensor, lr: number): Promise<{ norm: number; applied: boolean }> {
    const s = this.#sessions.one,
      o = this.#options,
      t = this.#adamSteps + 1;
    const params: Record<(typeof ADAM_PARAMS)[number], number> = {
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
      theta: s.floats(this.#theta),
      gradient,
      m: s.floats(this.#m),
      v: s.floats(this.#v),
      decay: s.floats(this.#decay),
      adamParams: s.floats(Float32Array.from(ADAM_PARAMS, (k) => params[k])),
    });
    const norm = floatsOf(out.norm)[0]!,
      applied = Number.isFinite(norm);
    if (applied) {
      this.#theta = floatsOf(out.theta2);
      this.#m = floatsOf(out.m2);
      this.#v = floatsOf(out.v2);
      this.#adamSteps = t;
    }
    return { norm, applied };
  }
}

/** The values of an output of type f32. */
function floatsOf(output: Ort.Tensor | undefined): Float32Array {
  if (output?.data instanceof Float32Array) return output.data;
  throw new TypeError(`a graph gave ${output?.type ?? 'nothing'} where it gives float32`);
}

const targetCells = (lessons: readonly Lesson[]): number =>
  Math.max(1, lessons.reduce((n, l) => n + l.words, 0) * READ_CELLS);

const lossParams = (o: TrainerOptions, temperature: number): Record<(typeof LOSS_PARAMS)[number], number> => ({
  epsLow: o.epsLow,
  epsHigh: o.epsHigh,
  dualClip: o.dualClip,
  tisCap: o.tis.cap,
  klBeta: o.klBeta,
  temperature,
});
