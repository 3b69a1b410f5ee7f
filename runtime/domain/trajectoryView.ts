import type { Action } from './action.js';
import type { Size } from './actionArguments.js';
import type { AnnotationMarks } from './annotation.js';
import type { RunError } from './errors.js';

import type { PolicyVersion } from './ids.js';
import type { ProvenanceKind, VerifierReport } from './trajectory.js';

/**
 * A trajectory for people: what `.traj.jsonl` files hold, what annotations are made on and what pages show. Plain JSON;
 * lists that may be absent are absent, never null.
 */

export type OutcomeKind = 'success' | 'failure' | 'error' | 'running';

export interface TrajectoryRow {
  readonly rollout: string;
  readonly task: string;
  readonly family: string;
  readonly instruction: string;
  readonly outcome: OutcomeKind;
  readonly reward?: number;
  readonly truncated?: boolean;
  readonly errorKind?: string;
  readonly provenance: ProvenanceKind;
  readonly state?: string;
  readonly group?: string;
  readonly steps: number;
  readonly cap: number;
  readonly kept?: number;
  readonly entropy?: number;
  readonly versions?: readonly [PolicyVersion, PolicyVersion];
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly tags?: readonly string[];
  /** Summary of its annotations. */
  readonly annotated?: AnnotationMarks;
  /** A person acted in some of its steps (a rollout that was taken over): left out of success rates. */
  readonly assisted?: boolean;
  /** `<rollout>@<revision>`: the edited trajectory that this one acted out again (provenance human). */
  readonly of?: string;
  /** Instruction of the rollout before it was relabelled (provenance hindsight). */
  readonly relabelledFrom?: string;
  /** `<rollout>@<step>`: the rollout that it begins in the middle of, and the index of its first own step. */
  readonly branch?: string;
}

/**
 * A frame by content; the picture is the file `<framesDir>/<first 2 of hash>/<hash>.png`. Pixels never travel in JSON.
 */
export interface FrameLink extends Size {
  readonly hash: string;
}

export interface TokenView {
  /** The choice in words: an action type, a position, a key, a word. */
  readonly label: string;
  /** Absent where the server did not say it. */
  readonly logprob?: number;
  /** Entropy in nats; a lower bound where the step says so. */
  readonly entropy: number;
  /** Truncated importance weight; absent before it was trained, and where training kept none for each token. */
  readonly weight?: number;
  /**
   * The most probable alternatives, including the chosen one; `at` = its rectangle on the screen in pixels, for
   * position choices.
   */
  readonly alternatives?: readonly {
    readonly label: string;
    readonly probability: number;
    readonly at?: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
  }[];
}

/** The prompt of a remote model for an answer. */
export interface PromptView {
  /** Number of its tokens, those of images included. */
  readonly tokens: number;
  /** The screens of its images, in their order; the last one is the step's own. */
  readonly images: readonly FrameLink[];
}

/** An answer that was no action: it was sampled, and the policy was asked again. */
export interface RejectedView {
  readonly text: string;
  /** Why it could not be used. */
  readonly reason: string;
  readonly tokens?: readonly TokenView[];
  /** Why the server ended it, where not by the model's own choice. */
  readonly finish?: string;
  readonly version?: PolicyVersion;
}

export interface StepView {
  readonly index: number;
  readonly at: number;
  readonly frame: FrameLink;
  /** Screen after the action: the next step's frame, or the last screen. */
  readonly after?: FrameLink;
  readonly thought?: string;
  readonly actions: readonly Action[];
  readonly origin: 'policy' | 'human' | 'oracle';
  /** Proposals that a person declined before they accepted this one. */
  readonly declined?: number;
  readonly settled: boolean;
  readonly tokens?: readonly TokenView[];
  /**
   * Mean token entropy: what curation compares with the threshold (runtime/data/README.md#high-entropy-steps).
   */
  readonly entropy?: number;
  /** The entropies of this step and of its tokens are at least what they say: the server showed no more. */
  readonly entropyBound?: 'lower';
  /**
   * `pending`: recorded, and read with the whole trajectory alone (a prompt is told by those before it). `damaged`: it
   * cannot be read.
   */
  readonly prompt?: PromptView | 'pending' | 'damaged';
  /** Why the server ended the answer, where not by the model's own choice: `length` is the limit on its tokens. */
  readonly finish?: string;
  /** Answers on this screen before the one that was carried out, oldest first. */
  readonly rejected?: readonly RejectedView[];
  /** Whether the entropy mask kept it; absent before its group was formed. */
  readonly kept?: boolean;
  readonly version?: PolicyVersion;
  readonly advantage?: number;
  /** Truncated importance weight, mean over the step's tokens; absent before it was trained. */
  readonly weight?: number;
  /** Share of the verifier's checks that held after it, and what asking took, ms. */
  readonly progress?: { readonly held: number; readonly ms: number };
  readonly timings: {
    readonly observe: number;
    readonly queue: number;
    readonly decide: number;
    readonly perform: number;
    readonly settle: number;
  };
  readonly replica?: string;
  readonly desktop?: string;
}

/** A step's view without what was sampled in it, and what training made of that. */
export function unsampledView(s: StepView): StepView {
  const { tokens: _t, entropy: _e, entropyBound: _b, prompt: _p, rejected: _r, version: _v, ...seen } = s,
    { finish: _f, kept: _k, advantage: _a, weight: _w, progress: _g, declined: _d, ...rest } = seen;
  return rest;
}

export interface TrajectoryView {
  readonly row: TrajectoryRow;
  readonly steps: readonly StepView[];
  /** Entropy threshold of its group, or of the newest group while it runs. */
  readonly threshold?: number;
  readonly report?: VerifierReport;
  readonly error?: RunError;
  readonly advantage?: number;
  readonly resetMs?: number;
  readonly verifyMs?: number;
  /** Absolute folder of the frames (relative to the file in a `.traj.jsonl`). */
  readonly framesDir: string;
  /** The group, including this trajectory. */
  readonly group?: GroupView;
  /** Whether more steps will come: subscribe with `sinceSeq: seq`. */
  readonly live: boolean;
  /**
   * Whether nobody works on its run any more: what is not decided about it by now will not be, unless the run is
   * resumed.
   */
  readonly over?: boolean;
  readonly seq?: number;
}

export interface GroupView {
  readonly id: string;
  readonly family: string;
  readonly task: string;
  readonly state: string;
  readonly threshold?: number;
  readonly members: readonly {
    readonly rollout: string;
    readonly outcome: OutcomeKind;
    readonly reward?: number;
    readonly advantage?: number;
    readonly steps: number;
    readonly injected: boolean;
    readonly retired?: string;
  }[];
}
