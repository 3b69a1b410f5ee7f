import { type Random } from '../../domain/index.js';
import type * as Ort from 'onnxruntime-node';
import type { Augmentation, ReadingScreen } from '../types.js';
import { retone } from './augment.js';
import type { LookAhead } from './lookAhead.js';
import { ADAM_PARAMS } from './model/adamGraph.js';
import { TOKENS, type GradVariant, type LOSS_PARAMS } from './model/lossGraph.js';
import { decayMask, initialTheta } from './model/params.js';
import type { PolicyModel } from './model/policyGraph.js';
import type { TrainerOptions } from './options.js';
import type { PackedState } from './packing.js';
import { Perception } from './perception.js';
import { lesson, READ_CELLS, type Lesson } from './reading.js';
import type { Feeds, Sessions } from './sessions.js';
import { spellingLesson, type SpellingLesson } from './spelling.js';

/** One optimizer step: losses [loss, policy, imitation, kl, bonus], the gradient's norm, and whether it was applied. */
export interface OptimizerStep {
  readonly parts: readonly number[];
  readonly norm: number;
  readonly applied: boolean;
  /** The caller did not want the step after what the forward passes showed. */
  readonly stopped?: true;
}
export interface StepOptions {
  /** Default: that of the run's policy. */
  readonly temperature?: number;
  /** Asked once `now` of every slot is known and before anything is changed or drawn: true = no step is made. */
  readonly unless?: () => boolean;
}
/** What learns by itself of a policy that spells. */
type Part = 'reader' | 'decision';
/** Weights and AdamW moments, f32[P], as a checkpoint holds them. */
export interface OptimizerState {
  /** AdamW steps of what decides; of all parameters where the policy has no reader. */
  readonly adamSteps: number;
  /** AdamW steps of the reader, which learns before what decides does. */
  readonly readerSteps: number;
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
  #readerSteps = 0;
  #theta: Float32Array;
  #m: Float32Array;
  #v: Float32Array;
  /** Screens of past reading lessons, for those mixed into later steps. */
  #screens: readonly ReadingScreen[] = [];
  #lessonsVary: Augmentation = { shift: 0 };
  /** Present for a policy that spells. */
  readonly perception: Perception | undefined;

  constructor(
    model: PolicyModel,
    o: TrainerOptions,
    sessions: { readonly many: Sessions; readonly one: Sessions },
    seed: number,
    lookAhead?: LookAhead,
  ) {
    this.#model = model;
    this.#options = o;
    this.#sessions = sessions;
    this.#decay = decayMask(model.layout);
    this.perception = model.reader && new Perception(model, sessions.many, lookAhead);
    this.#theta = initialTheta(model.layout, seed);
    this.#m = new Float32Array(model.layout.total);
    this.#v = new Float32Array(model.layout.total);
  }

  get theta(): Float32Array {
    return this.#theta;
  }
  state(): OptimizerState {
    return {
      adamSteps: this.#adamSteps,
      readerSteps: this.#readerSteps,
      theta: this.#theta,
      m: this.#m,
      v: this.#v,
    };
  }
  load(s: OptimizerState): void {
    this.#adamSteps = s.adamSteps;
    this.#readerSteps = s.readerSteps;
    this.#theta = s.theta;
    this.#m = s.m;
    this.#v = s.v;
    this.perception?.forget();
  }
  async release(): Promise<void> {
    this.perception?.release();
    await Promise.all([...new Set([this.#sessions.many, this.#sessions.one])].map((s) => s.release()));
  }

  /** From now on every step mixes in lessons on these screens, by `readingCoef`. */
  keepScreens(screens: readonly ReadingScreen[], vary: Augmentation): void {
    this.#screens = screens;
    this.#lessonsVary = vary;
  }

  /** Log-probs of all slots under given weights, into `old` or `ref`. */
  async score(states: readonly PackedState[], theta: Float32Array, into: 'old' | 'ref'): Promise<void> {
    for (const { s, micro } of this.#microBatches(states)) {
      const out = await s.score({
        ...(await this.#perceived(s, micro)),
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
    { temperature = this.#options.temperature, unless }: StepOptions = {},
  ): Promise<OptimizerStep> {
    const { many, one } = this.#sessions,
      parts = [0, 0, 0, 0, 0],
      theta = one.floats(this.#theta),
      params = lossParams(this.#options, temperature);
    let gradient: Ort.Tensor = one.floats(new Float32Array(this.#theta.length));
    for (const { s, micro } of this.#microBatches(states)) {
      // Before packing: looking uses the same buffers.
      const seen = await this.#perceived(s, micro),
        out = await s.grad(variant, { ...s.pack(micro, params), ...seen, theta, accumulated: gradient });
      gradient = out.gradient!;
      floatsOf(out.parts).forEach((x, i) => {
        parts[i]! += x;
      });
      this.#unpack(micro, floatsOf(out.logprobs), floatsOf(out.entropy), 'now');
    }
    if (unless?.()) return { parts, norm: NaN, applied: false, stopped: true };
    const mixed = this.#mixes;
    if (mixed) {
      const picked = Array.from({ length: many.batch }, () => rng.pick(this.#screens));
      ({ gradient } = await this.#lesson(picked, this.#lessonsVary, rng, this.#options.readingCoef, gradient));
    }
    return { parts, ...(await this.#adamW(gradient, lr, mixed ? 'all' : 'decision')) };
  }

  /** Whether every step is one of the reader, too. */
  get #mixes(): boolean {
    return this.#screens.length > 0 && this.#options.readingCoef > 0;
  }
  /** Whether what is to be seen in later steps may be looked at beforehand: the reader stays as it is. */
  get looksAhead(): boolean {
    return !this.#mixes && (this.perception?.looksAhead ?? false);
  }
  /** Begins to look at the states of a later step, in another thread. */
  lookAhead(states: readonly PackedState[]): void {
    for (const { micro } of this.#microBatches(states))
      this.perception?.ahead(
        micro.map((p) => p.state),
        this.#theta,
      );
  }

  /** Forgets what was looked at ahead. */
  forgetAhead(): void {
    this.perception?.forgetAhead();
  }

  /**
   * What the reader, with its present weights, sees of these states; nothing for a policy that knows words by number.
   */
  async #perceived(s: Sessions, micro: readonly PackedState[]): Promise<Feeds> {
    if (!this.perception) return {};
    return s.packPerceived(
      await this.perception.of(
        micro.map((p) => p.state),
        this.#theta,
      ),
    );
  }

  /** The number of screens in one reading step: in whole micro-batches, one of them for a reader. */
  readingScreens(wanted: number): number {
    const { batch } = this.#sessions.many;
    return this.#model.reader ? batch : Math.ceil(wanted / batch) * batch;
  }
  /** One optimizer step on reading lessons alone; returns the mean loss of a target. A reader alone learns. */
  async readingStep(screens: readonly ReadingScreen[], vary: Augmentation, rng: Random, lr: number): Promise<number> {
    const { many } = this.#sessions,
      start: Ort.Tensor = many.floats(new Float32Array(this.#theta.length)),
      out = await this.#lesson(screens, vary, rng, 1, start);
    await this.#adamW(out.gradient, lr, this.#model.reader ? 'reader' : 'all');
    return out.loss;
  }

  /** Adds the gradient of a lesson on these screens, times `coefficient`. */
  #lesson(
    screens: readonly ReadingScreen[],
    vary: Augmentation,
    rng: Random,
    coefficient: number,
    accumulated: Ort.Tensor,
  ): Promise<{ readonly gradient: Ort.Tensor; readonly loss: number }> {
    const { spec, reader } = this.#model,
      { many } = this.#sessions,
      varied = <L extends { readonly obs: Uint8Array }>(l: L): L => ({
        ...l,
        obs: retone(l.obs, vary.tones ?? 0, rng),
      });
    if (reader) {
      const lessons = screens.map((s) => varied(spellingLesson(spec, s, vary.shift, rng))),
        scale =
          coefficient /
          Math.max(
            1,
            lessons.reduce((n, l) => n + l.characters, 0),
          );
      return this.#inParts(lessons, accumulated, (part: readonly SpellingLesson[], more) =>
        many.spell({ ...many.packSpelling(part, scale), ...more }),
      );
    }
    const lessons = screens.map((s) => varied(lesson(spec, s, vary.shift, rng))),
      scale = coefficient / targetCells(lessons);
    return this.#inParts(lessons, accumulated, (part: readonly Lesson[], more) =>
      many.read({ ...many.packLessons(part, scale), ...more }),
    );
  }
  async #inParts<L>(
    lessons: readonly L[],
    accumulated: Ort.Tensor,
    run: (part: readonly L[], more: Feeds) => Promise<Ort.InferenceSession.OnnxValueMapType>,
  ): Promise<{ readonly gradient: Ort.Tensor; readonly loss: number }> {
    const { many } = this.#sessions,
      theta = many.floats(this.#theta);
    let gradient = accumulated,
      loss = 0;
    for (let i = 0; i < lessons.length; i += many.batch) {
      const out = await run(lessons.slice(i, i + many.batch), { theta, accumulated: gradient });
      gradient = out.gradient!;
      loss += floatsOf(out.loss)[0]!;
    }
    return { gradient, loss };
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

  /**
   * One AdamW step; a gradient that is not finite leaves weights and moments unchanged. Of a policy that spells either
   * the reader learns or what decides: decay and momentum of the other part wait as well. Each part's moments are
   * corrected for the steps that it made itself.
   */
  async #adamW(gradient: Ort.Tensor, lr: number, learns: Part | 'all'): Promise<{ norm: number; applied: boolean }> {
    const together = learns === 'all' && this.#adamSteps === this.#readerSteps;
    if (learns !== 'all' || together) return this.#adamStep(gradient, lr, learns);
    // The norm, and so whether a step is made, is that of the whole gradient both times.
    await this.#adamStep(gradient, lr, 'reader');
    return this.#adamStep(gradient, lr, 'decision');
  }
  async #adamStep(gradient: Ort.Tensor, lr: number, learns: Part | 'all'): Promise<{ norm: number; applied: boolean }> {
    const s = this.#sessions.one,
      o = this.#options,
      t = (learns === 'reader' ? this.#readerSteps : this.#adamSteps) + 1;
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
      const kept = this.#keptFrom(learns),
        next = (after: Ort.Tensor | undefined, before: Float32Array): Float32Array => {
          const x = floatsOf(after);
          if (kept) x.set(before.subarray(...kept), kept[0]);
          return x;
        };
      this.#theta = next(out.theta2, this.#theta);
      this.#m = next(out.m2, this.#m);
      this.#v = next(out.v2, this.#v);
      if (learns !== 'decision') this.perception?.forget();
      if (learns !== 'reader') this.#adamSteps = t;
      if (learns !== 'decision') this.#readerSteps = t;
    }
    return { norm, applied };
  }
  /** The stretch of parameters that a step leaves as it is. */
  #keptFrom(learns: Part | 'all'): [number, number] | undefined {
    const { reader, layout } = this.#model;
    if (!reader || learns === 'all') return undefined;
    return learns === 'reader' ? [reader.parameters, layout.total] : [0, reader.parameters];
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
