import type {
  Action,
  ChoicePlaces,
  EncodedState,
  PolicyVersion,
  PromptDelta,
  RejectedAnswer,
  ReplicaId,
  RolloutId,
  RunError,
  Screenshot,
  Size,
  TokenTrace,
} from '../domain/index.js';

/** Turns screens into actions. One session per episode; the policy keeps the session's history. */
export interface Policy {
  /** The policy needs no pixels: screens may be encoded. */
  readonly takesEncoded?: boolean;
  open(o: {
    readonly rollout: RolloutId;
    readonly instruction: string;
    readonly screen: Size;
    readonly sampling: Sampling;
  }): PolicySession;
}
export interface Sampling {
  /** Take the most probable choice (evaluation). */
  readonly greedy: boolean;
  readonly temperature: number;
  readonly seed: number;
}
export interface PolicySession {
  /**
   * Rejects with `policy.lost` or `policy.remote` when the engine failed (retry the rollout), `policy.invalid` when its
   * answer is not an action.
   */
  decide(screen: Screenshot, signal: AbortSignal): Promise<Decision>;
  /** Adds actions that another actor took (a person in control, an oracle) to the session's history. */
  acted(actions: readonly Action[]): void;
  /** Removes the last decision, and invalid answers on the same screen, from the history: they were not carried out. */
  retract?(): void;
  close(): void;
}
export interface Decision {
  readonly thought?: string;
  readonly actions: readonly Action[];
  readonly tokens?: TokenTrace;
  /** The prompt of a remote model, where its server said it token by token. */
  readonly prompt?: PromptDelta;
  readonly version: PolicyVersion;
  readonly replica?: ReplicaId;
  /** ms waited for a free replica, and ms inside it. */
  readonly queueMs: number;
  readonly computeMs: number;
  /** The most probable alternatives of each choice, for the inspector; those of position choices are in `places`. */
  readonly alternatives?: readonly (readonly { readonly label: string; readonly probability: number }[])[];
  /** Each token's choice, in words. */
  readonly labels?: readonly string[];
  readonly places?: readonly ChoicePlaces[];
}

/** `details` of an error of kind `policy.invalid`: what was sampled. */
export type InvalidAnswer = Pick<RejectedAnswer, 'text' | 'tokens' | 'prompt' | 'version'> &
  Pick<Decision, 'labels' | 'alternatives'>;

/** Weights on disk: one flat little-endian f32 vector, in the parameter order of the policy graph. */
export interface WeightsRef {
  readonly version: PolicyVersion;
  readonly path: string;
  readonly sha256: string;
}

/** Weights, as far as a pool needs to know them. */
export interface Versioned {
  readonly version: PolicyVersion;
}
/** The part of an answer that the model pool needs, whatever kind of replica gave it. */
export interface AnswerBase {
  readonly version: PolicyVersion;
  readonly computeMs: number;
}
/**
 * One copy of the policy: a process of its own, or a server. The model pool uses it and decides when it may swap. `Q`
 * is the request, `A` the answer, `W` the weights it takes.
 */
export interface Replica<Q = ReplicaRequest, A extends AnswerBase = ReplicaAnswer, W extends Versioned = WeightsRef> {
  readonly id: ReplicaId;
  readonly version: PolicyVersion;
  /** The replica answers with the old weights while it takes new ones, so it need not be drained for a swap. */
  readonly swapsInService?: boolean;
  /** Calls it can serve at the same time now, below what the pool allows; absent where it does not know. */
  readonly limit?: number | undefined;
  decide(request: Q): Promise<A>;
  /** Takes new weights; unless it swaps in service, the caller has drained it. */
  swap(weights: W): Promise<void>;
  onLost(listener: (e: RunError) => void): () => void;
  close(): Promise<void>;
}
export interface ReplicaRequest {
  readonly state: EncodedState;
  readonly greedy: boolean;
  readonly temperature: number;
  readonly seed: number;
  /** How many copyable instruction tokens there are (the text head is masked beyond them). */
  readonly copyable: number;
}
export interface ReplicaAnswer extends AnswerBase {
  readonly choices: Int32Array;
  readonly logprobs: Float32Array;
  readonly entropies: Float32Array;
  /** The text on the screen at the chosen cell, where the decision types what is read. */
  readonly read?: string | undefined;
  readonly alternatives?: readonly (readonly { readonly choice: number; readonly probability: number }[])[];
}

export interface SyncReport {
  readonly version: PolicyVersion;
  readonly replicas: readonly { readonly replica: ReplicaId; readonly drainMs: number; readonly swapMs: number }[];
  /** Requests failed by the sync; 0 by design. */
  readonly failed: number;
}
/**
 * Replicas whose weights can be replaced one at a time, without a failed call and with capacity never below (G-1)/G.
 */
export interface ReplicaSet<W extends Versioned = WeightsRef> {
  publish(weights: W): Promise<SyncReport>;
}

/** Gives a policy session its decisions: a pool of replicas that routes calls (implemented by the rollout service). */
export interface DecisionPool<Q = ReplicaRequest, A extends AnswerBase = ReplicaAnswer> {
  /** Rejects with `cancelled` when the signal fires, `policy.lost` when no replica is left. */
  decide(
    request: Q,
    o: {
      /** Calls of one session go to one replica as long as that causes no waiting. */
      readonly session: string;
      readonly signal: AbortSignal;
    },
  ): Promise<ModelAnswer<A>>;
  /** The session is over: forgets where it was routed. */
  end(session: string): void;
}
export interface ModelAnswer<A extends AnswerBase = ReplicaAnswer> {
  readonly answer: A;
  readonly replica: ReplicaId;
  /** ms between asking and being handed to a replica, and waiting behind other calls inside it. */
  readonly queueMs: number;
}
