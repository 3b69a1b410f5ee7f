import { random } from '../../../domain/index.js';
import { ignoreFailure, orUndefined } from '../../../concurrency/failures.js';
import { withDeadline } from '../../../concurrency/deadline.js';
import { carried, signedWeights, type Carrier } from '../../objective/signedWeights.js';
import type { AdamParams, ModelOptions, RemoteModel, TrainingClient } from '../client.js';
import type { Carriage } from '../gradient.js';
import { floats, integers, type Chunk, type Datum } from '../wire/index.js';

/**
 * Measures a server from outside, with fresh models, passes, and optimizer steps that are plain gradient descent. With
 * beta1 = beta2 = 0 and eps far above every gradient, AdamW's step is rate * gradient, so the change of log p after one
 * step is linear in the gradient: it shows what the server made of the weights, and needs no metrics.
 */

/** Far above any gradient; what is beyond single precision's reach of the parameters is not. */
const FAR = { eps: 1e4, scale: 1 },
  /** For servers that take no eps above 1: smaller weights, whose gradients are below it as well. */
  NEAR = { eps: 1, scale: 0.25 };
/** Change of log p a step aims at: far above noise, small enough to be linear. */
export const AIM = 0.15;
/** Tokens that every vocabulary has. */
const FIRST_TOKEN = 40,
  TOKENS = 60;
const LENGTH = 28;
/** A model that is let go may take so long. */
const UNLOAD_MS = 5000;
/** Two groups of positions whose targets get weights of their own. */
const GROUPS = [
  [8, 14],
  [14, 20],
] as const;
/** Weights of the two groups. */
export type Combo = readonly [number, number];
/** Mean change of log p of the two groups. */
export type Effect = readonly [number, number];
export const sizeOf = (e: Effect): number => Math.hypot(...e);
export const distance = (a: Effect, b: Effect): number => Math.hypot(a[0] - b[0], a[1] - b[1]);

export function someTokens(seed: string, n = LENGTH): Int32Array {
  const rng = random(`probe/${seed}`);
  return Int32Array.from({ length: n }, () => FIRST_TOKEN + rng.int(TOKENS));
}
export interface Text {
  readonly chunks: readonly Chunk[];
  readonly targets: Int32Array;
}
/** Input and targets of a piece of text: each position is asked for the token after it. */
export const textOf = (tokens: Int32Array): Text => ({
  chunks: [{ type: 'encoded_text', tokens: tokens.subarray(0, -1) }],
  targets: tokens.subarray(1),
});
export const datum = (t: Text, inputs: Readonly<Record<string, ArrayLike<number>>>): Datum => ({
  chunks: t.chunks,
  inputs: {
    target_tokens: integers(t.targets),
    ...Object.fromEntries(Object.entries(inputs).map(([k, v]) => [k, floats(v)])),
  },
});
const constant = (n: number, x: number): Float32Array => new Float32Array(n).fill(x);

export const MAIN = textOf(someTokens('main')),
  /** Another text of the same length as the main one. */
  OTHER = textOf(someTokens('other')),
  SHORT = textOf(someTokens('short', 16)),
  TINY = textOf(someTokens('tiny', 4)),
  LONG = textOf(someTokens('long', 2 * LENGTH)),
  /** The main text and as much again: what comes after changes nothing before it. */
  LONGER = textOf(Int32Array.of(...someTokens('main'), ...someTokens('more', LENGTH - 1)));

export class Lab {
  readonly client: TrainingClient;
  readonly signal: AbortSignal;
  readonly #model: ModelOptions;
  /** Weights that were saved on the way; nobody needs them afterwards. */
  readonly saved: string[] = [];
  /** Root mean square of the difference between two passes that should be equal. */
  noise = 0;
  /**
   * Root mean square of what rounding changes from one set of weights to the next, however alike they are. Two passes
   * over the same weights do not show it.
   */
  grain = 0;
  /** Steps are too large here to be linear: what must be equal is compared, on models that begin alike. */
  coarse = false;
  /** Weight of targets in a pass that measures: 1 where the server leaves those of weight 0 out. */
  scoring: 0 | 1 = 0;
  /** Learning rate of an optimizer that descends, for a step of about AIM. */
  rate = 0;
  #optimizer = FAR;
  constructor(client: TrainingClient, model: ModelOptions, signal: AbortSignal) {
    this.client = client;
    // Fresh models begin alike, where a server heeds it: what is done to two of them can be compared.
    this.#model = { ...model, seed: model.seed ?? 1 };
    this.signal = signal;
  }

  async tidy(): Promise<void> {
    for (const uri of this.saved.splice(0))
      await orUndefined(this.client.forget(uri, this.signal), 'a server that keeps them has a few small files more');
  }

  /** A model that nothing was done with; it is let go afterwards. */
  async fresh<T>(f: (m: RemoteModel) => Promise<T>): Promise<T> {
    const m = await this.client.createModel(this.#model, this.signal);
    try {
      return await f(m);
    } finally {
      ignoreFailure(this.unload(m), 'it was answered for');
    }
  }
  async unload(m: RemoteModel): Promise<void> {
    const call = withDeadline(UNLOAD_MS, [this.signal], (signal) =>
      this.client.calls.json('unload_model', { model_id: m.id }, signal),
    );
    await orUndefined(call, 'a server that does not know the call drops the model with its session');
  }

  /** log p of all targets of each text. */
  rows(m: RemoteModel, texts: readonly Text[], weight: number = this.scoring): Promise<Float32Array[]> {
    return m.forward(
      texts.map((t) => datum(t, { weights: constant(t.targets.length, weight) })),
      this.signal,
    );
  }
  async groups(m: RemoteModel): Promise<Effect> {
    const [row] = await this.rows(m, [MAIN]);
    return groupMeans(row!);
  }
  /** Most noise in the difference of two log-probs. */
  get spread(): number {
    return 3 * Math.hypot(this.noise, this.grain);
  }
  /** Most noise in a measured effect. */
  get slack(): number {
    return this.spread * Math.sqrt(2 / (GROUPS[0][1] - GROUPS[0][0]));
  }

  /** Datums whose weights are raw: what the server's reduction does to them shows. */
  async raw(m: RemoteModel, carrier: Carrier, texts: readonly Text[], combo: Combo): Promise<Datum[]> {
    const all = texts.map((t) => this.#weights(t, combo)),
      rows = carrier === 'importance_sampling' ? await this.rows(m, texts) : undefined;
    return texts.map((t, i) => datum(t, carried(carrier, all[i]!, rows?.[i])));
  }
  /** Adds the gradient of log p weighted by a combination, as the driver does. */
  async push(m: RemoteModel, c: Carriage, combo: Combo): Promise<Datum[]> {
    const rows = c.carrier === 'importance_sampling' ? await this.rows(m, [MAIN]) : undefined,
      gradient = this.#weights(MAIN, combo).map((w) => -w),
      weights = signedWeights(gradient, { targets: gradient.length, start: 0 }, c.reduction),
      data = [datum(MAIN, carried(c.carrier, weights, rows?.[0]))];
    await m.forwardBackward(data, { name: c.carrier }, this.signal);
    return data;
  }
  async step(m: RemoteModel, o: Partial<AdamParams> & { readonly rate?: number } = {}): Promise<void> {
    await m.optimStep(this.adam(o), this.signal);
  }
  /** The optimizer for servers that refuse an eps above 1. */
  comeNear(): void {
    this.#optimizer = NEAR;
  }
  /** A step is the gradient, however large that is: eps is far above it. */
  get linear(): boolean {
    return this.#optimizer === FAR;
  }
  /** The value that stands for a weight of 1 on this server. */
  get scale(): number {
    return this.#optimizer.scale;
  }
  #weights(t: Text, combo: Combo): Float32Array {
    return comboWeights(t, combo).map((w) => w * this.scale);
  }
  adam({ rate = this.rate, ...o }: Partial<AdamParams> & { readonly rate?: number } = {}): AdamParams {
    const { eps } = this.#optimizer;
    return { learningRate: rate * eps, beta1: 0, beta2: 0, eps, weightDecay: 0, gradClip: 0, ...o };
  }
  /** The change of log p that `act` makes. */
  async effect(m: RemoteModel, act: () => Promise<unknown>): Promise<Effect> {
    const before = await this.groups(m);
    await act();
    const after = await this.groups(m);
    return [after[0] - before[0], after[1] - before[1]];
  }
  /** Effect of one step with a combination. */
  moved(
    m: RemoteModel,
    c: Carriage,
    combo: Combo,
    o: Partial<AdamParams> & { readonly rate?: number } = {},
  ): Promise<Effect> {
    return this.effect(m, async () => {
      await this.push(m, c, combo);
      await this.step(m, o);
    });
  }
}

function comboWeights(t: Text, combo: Combo): Float32Array {
  const w = new Float32Array(t.targets.length);
  if (t === MAIN || t === OTHER || t === LONGER) GROUPS.forEach(([a, b], i) => w.fill(combo[i]!, a, b));
  return w;
}
export const groupSize = GROUPS[0][1] - GROUPS[0][0];
export const groupMeans = (row: ArrayLike<number>): Effect => [mean(row, ...GROUPS[0]), mean(row, ...GROUPS[1])];
export function mean(row: ArrayLike<number>, from = 0, to = row.length): number {
  let s = 0;
  for (let i = from; i < to; i++) s += row[i]!;
  return s / (to - from);
}
/** Mean |a - b|. */
export const apart = (a: ArrayLike<number>, b: ArrayLike<number>, from = 0, to = a.length): number =>
  mean(
    Array.from(a, (x, i) => Math.abs(x - b[i]!)),
    from,
    to,
  );
