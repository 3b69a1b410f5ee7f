import type { EmbeddedPolicySpec, EncodedState, FrameRef, Group, Step, StepSample, Trajectory } from '../domain/index.js';
import type { FrameStore } from '../data/types.js';
import { encodeActions, encodeHistory, stateKey } from '../policy/embedded/codec.js';
import { encodeInstruction, tokenizeInstruction } from '../policy/embedded/instruction.js';
import { encodeObservation, viewOf } from '../policy/embedded/observation.js';
import { groupAdvantages, type AdvantageOptions } from '../trainer/objective/advantages.js';

/**
 * Observations by frame hash. Frames pass through `put` while a rollout runs and are encoded then, so that building a batch
 * seldom has to decode a PNG again. Bounded: 64 kB an entry.
 */
export class Observations implements FrameStore {
  readonly #frames: FrameStore;
  readonly #spec: EmbeddedPolicySpec;
  readonly #capacity: number;
  readonly #seen = new Map<string, Uint8Array>();
  constructor(frames: FrameStore, spec: EmbeddedPolicySpec, capacity = 4096) { this.#frames = frames; this.#spec = spec; this.#capacity = capacity; }

  async put(frame: Parameters<FrameStore['put']>[0]): Promise<FrameRef> {
    const obs = encodeObservation(this.#spec, frame);
    const ref = await this.#frames.put(frame);
    this.#remember(ref.hash, obs);
    return ref;
  }
  get(ref: FrameRef): ReturnType<FrameStore['get']> { return this.#frames.get(ref); }
  path(ref: FrameRef): string { return this.#frames.path(ref); }

  async of(ref: FrameRef): Promise<Uint8Array> {
    const there = this.#seen.get(ref.hash);
    if (there) { this.#remember(ref.hash, there); return there; }
    const obs = encodeObservation(this.#spec, await this.#frames.get(ref));
    this.#remember(ref.hash, obs);
    return obs;
  }
  #remember(hash: string, obs: Uint8Array): void {
    this.#seen.delete(hash);
    this.#seen.set(hash, obs);
    if (this.#seen.size > this.#capacity) this.#seen.delete(this.#seen.keys().next().value!);
  }
}

/** The model input of step `index`, as it was (or would have been) when the step was decided. */
export async function stateOf(spec: EmbeddedPolicySpec, observations: Observations, t: Trajectory, index: number): Promise<EncodedState> {
  const { frame } = t.steps[index]!;
  const tokens = tokenizeInstruction(spec, t.instruction);
  return {
    obs: await observations.of(frame),
    instruction: encodeInstruction(spec, tokens),
    history: encodeHistory(spec, viewOf(spec, frame), tokens, t.steps.slice(0, index).map((s) => s.actions)),
  };
}

/** What really was sampled, else what the action would be as choices; null when the embedded policy cannot say it. */
const choicesOf = (spec: EmbeddedPolicySpec, t: Trajectory, s: Step): Int32Array | null => s.tokens?.ids ?? encodeActions(spec, s.frame, t.instruction, s.actions);

/** A group as curation left it: which steps of which trajectory are trained. */
export interface CuratedGroup { readonly group: Group; /** Same order as `group.trajectories`. */ readonly keep: readonly (readonly boolean[])[] }

export interface SampleOptions extends AdvantageOptions {
  /** Policy-gradient samples of a trajectory share its weight 1 (trajectory-balanced), or every step weighs 1 (the paper's mean over steps). */
  readonly balance: 'step' | 'trajectory';
}

/**
 * The steps of a batch as the trainer takes them (dart-algorithm.md 3a, e, f). Rewards are those of the whole group, the injected
 * success among them; an injected demonstration has no behaviour log-probs, so its truncated weight is 1.
 */
export async function policySamples(spec: EmbeddedPolicySpec, observations: Observations, groups: readonly CuratedGroup[], o: SampleOptions): Promise<StepSample[]> {
  const out: StepSample[] = [];
  for (const { group, keep } of groups) {
    const rewards = group.trajectories.map((t) => (t.outcome.kind === 'error' ? 0 : t.outcome.reward));
    const kept = keep.map((k) => k.filter(Boolean).length);
    const advantages = groupAdvantages(rewards, kept, o);
    for (const [i, t] of group.trajectories.entries()) {
      if (advantages[i] === 0) continue;
      const weight = o.balance === 'trajectory' ? 1 / Math.max(1, kept[i]!) : 1;
      for (const s of t.steps) {
        const choices = keep[i]![s.index] ? choicesOf(spec, t, s) : null;
        if (!choices) continue;
        const state = await stateOf(spec, observations, t, s.index);
        out.push({
          rollout: t.id, step: s.index, stateKey: stateKey(state), state, choices, kind: 'policy', advantage: advantages[i]!, weight,
          ...(s.tokens ? { rolloutLogprobs: s.tokens.logprobs } : {}), ...(s.version !== undefined ? { version: s.version } : {}),
        });
      }
    }
  }
  return out;
}

/** The steps of successes as imitation samples: neither behaviour log-probs nor advantage. */
export async function imitationSamples(spec: EmbeddedPolicySpec, observations: Observations, successes: readonly Trajectory[]): Promise<StepSample[]> {
  const out: StepSample[] = [];
  for (const t of successes) {
    for (const s of t.steps) {
      const choices = choicesOf(spec, t, s);
      if (!choices) continue;
      const state = await stateOf(spec, observations, t, s.index);
      out.push({ rollout: t.id, step: s.index, stateKey: stateKey(state), state, choices, kind: 'imitation', advantage: 0, weight: 1, ...(s.version !== undefined ? { version: s.version } : {}) });
    }
  }
  return out;
}
