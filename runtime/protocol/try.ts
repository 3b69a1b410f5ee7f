/** Trying a policy: what can be tried, and with what a try begins. Part of requests.ts. */
import type { PolicyKind, ProviderChoice, RunPath, StepView } from '../domain/index.js';

/** A policy that can be tried. */
export type TryPolicy =
  /** A run: versions whose checkpoints are there, newest first; none for a model that it only rolled out. */
  | {
      readonly run: RunPath;
      readonly name: string;
      readonly kind: PolicyKind;
      readonly model?: string;
      readonly versions: readonly number[];
    }
  /** A model that a run file names. */
  | { readonly file: string; readonly name: string; readonly kind: PolicyKind; readonly model: string };

export interface TryParams {
  readonly policy: { readonly run: RunPath; readonly version?: number } | { readonly file: string };
  /** Folder of run folders, for the collection in which it is kept. */
  readonly base: string;
  /** Name of the desktop image; default: that of the run or run file. */
  readonly image?: string;
  readonly provider?: ProviderChoice;
  /** A task family of the policy's run file, which sets the desktop up; absent: an empty desktop. */
  readonly family?: string;
  /** Default: one of the training seeds. */
  readonly seed?: number;
  /** Default: what the task asks for. Another one has no verifier. */
  readonly instruction?: string;
  /** Choices are sampled as in training; default: the most probable ones. */
  readonly sampled?: boolean;
  /** `step`: it asks before each step. */
  readonly mode: 'policy' | 'step';
  /** Turns at most; default: the task's, else the run file's. */
  readonly maxSteps?: number;
}

/** Steps from the one asked for on, and what is proposed now. */
export interface TrySteps {
  readonly steps: readonly StepView[];
  readonly proposal?: { readonly id: number; readonly step: StepView };
}
