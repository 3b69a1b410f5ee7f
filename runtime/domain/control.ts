import type { Action } from './action.js';
import type { Point, Size } from './actionArguments.js';
import type { RunError } from './errors.js';

import type { RunPath } from './run.js';
import type { VerifierReport } from './trajectory.js';
import type { FrameLink } from './trajectoryView.js';

/** One control session: a person, a desktop, and what is recorded. Lives in the daemon; any window may attach to it. */
export type ControlSessionId = string;

/**
 * A person's input as the page saw it; `at` is ms on the page's clock (only differences count), places are screen
 * pixels. `key` is `KeyboardEvent.key` ('a', 'Enter', 'Control', 'ArrowUp', 'ß'); dead keys and input methods send
 * `text` instead.
 */
export type InputEvent = { readonly at: number } & (
  | ({ readonly type: 'move' } & Point)
  | ({ readonly type: 'button'; readonly button: 'left' | 'middle' | 'right'; readonly down: boolean } & Point)
  | ({
      readonly type: 'wheel';
      /** Wheel clicks, positive = right and down. */
      readonly dx: number;
      readonly dy: number;
    } & Point)
  | { readonly type: 'key'; readonly key: string; readonly down: boolean }
  | { readonly type: 'text'; readonly text: string }
);

/**
 * Who acts: the person (`human`), the policy, or the policy with the person's consent to each step (`step`). In the
 * other modes nobody acts.
 */
export type ControlMode = 'human' | 'policy' | 'step' | 'starting' | 'verifying' | 'ended';

/** The policy's next actions, in step mode. */
export interface Proposal {
  /** Identifies this proposal; `control/accept` names it, so that a late key press cannot accept another one. */
  readonly id: number;
  readonly thought?: string;
  readonly actions: readonly Action[];
  /** Probability of the whole decision, in [0, 1]. */
  readonly probability?: number;
  readonly labels?: readonly string[];
}

export interface ControlStep {
  readonly index: number;
  readonly origin: 'policy' | 'human';
  readonly thought?: string;
  readonly actions: readonly Action[];
  readonly frame: FrameLink;
}

export interface ControlVerdict {
  readonly outcome: 'success' | 'failure' | 'error';
  readonly reward?: number;
  readonly report?: VerifierReport;
  readonly error?: RunError;
}

/** A policy that is tried: what acts, and what is to know of it. */
export interface Trial {
  /** The policy in words: a run with its version, or the model. */
  readonly policy: string;
  readonly version?: number;
  /** Name of the desktop image. */
  readonly image: string;
  /** Folder of the screens. */
  readonly frames: string;
  /** A verifier judges; false: whoever watches says whether it succeeded. */
  readonly verified: boolean;
  /** Whether its task is for evaluation alone: the recording is kept, and never learned from. */
  readonly heldOut: boolean;
  /** Turns that the policy has. */
  readonly cap: number;
  /** A person ended it before the policy did. */
  readonly stopped: boolean;
  /** Notes on how the instruction differs from those that the policy has learned from. */
  readonly notes: readonly string[];
}

/** The whole state of a session; sent in full on every change. */
export interface ControlState {
  readonly session: ControlSessionId;
  readonly purpose: 'record' | 'takeOver' | 'try';
  readonly mode: ControlMode;
  readonly desktop: string;
  readonly screen: Size;
  /** The run that records it. */
  readonly run: RunPath;
  /** Id of the trajectory: the rollout that was taken over, or the demonstration once it is kept. */
  readonly rollout?: string;
  readonly family: string;
  readonly task: string;
  readonly seed: number;
  readonly instruction: string;
  readonly steps: readonly ControlStep[];
  /** The action in progress, in words ('typing "hel"'). */
  readonly doing?: string;
  readonly proposal?: Proposal;
  /** Steps left to the policy before the cap; while a person acts only when there is none left. */
  readonly left?: number;
  /** After finish. */
  readonly verdict?: ControlVerdict;
  /** Where the recording was kept. When `pooled` is false, `why` gives the reason. */
  readonly kept?: {
    readonly rollout: string;
    readonly pooled: boolean;
    readonly why?: string;
  };
  /**
   * Set when no window is attached: at this time, ms since the epoch, the session ends (a recording is discarded unless
   * finished; a rollout is handed back).
   */
  readonly abandonedAt?: number;
  readonly error?: RunError;
  /** Present in a session with purpose `try`. */
  readonly trial?: Trial;
}
