import {
  headOffsets,
  random,
  type EmbeddedPolicySpec,
  type PolicyVersion,
  type Random,
  type EmbeddedSample,
  type EmbeddedBatch,
} from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import type { Augmentation, ImitateOptions, ReadingScreen, ReadOptions, ReadReport, UpdateReport } from '../types.js';
import { augment, forgetful, neighbourChoices } from './augment.js';
import { klMoved, movedTooFar } from '../objective/kl.js';
import { equalParts, imitationRate, minibatches, reportedSteps } from '../schedule.js';
import { TOKENS, type GradVariant } from './model/lossGraph.js';
import { policyModel, type PolicyModel } from './model/policyGraph.js';
import { LookAhead } from './lookAhead.js';
import { Optimizer, type OptimizerState } from './optimizer.js';
import type { TrainerOptions } from './options.js';
import { applyLossWeights, makeSlot, packSamples, type PackedState, type Slot } from './packing.js';
import { reuseEss } from './passes.js';
import { ReportBuilder } from './report.js';
import { loadOrt } from '../../domain/onnxRuntime.js';
import { Sessions } from './sessions.js';

/** Everything a checkpoint holds. Arrays are f32[P]. */
export interface LearnerState extends OptimizerState {
  readonly version: PolicyVersion;
  readonly updateSteps: number;
  readonly rng: readonly [number, number, number, number];
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
/** The parts of its process that a learner uses. */
export interface LearnerHost {
  readonly now?: () => number;
  readonly entry?: ProcessEntry;
  readonly onNote?: (text: string) => void;
}

/**
 * Imitation fits the policy at temperature 1: sampling at another temperature then sharpens or flattens what was
 * learned.
 */
const IMITATION: { readonly variant: GradVariant; readonly temperature: number } = {
  variant: { algorithm: 'ppo', tis: false, fresh: true, reference: false },
  temperature: 1,
};

/**
 * Learning without processes and files: weights, optimizer and objective over ONNX sessions; time is the argument
 * `now`.
 */
export class Learner {
  readonly model: PolicyModel;
  readonly options: TrainerOptions;
  readonly #optimizer: Optimizer;
  readonly #now: () => number;
  #rng: Random;
  #version: PolicyVersion = 0;
  #updateSteps = 0;
  #interrupted = false;
  #reference: Float32Array;

  private constructor(model: PolicyModel, o: TrainerOptions, optimizer: Optimizer, seed: number, now: () => number) {
    this.model = model;
    this.options = o;
    this.#optimizer = optimizer;
    this.#now = now;
    this.#rng = random(`trainer/${seed}`);
    this.#reference = optimizer.theta.slice();
  }
  /**
   * `entry` starts a thread that looks at states beforehand; without it this one does everything. `onNote` hears when
   * that thread is given up.
   */
  static async create(
    spec: EmbeddedPolicySpec,
    o: TrainerOptions,
    seed: number,
    { now = () => performance.now(), entry, onNote }: LearnerHost = {},
  ): Promise<Learner> {
    const model = policyModel(spec),
      ort = await loadOrt(),
      many = new Sessions(ort, model, o.microBatch, o.slots, o.threads),
      one = o.microBatch === 1 ? many : new Sessions(ort, model, 1, o.slots, o.threads),
      // Only with one thread: more add numbers in an order of their own, and are not to wait for a single one.
      lookAhead =
        entry && o.threads === 1
          ? LookAhead.here({
              entry,
              spec,
              batch: o.microBatch,
              onFailure: (why) =>
                onNote?.(`Imitation goes on with one thread, the one that looks ahead failed: ${why}.`),
            })
          : undefined;
    return new Learner(model, o, new Optimizer(model, o, { many, one }, seed, lookAhead), seed, now);
  }

  /** Present weights, f32[P]. */
  get theta(): Float32Array {
    return this.#optimizer.theta;
  }
  state(): LearnerState {
    return {
      ...this.#optimizer.state(),
      version: this.#version,
      updateSteps: this.#updateSteps,
      rng: this.#rng.state(),
      reference: this.#reference,
    };
  }
  load(s: LearnerState): void {
    this.#optimizer.load(s);
    this.#version = s.version;
    this.#updateSteps = s.updateSteps;
    this.#rng = random(s.rng);
    this.#reference = s.reference;
  }
  /** Ends the running `read` or `imitate` after its current step. */
  interrupt(): void {
    this.#interrupted = true;
  }
  release(): Promise<void> {
    return this.#optimizer.release();
  }

  /**
   * Policy-gradient passes over a batch (runtime/trainer/README.md#objective): `epochs` times, in equal minibatches
   * of at most `minibatchStates`.
   */
  async update(b: EmbeddedBatch, onProgress?: OnProgress): Promise<UpdateReport> {
    const o = this.options,
      start = this.#now(),
      states = packSamples(
        (await this.#complete(b.samples)).map((s, i) => this.#varied(s, i)),
        o.slots,
      ),
      report = new ReportBuilder(o),
      perEpoch = equalParts(states, o.minibatchStates).length;
    const variant: GradVariant = {
      algorithm: o.algorithm,
      tis: o.tis.enabled,
      // With a single optimizer step, the only forward pass is that of the policy before the update.
      fresh: Math.max(b.epochs, b.reuse?.epochs ?? 0) * perEpoch === 1,
      reference: o.klBeta > 0,
    };
    if (!variant.fresh && states.length > 0) await this.#optimizer.score(states, this.theta, 'old');
    if (variant.reference) await this.#optimizer.score(states, this.#reference, 'ref');
    const reached = new Set<PackedState>();
    let step = 0,
      planned = 0;
    const passes = minibatches(states, b, {
      size: o.minibatchStates,
      shuffled: () => this.#rng.shuffle(states),
      ess: () => reuseEss(states),
    });
    for (const m of passes) {
      planned = m.planned;
      const done = await this.#minibatch(m.items, variant, { lrScale: b.lrScale ?? 1, first: step === 0 }, report);
      if (!done) break;
      step++;
      for (const p of m.items) reached.add(p);
      onProgress?.({ kind: 'update', step, steps: planned, ...done, ms: this.#now() - start });
    }
    const trained = states.filter((p) => reached.has(p));
    report.passes({
      epochs: Math.floor(step / perEpoch),
      planned,
      reuseEss: trained.length > 0 ? reuseEss(trained) : 1,
    });
    if (states.length > 0) this.#version++;
    const samples = trained.reduce((n, p) => n + p.slots.length, 0);
    return report.build(this.#version, this.#now() - start, samples, trained, b.samples.length);
  }

  /**
   * One optimizer step of an update; the learning rate rises over the first `warmup` of them. Undefined: the policy has
   * moved too far for it (`targetKl`). The `first` is always made, at a KL of 0 but for rounding.
   */
  async #minibatch(
    states: readonly PackedState[],
    variant: GradVariant,
    { lrScale, first }: { readonly lrScale: number; readonly first: boolean },
    report: ReportBuilder,
  ): Promise<{ readonly loss: number; readonly lr: number } | undefined> {
    const o = this.options,
      kl = (): number => klMoved(states.flatMap((p) => p.slots)),
      lr = o.lr * lrScale * Math.min(1, (this.#updateSteps + 1) / Math.max(1, o.warmup));
    applyLossWeights(states, o.imitationCoef, o.entropyBonus);
    const done = await this.#optimizer.step(states, variant, lr, this.#rng, {
      unless: () => !first && movedTooFar(kl(), o.targetKl),
    });
    if (variant.fresh) for (const p of states) for (const s of p.slots) s.old.set(s.now);
    report.moved(kl());
    if (done.stopped) return undefined;
    if (done.applied) this.#updateSteps++;
    report.step(states, { ...done, lr }, variant.reference);
    return { loss: done.parts[0]!, lr };
  }

  /**
   * Behaviour cloning: `steps` optimizer steps on random samples, randomly shifted; warm-up and cosine decay of the
   * learning rate. The result becomes the reference. When interrupted, it keeps and reports what it has learned.
   */
  async imitate(b: EmbeddedBatch, i: ImitateOptions, onProgress?: OnProgress): Promise<UpdateReport> {
    // Before anything is waited for: an interruption from now on is of this lesson.
    this.#interrupted = false;
    const start = this.#now(),
      early = new ReportBuilder(this.options),
      late = new ReportBuilder(this.options),
      next = this.#drawing((await this.#complete(b.samples)).filter((s) => s.weight !== 0));
    const draw = (from: () => EmbeddedSample): readonly PackedState[] => {
      const picked = Array.from({ length: this.options.imitateStates }, from),
        norm = picked.reduce((n, s) => n + s.weight, 0);
      return picked.map((s) => this.#imitationState(s, s.weight / norm, i));
    };
    const from = i.from ?? 0;
    let states = 0,
      step = from,
      latest: ReportBuilder | undefined;
    for (const packed of next ? this.#inTurn((i.until ?? i.steps) - from, () => draw(next)) : []) {
      const lr = imitationRate(i.lr, step, i.steps),
        done = await this.#optimizer.step(packed, IMITATION.variant, lr, this.#rng, {
          temperature: IMITATION.temperature,
        });
      states += packed.length;
      latest = i.steps - step <= reportedSteps(i.steps) ? late : early;
      latest.step(packed, { ...done, lr }, false);
      onProgress?.({
        kind: 'imitate',
        step: ++step,
        steps: i.steps,
        loss: done.parts[2]!,
        lr,
        ms: this.#now() - start,
      });
    }
    if (states > 0) {
      this.#version++;
      this.#reference = this.theta.slice();
    }
    const [a, z] = [early, late].map((r) => r.build(this.#version, this.#now() - start, states, []));
    // Counts cover all steps, losses only the last ones.
    return {
      ...(latest === early ? a! : z!),
      states,
      optimizerSteps: a!.optimizerSteps + z!.optimizerSteps,
      skippedNonFinite: a!.skippedNonFinite + z!.skippedNonFinite,
    };
  }

  /**
   * What one step after the other imitates, until interrupted; where that can be, the next is looked at while one is
   * computed. What was drawn and not used leaves no trace.
   */
  *#inTurn(steps: number, draw: () => readonly PackedState[]): Generator<readonly PackedState[]> {
    let ahead: { readonly packed: readonly PackedState[]; readonly before: ReturnType<Random['state']> } | undefined;
    try {
      for (let step = 0; step < steps && !this.#interrupted; step++) {
        const packed = ahead?.packed ?? draw();
        ahead = undefined;
        if (this.#optimizer.looksAhead && step + 1 < steps) {
          ahead = { before: this.#rng.state(), packed: draw() };
          this.#optimizer.lookAhead(ahead.packed);
        }
        yield packed;
      }
    } finally {
      if (ahead) {
        this.#rng = random(ahead.before);
        this.#optimizer.forgetAhead();
      }
    }
  }

  /**
   * Reading lessons: find each of a screen's words, or say which character stands where. Only the layers that read
   * learn. The screens are kept for later steps (`readingCoef`). When interrupted, it keeps and reports what it has learned.
   */
  async read(screens: readonly ReadingScreen[], r: ReadOptions, onProgress?: OnProgress): Promise<ReadReport> {
    const start = this.#now(),
      size = this.#optimizer.readingScreens(this.options.imitateStates),
      next = this.#drawing(screens),
      losses: number[] = [];
    this.#interrupted = false;
    for (let step = r.from ?? 0; step < (r.until ?? r.steps) && next && !this.#interrupted; step++) {
      const lr = imitationRate(r.lr, step, r.steps),
        loss = await this.#optimizer.readingStep(Array.from({ length: size }, next), r, this.#rng, lr);
      losses.push(loss);
      onProgress?.({ kind: 'read', step: step + 1, steps: r.steps, loss, lr, ms: this.#now() - start });
    }
    this.#optimizer.keepScreens(screens, r);
    if (losses.length > 0) this.#version++;
    const last = losses.slice(-reportedSteps(losses.length));
    return {
      version: this.#version,
      ms: this.#now() - start,
      loss: last.reduce((a, x) => a + x, 0) / Math.max(1, last.length),
      screens: screens.length,
      steps: losses.length,
    };
  }

  /**
   * Demonstrated texts that are read from the screen get their place: where the reader finds them. One that it does not
   * find teaches nothing.
   */
  async #complete(samples: readonly EmbeddedSample[]): Promise<readonly EmbeddedSample[]> {
    const { spec } = this.model,
      open = samples.filter((s) => s.reads !== undefined && s.weight !== 0);
    if (open.length === 0) return samples;
    const cells = await this.#optimizer.perception?.cellsOf(
        open.map((s) => ({ obs: s.state.obs, text: s.reads! })),
        this.theta,
      ),
      cellOf = new Map(open.map((s, i) => [s, cells?.[i]]));
    return samples.map((s) => {
      if (!cellOf.has(s)) return s;
      const cell = cellOf.get(s);
      return cell === undefined
        ? { ...s, weight: 0 }
        : { ...s, choices: Int32Array.of(...s.choices, headOffsets(spec).cell2 + cell) };
    });
  }

  /** Items in random order, all of them before any comes again; undefined without any. */
  #drawing<T>(items: readonly T[]): (() => T) | undefined {
    let queue: T[] = [];
    if (items.length === 0) return undefined;
    return () => {
      if (queue.length === 0) queue = this.#rng.shuffle(items);
      return queue.pop()!;
    };
  }

  /** A replayed step as the warm start would show it: what is trained beside it was seen as it was, in few looks. */
  #varied(s: EmbeddedSample, i: number): EmbeddedSample {
    const { replayVary } = this.options,
      { spec } = this.model;
    if (!replayVary || s.weight === 0 || s.kind !== 'imitation' || s.advantage !== 0) return s;
    const { state, choices } = augment(spec, forgetful(spec, s.state, this.#rng), s.choices, replayVary, this.#rng);
    return { ...s, state, choices, stateKey: `${s.stateKey}/varied/${i}` };
  }

  /** A demonstrated step, randomly moved and toned; part of a cell's weight goes to its neighbours (`cellSmoothing`). */
  #imitationState(s: EmbeddedSample, weight: number, vary: Augmentation): PackedState {
    const { cellSmoothing } = this.options,
      { state, choices } = augment(
        this.model.spec,
        forgetful(this.model.spec, s.state, this.#rng),
        s.choices,
        vary,
        this.#rng,
      );
    const own: number[] = [],
      extra: Slot[] = [];
    for (const c of choices) {
      const near = cellSmoothing > 0 ? neighbourChoices(this.model.spec, c) : [];
      own.push(weight * (near.length > 0 ? 1 - cellSmoothing : 1));
      for (let k = 0; k < near.length; k += TOKENS) {
        const ids = near.slice(k, k + TOKENS);
        extra.push(
          makeSlot(ids, { term: 'imitation', imitation: ids.map(() => (weight * cellSmoothing) / near.length) }),
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
}
