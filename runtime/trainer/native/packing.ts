import type { EncodedState, EmbeddedSample } from '../../domain/index.js';
import { tokenShares } from '../objective/aggregation.js';
import { TOKENS } from './model/lossGraph.js';

/**
 * One action slot of a model input: up to three choices and, per token, the weight of each loss term.
 * `old`, `ref` and `now` hold log-probs under the policy before the update, the reference and the latest forward pass.
 */
export interface Slot {
  readonly ids: Int32Array;
  readonly tokens: number;
  readonly advantage: number;
  /** log pi_rollout; absent = importance weight 1. */
  readonly rollout: ArrayLike<number> | undefined;
  /** The one loss term this sample takes part in, and its weight in the aggregation. */
  readonly term: 'policy' | 'imitation';
  readonly weight: number;
  /** Imitation weight of this sample, instead of the option's. */
  readonly coefficient: number | undefined;
  readonly policy: Float32Array;
  readonly imitation: Float32Array;
  readonly old: Float32Array;
  readonly ref: Float32Array;
  readonly now: Float32Array;
  /** Index of its sample in the batch. */
  readonly sample: number;
}
/** A model input with its slots: one forward and one backward pass. */
export interface PackedState {
  readonly state: EncodedState;
  readonly slots: readonly Slot[];
  entropyWeight: number;
  /** Entropy of the latest forward pass. */
  entropy: number;
}

/** What the reader saw of a state, as the graph of a policy that spells takes it (model/reader.ts, Found). */
export interface Perceived {
  readonly features: Float32Array;
  readonly found: Float32Array;
  readonly facts: Float32Array;
}

export interface SlotFields {
  readonly advantage?: number;
  readonly rollout?: ArrayLike<number> | undefined;
  readonly term?: 'policy' | 'imitation';
  readonly weight?: number;
  readonly coefficient?: number | undefined;
  readonly imitation?: readonly number[];
  readonly sample?: number;
}
export function makeSlot(ids: ArrayLike<number>, o: SlotFields = {}): Slot {
  if (ids.length === 0 || ids.length > TOKENS)
    throw new RangeError(`an action has 1 to ${TOKENS} choices, not ${ids.length}`);
  const triple = (from?: ArrayLike<number>): Float32Array => {
    const a = new Float32Array(TOKENS);
    if (from) a.set(from);
    return a;
  };
  const padded = new Int32Array(TOKENS);
  padded.set(ids);
  return {
    ids: padded,
    tokens: ids.length,
    advantage: o.advantage ?? 0,
    rollout: o.rollout,
    term: o.term ?? 'policy',
    weight: o.weight ?? 1,
    coefficient: o.coefficient,
    policy: triple(),
    imitation: triple(o.imitation),
    old: triple(),
    ref: triple(),
    now: triple(),
    sample: o.sample ?? -1,
  };
}

/**
 * A demonstration with an advantage joins the policy gradient with importance weight 1; without one it is imitated
 * (domain/batch.ts).
 */
const slotOf = (s: EmbeddedSample, sample: number): Slot =>
  makeSlot(s.choices, {
    advantage: s.advantage,
    weight: s.weight,
    coefficient: s.coefficient,
    sample,
    term: s.kind === 'imitation' && s.advantage === 0 ? 'imitation' : 'policy',
    rollout: s.kind === 'imitation' ? undefined : s.rolloutLogprobs,
  });

/**
 * State de-duplication: samples with equal state keys share one packed state, up to `slots` of them; further samples
 * open another one. The gradient is exactly that of the separate samples, because the loss is a sum over slots. Samples
 * of weight 0 are left out.
 */
export function packSamples(samples: readonly EmbeddedSample[], slots: number): PackedState[] {
  const byKey = new Map<string, { state: EncodedState; slots: Slot[] }[]>();
  const states: { state: EncodedState; slots: Slot[] }[] = [];
  for (const [i, s] of samples.entries()) {
    if (s.weight === 0) continue;
    const list = byKey.get(s.stateKey) ?? [];
    let packed = list.at(-1);
    if (!packed || packed.slots.length >= slots) {
      packed = { state: s.state, slots: [] };
      list.push(packed);
      states.push(packed);
      byKey.set(s.stateKey, list);
    }
    packed.slots.push(slotOf(s, i));
  }
  return states.map((p) => ({ ...p, entropyWeight: 0, entropy: 0 }));
}

/**
 * Token weights of one optimizer step: weight / sum of weights / number of tokens ("seq-mean-token-mean"); entropy by
 * each state's share.
 */
export function applyLossWeights(states: readonly PackedState[], imitationCoef: number, entropyBonus: number): void {
  const all = states.flatMap((p) => p.slots);
  const norm = all.reduce((s, x) => s + x.weight, 0) || 1;
  const shares = tokenShares(
    all.map((s) => s.tokens),
    all.map((s) => s.weight),
  );
  for (const [i, s] of all.entries())
    for (let t = 0; t < s.tokens; t++) {
      s.policy[t] = s.term === 'policy' ? shares[i]! : 0;
      s.imitation[t] = s.term === 'imitation' ? shares[i]! * (s.coefficient ?? imitationCoef) : 0;
    }
  // The bonus counts policy samples only: demonstrations need no exploration.
  for (const p of states)
    p.entropyWeight = (entropyBonus * p.slots.reduce((s, x) => s + (x.term === 'policy' ? x.weight : 0), 0)) / norm;
}
