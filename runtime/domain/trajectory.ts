import type { Action } from './action.js';
import type { RunError } from './errors.js';
import type { FrameRef } from './frame.js';
import { id, type FamilyId, type GroupId, type PolicyVersion, type RolloutId, type TaskId } from './ids.js';
import type { PromptDelta } from './promptTokens.js';

/**
 * The sampled tokens of one step. For the embedded policy a token is one discrete choice and `ids` are its global
 * choice ids (policySpec.ts). Log-probs are those of the distribution sampled from. Absent for demonstrations.
 */
export interface TokenTrace {
  /** NaN where the server did not say it. */
  readonly logprobs: Float32Array;
  readonly entropies: Float32Array;
  /** A remote server shows only the most probable tokens, so what is known of its entropies is a lower bound. */
  readonly bound?: 'lower';
  readonly ids?: Int32Array;
  /** How many choices each token was drawn from, where the embedded policy says so. */
  readonly choices?: Int32Array;
  /** Why a remote server ended the answer, in its word: `stop`, `length`, ...; absent where it did not say. */
  readonly finish?: string;
}

/** A server's word for why an answer ended. */
export const FINISH_WORD = /^[a-z][a-z_]{0,31}$/;
/** Why an answer ended, where that is worth saying: not by the model's own choice. */
export const oddFinish = (t: TokenTrace | undefined): string | undefined =>
  t?.finish === 'stop' ? undefined : t?.finish;

/** An answer of a policy that was no action: it was sampled all the same, and is trained as what it is. */
export interface RejectedAnswer {
  readonly text: string;
  /** Why it could not be used. */
  readonly reason: string;
  readonly tokens?: TokenTrace;
  readonly prompt?: PromptDelta;
  readonly version?: PolicyVersion;
}

/**
 * Places where a policy might have pointed: the most probable cells of one position choice, most probable first. `grid`
 * is [view x, view y, view width, view height, cell side, columns] in observation pixels; the view shows the whole
 * screen.
 */
export interface ChoicePlaces {
  /** Which token of the step. */
  readonly token: number;
  readonly grid: readonly number[];
  readonly cells: Int32Array;
  readonly probabilities: Float32Array;
}

/** Milliseconds spent in each part of a step. */
export interface StepTimings {
  readonly observe: number;
  readonly decide: number;
  readonly queue: number;
  readonly perform: number;
  readonly settle: number;
}

export interface Step {
  readonly index: number;
  /**
   * ms since the epoch when the step ended; only for steps recorded elsewhere, where it differs from the time of their
   * record.
   */
  readonly at?: number;
  /** The settled screen the decision was made on. */
  readonly frame: FrameRef;
  readonly thought?: string;
  readonly actions: readonly Action[];
  /** Sampled choices with log-probs; absent when a person or an oracle acted. */
  readonly tokens?: TokenTrace;
  /**
   * The prompt of a remote model, told by the sequence (prompt and answer) that was sampled before it in the same
   * trajectory, the answers in `rejected` among them.
   */
  readonly prompt?: PromptDelta;
  /** Answers on this screen before the one that was carried out, oldest first. */
  readonly rejected?: readonly RejectedAnswer[];
  readonly version?: PolicyVersion;
  readonly origin: 'policy' | 'human' | 'oracle';
  /** For a policy's step: how many of its proposals on this screen a person declined before they accepted this one. */
  readonly declined?: number;
  /** Whether the desktop came to rest after the action, within the bound. */
  readonly settled: boolean;
  readonly timings: StepTimings;
  /** Share of the verifier's checks that held after it, 0 to 1, and what asking took; where it was asked mid-episode. */
  readonly progress?: { readonly held: number; readonly ms: number };
}

/** Whether a remote model sampled a step: its tokens are the model's, and no choices of the embedded policy. */
export const sampledRemotely = (s: Pick<Step, 'tokens' | 'prompt' | 'rejected'>): boolean =>
  s.prompt !== undefined || s.tokens?.bound !== undefined || (s.rejected?.some(sampledRemotely) ?? false);

/** A step without what was sampled in it: for another run, and for what people put in its place. */
export function unsampled(s: Step): Step {
  const { tokens: _t, prompt: _p, rejected: _r, version: _v, progress: _a, declined: _d, ...rest } = s;
  return rest;
}

/** A step whose prompts cannot be told, because what they are told by is gone; its tokens stay. */
export const withoutPrompts = <S extends Pick<Step, 'prompt' | 'rejected'>>(s: S): S => {
  const { prompt: _p, rejected, ...rest } = s;
  return { ...rest, ...(rejected ? { rejected: rejected.map(({ prompt: _q, ...r }) => r) } : {}) } as S;
};

/**
 * Steps chosen from a recording, in its order. A prompt is told by what was sampled before it: behind a step that was
 * left out or changed, prompts are left out too.
 */
export function withToldPrompts(steps: readonly Step[], recorded: readonly Step[]): Step[] {
  const told = recorded.filter(hasPrompt);
  let next = 0,
    whole = true;
  return steps.map((s) => {
    if (!hasPrompt(s)) return s;
    whole &&= told[next++] === s;
    return whole ? s : withoutPrompts(s);
  });
}
const hasPrompt = (s: Step): boolean => s.prompt !== undefined || (s.rejected?.some((r) => r.prompt) ?? false);

/** How a rollout ended. An error has no reward and is never trained on. */
export type Outcome =
  | {
      readonly kind: 'success' | 'failure';
      /** Reward in [0, 1]; success means 1. */
      readonly reward: number;
      /** Ended by the step cap. */
      readonly truncated: boolean;
      readonly report?: VerifierReport;
    }
  | { readonly kind: 'error'; readonly error: RunError };
/** What a verifier, or a person, said of an episode. */
export type JudgedOutcome = Exclude<Outcome, { kind: 'error' }>;

/**
 * Whether an episode of so many steps succeeded and went no further. One that its step cap cut off may have gone on past
 * its goal: how many of its steps were needed, and which, is not known; a single one was.
 */
export const endedInSuccess = (o: Outcome, steps: number): boolean =>
  o.kind === 'success' && (!o.truncated || steps === 1);

/** The verifier's checks and findings, for people. */
export interface VerifierReport {
  readonly checks: readonly VerifierCheck[];
}
export interface VerifierCheck {
  readonly what: string;
  /** Everything that was checked, where `what` is too short for it. */
  readonly detail?: string;
  readonly expected: string;
  readonly found: string;
  readonly score: number;
  /** Absent in records of version 0.1. */
  readonly judge?: Judge;
}

/** The program that computed a check. */
export interface Judge {
  /** `DART Studio`, or the evaluators of OSWorld that judged: `desktop-env`, `OSWorld`. */
  readonly name: string;
  /** Version of the judge; for a checkout its commit. */
  readonly version: string;
  /** How long it took, with looking at the desktop. */
  readonly ms: number;
  /** Files of the desktop that it read, by path. */
  readonly files: readonly string[];
}

/** Where a trajectory can come from: `Provenance` says what each of them knows. */
export const PROVENANCE_KINDS = ['rollout', 'probe', 'oracle', 'human', 'imported', 'hindsight'] as const;
export type ProvenanceKind = (typeof PROVENANCE_KINDS)[number];

/** Where a trajectory comes from. */
export type Provenance =
  | { readonly kind: 'rollout' }
  | { readonly kind: 'probe' }
  | { readonly kind: 'oracle' }
  /** A person's demonstration; `of`: an edited trajectory that was acted out again. */
  | { readonly kind: 'human'; readonly of?: string }
  | { readonly kind: 'imported'; readonly from: string }
  /**
   * A failed rollout under the instruction of another task that it did (runtime/data/README.md#hindsight). `task` and
   * `instruction` are those that `of` was asked for. It has no log-probs, and is imitated alone.
   */
  | {
      readonly kind: 'hindsight';
      readonly of: RolloutId;
      readonly task: TaskId;
      readonly instruction: string;
    };

/** Id of the success that a failed rollout becomes under another instruction. */
export const relabelledId = (of: RolloutId): RolloutId => id<RolloutId>(`hindsight/${of}`);

/**
 * The cost of looking back on a failed rollout: siblings of its task, those asked of the desktop, whether one held, and
 * ms.
 */
export interface LookedBack {
  readonly siblings: number;
  readonly asked: number;
  readonly held: boolean;
  readonly ms: number;
}

/**
 * Where a rollout branches off from another of its group: its steps before `step` are those of `of`, replayed on a
 * desktop of its own, and everything from `step` on is its own (runtime/data/README.md#branches).
 */
export interface BranchPoint {
  readonly of: RolloutId;
  /** From 1: a branch from the first step would be a rollout like any other. */
  readonly step: number;
}
/** The first step that is a rollout's own: those before it are another's, acted out again. */
export const ownFrom = (t: Pick<Trajectory, 'branch'>): number => t.branch?.step ?? 0;

/**
 * Whether a person took a step, or chose it by declining others: either is no sample of the policy, which would not have
 * gone on like this by itself.
 */
export const byPerson = (s: Pick<Step, 'origin' | 'declined'>): boolean => s.origin === 'human' || !!s.declined;
/** Whether a person acted in it: its outcome is then not the policy's alone. */
export const assisted = (t: Pick<Trajectory, 'provenance' | 'steps'>): boolean =>
  (t.provenance.kind === 'rollout' || t.provenance.kind === 'probe') && t.steps.some(byPerson);

export interface Trajectory {
  readonly id: RolloutId;
  readonly task: TaskId;
  readonly family: FamilyId;
  readonly instruction: string;
  readonly group?: GroupId;
  readonly provenance: Provenance;
  /** Present for a rollout that began in the middle of another. */
  readonly branch?: BranchPoint;
  readonly steps: readonly Step[];
  readonly outcome: Outcome;
  /** Step cap this rollout ran under (turns of the model). */
  readonly cap: number;
  readonly startedAt: number;
  readonly endedAt: number;
  /** The screen after the last action, when the episode ended at the step cap. */
  readonly last?: FrameRef;
  /** Reset and verify time of the desktop, ms. */
  readonly resetMs: number;
  readonly verifyMs: number;
  /** Present for a failure that was looked back on. */
  readonly hindsight?: LookedBack;
}

/** The reward that counts in its group's baseline. An error, which is never in a group, gives 0. */
export const rewardOf = (t: Pick<Trajectory, 'outcome'>): number => (t.outcome.kind === 'error' ? 0 : t.outcome.reward);
