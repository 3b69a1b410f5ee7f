import {
  isEncoded,
  sampledRemotely,
  type EmbeddedPolicySpec,
  type EmbeddedSample,
  type EncodedState,
  type Frame,
  type FrameRef,
  type LearnStep,
  type Screenshot,
  type Trajectory,
} from '../../domain/index.js';
import type { FrameStore } from '../../data/types.js';
import { encodeActions, encodeState, stateKey, textToFind } from '../../policy/embedded/codec.js';
import { encodeObservation } from '../../policy/embedded/observation.js';
import { blank } from '../blindPolicy.js';
import { creditOf, type SampleSource } from './learner.js';

/**
 * Observations by frame hash. Frames pass through `put` while a rollout runs and are encoded then, so that building a
 * batch seldom has to decode a PNG again. Bounded: 64 kB an entry, and a batch asks for what was put lately.
 */
export class Observations implements FrameStore {
  readonly #frames: FrameStore;
  readonly #spec: EmbeddedPolicySpec;
  readonly #capacity: number;
  readonly #blind: boolean;
  readonly #seen = new Map<string, Uint8Array>();
  /** `blind`: the policy is shown, and learns from, a blank screen; what is stored is what was there. */
  constructor(
    frames: FrameStore,
    spec: EmbeddedPolicySpec,
    { capacity = 1024, blind = false }: { readonly capacity?: number; readonly blind?: boolean } = {},
  ) {
    this.#frames = frames;
    this.#spec = spec;
    this.#capacity = capacity;
    this.#blind = blind;
  }

  async put(frame: Screenshot): Promise<FrameRef> {
    if (isEncoded(frame)) return this.#frames.put(frame);
    const obs = this.#encoded(frame);
    const ref = await this.#frames.put(frame);
    this.#remember(ref.hash, obs);
    return ref;
  }
  get(ref: FrameRef): ReturnType<FrameStore['get']> {
    return this.#frames.get(ref);
  }
  read(ref: FrameRef): ReturnType<FrameStore['read']> {
    return this.#frames.read(ref);
  }

  async of(ref: FrameRef): Promise<Uint8Array> {
    const there = this.#seen.get(ref.hash);
    if (there) {
      this.#remember(ref.hash, there);
      return there;
    }
    const obs = this.#encoded(await this.#frames.get(ref));
    this.#remember(ref.hash, obs);
    return obs;
  }
  #encoded(frame: Frame): Uint8Array {
    return encodeObservation(this.#spec, this.#blind ? blank(frame) : frame);
  }
  #remember(hash: string, obs: Uint8Array): void {
    this.#seen.delete(hash);
    this.#seen.set(hash, obs);
    if (this.#seen.size > this.#capacity) this.#seen.delete(this.#seen.keys().next().value!);
  }
}

/** Steps as the embedded policy saw and said them. */
export class EmbeddedSamples implements SampleSource<EmbeddedSample> {
  readonly #spec: EmbeddedPolicySpec;
  readonly #observations: Observations;
  constructor(spec: EmbeddedPolicySpec, observations: Observations) {
    this.#spec = spec;
    this.#observations = observations;
  }

  expressible(t: Trajectory, step: number): boolean {
    return this.#choicesOf(t, step) !== null;
  }
  async sampleOf(step: LearnStep): Promise<EmbeddedSample> {
    const { trajectory: t, step: index } = step,
      choices = this.#choicesOf(t, index);
    if (!choices) throw new Error(`step ${index} of ${t.id} has no choices of the embedded policy`);
    const state = await this.stateOf(t, index);
    // Log-probs of a remote model are those of its tokens, which are not these choices.
    const remote = sampledRemotely(t.steps[index]!) ? { rolloutLogprobs: undefined } : {};
    const reads = textToFind(this.#spec, choices, t.steps[index]!.actions);
    return {
      ...creditOf(step),
      ...remote,
      stateKey: stateKey(state),
      state,
      choices,
      ...(reads === undefined ? {} : { reads }),
    };
  }

  /** The model input of a step, as it was (or would have been) when the step was decided. */
  async stateOf(t: Trajectory, index: number): Promise<EncodedState> {
    const { frame } = t.steps[index]!,
      obs = await this.#observations.of(frame);
    return encodeState(this.#spec, obs, frame, t.instruction, t.steps.slice(0, index));
  }

  /** The choices that were sampled, else those that encode the action; null when the policy cannot express it. */
  #choicesOf(t: Trajectory, index: number): Int32Array | null {
    const s = t.steps[index]!;
    return (
      (s.origin === 'policy' && !sampledRemotely(s) ? s.tokens?.ids : undefined) ??
      encodeActions(this.#spec, s.frame, t.instruction, s.actions)
    );
  }
}
