import type {
  EmbeddedPolicySpec,
  EncodedState,
  FrameRef,
  Group,
  Step,
  StepSample,
  Trajectory,
} from '../domain/index.js';
import type { FrameStore } from '../data/types.js';
import { encodeActions, encodeHistory, stateKey } from '../policy/embedded/codec.js';
import { encodeInstruction, tokenizeInstruction } from '../policy/embedded/instruction.js';
import { encodeObservation, viewOf } from '../policy/embedded/observation.js';
import { stepWeight } from '../trainer/objective/aggregation.js';
import { groupAdvantages, type AdvantageOptions } from '../trainer/objective/advantages.js';
import { forkAdvantages } from '../trainer/objective/forkAdvantages.js';

/**
 * Observations by frame hash. Frames pass through `put` while a rollout runs and are encoded then, so that building a
 * batch seldom has to decode a PNG again. Bounded: 64 kB an entry.
 */
export class Observations implements FrameStore {
  readonly #frames: FrameStore;
  readonly #spec: EmbeddedPolicySpec;
  readonly #capacity: number;
  readonly #seen = new Map<string, Uint8Array>();
  constructor(frames: FrameStore, spec: EmbeddedPolicySpec, capacity = 4096) {
    this.#frames = frames;
    this.#spec = spec;
    this.#capacity = capacity;
  }

  async put(frame: Parameters<FrameStore['put']>[0]): Promise<FrameRef> {
    const obs = encodeObservation(this.#spec, frame);
    const ref = await this.#frames.put(frame);
    this.#remember(ref.hash, obs);
    return ref;
  }
  get(ref: FrameRef): ReturnType<FrameStore['get']> {
    return this.#frames.get(ref);
  }
  path(ref: FrameRef): string {
    return this.#frames.path(ref);
  }

  async of(ref: FrameRef): Promise<Uint8Array> {
    const there = this.#seen.get(ref.hash);
    if (there) {
      this.#remember(ref.hash, there);
      return there;
    }
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
export async function stateOf(
  spec: EmbeddedPolicySpec,
  observations: Observations,
  t: Trajectory,
  index: number,
): Promise<EncodedState> {
  const { frame } = t.steps[index]!;
  const tokens = tokenizeInstruction(spec, t.instruction);
  return {
    obs: await observations.of(frame),
    instruction: encodeInstruction(spec, tokens),
    history: encodeHistory(
      spec,
      viewOf(spec, frame),
      tokens,
      t.steps.slice(0, index).map((s) => s.actions),
    ),
  };
}

/** What really was sampled, else what the action would be as choices; null when the embedded policy cannot say it. */
const choicesOf = (spec: EmbeddedPolicySpec, t: Trajectory, s: Step): Int32Array | null =>
  (s.origin === 'policy' ? s.tokens?.ids : undefined) ?? encodeActions(spec, s.frame, t.instruction, s.actions);

/** A group as curation left it: which steps of which trajectory are trained. */
export interface CuratedGroup {
  readonly group: Group;
  /** Same order as `group.trajectories`. */
  readonly keep: readonly (readonly boolean[])[];
}

export interface SampleOptions extends AdvantageOptions {
  /**
   * Policy-gradient samples of a trajectory share its weight 1 (trajectory-balanced), or every step weighs 1 (the
   * paper's mean over steps).
   */
  readonly balance: 'step' | 'trajectory';
  /**
   * Every step of a trajectory shares its advantage (the paper), or each has its own against what others did in the
   * same state.
   */
  readonly credit: 'trajectory' | 'fork';
}

/**
 * The steps of a batch as the trainer takes them (runtime/trainer/README.md#advantages). Rewards are those of the whole
 * group,
 * the injected success among them; an injected trajectory of a script or an import has no behaviour log-probs, so its
 * truncated weight is 1, as in the paper.
 *
 * A step in which a person acted never has a policy-gradient term: it is imitated, and only when its trajectory
 * succeeded. Weight and advantage are those of the paper's injected step, so that at rho = 1 the gradient is the same,
 * -A w grad log p; there is no ratio, and nothing is clipped.
 */
export async function policySamples(
  spec: EmbeddedPolicySpec,
  observations: Observations,
  groups: readonly CuratedGroup[],
  o: SampleOptions,
): Promise<StepSample[]> {
  const out: StepSample[] = [];
  for (const { group, keep } of groups) {
    const rewards = group.trajectories.map((t) => (t.outcome.kind === 'error' ? 0 : t.outcome.reward));
    const kept = keep.map((k) => k.filter(Boolean).length);
    const advantages = groupAdvantages(rewards, kept, o);
    // Two states are one when screen, instruction and history are: what the policy is told.
    const forks =
      o.credit === 'fork'
        ? forkAdvantages(
            group.trajectories.map((t, i) => ({ reward: rewards[i]!, states: prefixKeys(t) })),
            o.norm,
          )
        : undefined;
    for (const [i, t] of group.trajectories.entries()) {
      if (!forks && advantages[i] === 0) continue;
      const imitate = t.outcome.kind === 'success',
        people = t.steps.filter((s) => s.origin === 'human');
      const used =
          keep[i]!.filter((k, j) => k && t.steps[j]!.origin !== 'human').length + (imitate ? people.length : 0),
        weight = stepWeight(o.balance, used);
      for (const s of t.steps) {
        const advantage = forks?.[i]![s.index] ?? advantages[i]!,
          human = s.origin === 'human';
        const choices = (human ? imitate && advantage > 0 : keep[i]![s.index] && advantage !== 0)
          ? choicesOf(spec, t, s)
          : null;
        if (!choices) continue;
        const state = await stateOf(spec, observations, t, s.index);
        const sample = { rollout: t.id, step: s.index, stateKey: stateKey(state), state, choices, weight };
        out.push(
          human
            ? { ...sample, kind: 'imitation', advantage: 0, coefficient: advantage }
            : {
                ...sample,
                kind: 'policy',
                advantage,
                ...(s.tokens ? { rolloutLogprobs: s.tokens.logprobs } : {}),
                ...(s.version !== undefined ? { version: s.version } : {}),
              },
        );
      }
    }
  }
  return out;
}

/** Of each step: the screen it was decided on and the actions that led there. */
function prefixKeys(t: Trajectory): string[] {
  let past = '';
  return t.steps.map((s) => {
    const key = `${s.frame.hash} ${past}`;
    past += JSON.stringify(s.actions);
    return key;
  });
}

/** The steps of successes as imitation samples: neither behaviour log-probs nor advantage. */
export async function imitationSamples(
  spec: EmbeddedPolicySpec,
  observations: Observations,
  successes: readonly Trajectory[],
): Promise<StepSample[]> {
  const out: StepSample[] = [];
  for (const t of successes) {
    for (const s of t.steps) {
      const choices = choicesOf(spec, t, s);
      if (!choices) continue;
      const state = await stateOf(spec, observations, t, s.index);
      out.push({
        rollout: t.id,
        step: s.index,
        stateKey: stateKey(state),
        state,
        choices,
        kind: 'imitation',
        advantage: 0,
        weight: 1,
        ...(s.version !== undefined ? { version: s.version } : {}),
      });
    }
  }
  return out;
}
