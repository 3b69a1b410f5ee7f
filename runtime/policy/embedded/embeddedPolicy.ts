/**
 * The embedded policy: a session encodes its screens here in the daemon and asks a pool of replicas for choices. The
 * history is rebuilt from the session's actions by the same code that builds training samples (codec.ts).
 */
import type { Action, EmbeddedPolicySpec, Frame, Size } from '../../domain/index.js';
import { StudioError, hash32, possibleChoices } from '../../domain/index.js';
import type { Decision, DecisionPool, Policy, PolicySession, Sampling } from '../types.js';
import { choiceLabel, decodeChoices, encodeHistory, placesOf } from './codec.js';
import type { InstructionToken } from './instruction.js';
import { encodeInstruction, tokenizeInstruction } from './instruction.js';
import type { View } from './observation.js';
import { encodeObservation, viewOf } from './observation.js';

export function embeddedPolicy(spec: EmbeddedPolicySpec, pool: DecisionPool): Policy {
  return {
    open: (o) =>
      new EmbeddedSession(
        spec,
        pool,
        o.rollout,
        tokenizeInstruction(spec, o.instruction),
        viewOf(spec, o.screen),
        o.sampling,
      ),
  };
}

/** The seed of a rollout's n-th decision: independent streams, reproducible from the rollout's own seed. */
export const decisionSeed = (seed: number, n: number): number => hash32(`${seed}/${n}`);

class EmbeddedSession implements PolicySession {
  readonly #spec: EmbeddedPolicySpec;
  readonly #pool: DecisionPool;
  readonly #session: string;
  readonly #tokens: readonly InstructionToken[];
  readonly #instruction: Int32Array;
  readonly #view: View;
  readonly #sampling: Sampling;
  readonly #steps: (readonly Action[])[] = [];
  #asked = 0;

  constructor(
    spec: EmbeddedPolicySpec,
    pool: DecisionPool,
    session: string,
    tokens: readonly InstructionToken[],
    view: View,
    sampling: Sampling,
  ) {
    this.#spec = spec;
    this.#pool = pool;
    this.#session = session;
    this.#tokens = tokens;
    this.#view = view;
    this.#sampling = sampling;
    this.#instruction = encodeInstruction(spec, tokens);
  }

  async decide(frame: Frame, signal: AbortSignal): Promise<Decision> {
    const spec = this.#spec,
      tokens = this.#tokens,
      view = this.#view;
    checkScreen(frame, view.screen);
    const state = {
      obs: encodeObservation(spec, frame),
      instruction: this.#instruction,
      history: encodeHistory(spec, view, tokens, this.#steps),
    };
    const seed = decisionSeed(this.#sampling.seed, this.#asked++);
    const { answer, replica, queueMs } = await this.#pool.decide(
      { state, greedy: this.#sampling.greedy, temperature: this.#sampling.temperature, seed, copyable: tokens.length },
      { session: this.#session, signal },
    );
    const actions = [decodeChoices(spec, view, tokens, answer.choices, answer.read)];
    this.#steps.push(actions);
    return {
      actions,
      tokens: {
        ids: answer.choices,
        choices: possibleChoices(spec, answer.choices, tokens.length),
        logprobs: answer.logprobs,
        entropies: answer.entropies,
      },
      version: answer.version,
      replica,
      queueMs,
      computeMs: answer.computeMs,
      labels: Array.from(answer.choices, (c) => choiceLabel(spec, view, tokens, c)),
      alternatives: answer.alternatives?.map((of, i) =>
        placesOf(spec, view, i, of)
          ? []
          : of.map((a) => ({ label: choiceLabel(spec, view, tokens, a.choice), probability: a.probability })),
      ),
      places: answer.alternatives?.flatMap((of, i) => placesOf(spec, view, i, of) ?? []),
    };
  }

  acted(actions: readonly Action[]): void {
    this.#steps.push([...actions]);
  }
  retract(): void {
    this.#steps.pop();
  }

  close(): void {
    this.#pool.end(this.#session);
  }
}

function checkScreen(frame: Frame, screen: Size): void {
  if (frame.width !== screen.width || frame.height !== screen.height) {
    throw new StudioError(
      'desktop.lost',
      `The screen changed from ${screen.width}x${screen.height} to ${frame.width}x${frame.height} during an episode.`,
      'The rollout is retried on another desktop.',
    );
  }
}
