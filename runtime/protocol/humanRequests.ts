/** Requests of demonstrations: control, annotations, pool, import and export. Part of requests.ts. */
import type { Action, ProviderChoice } from '../domain/index.js';
import { reads, writes, type Empty } from './call.js';
import type * as T from './types.js';

interface InRun {
  readonly run: T.RunPath;
}
interface OfTrajectory extends InRun {
  readonly rollout: string;
}
interface InSession {
  readonly session: T.ControlSessionId;
}

export const humanRequests = {
  // a person at a desktop. Pictures: desktop/watch with the session's desktop
  /** A fresh desktop, set up for the task, in the person's hands. Cancellable. */
  'control/record': writes<T.RecordParams, T.ControlState>(),
  /** The desktop's rollout waits for a person: `human` acts, `step` consents. */
  'control/takeOver': writes<{ readonly desktop: string; readonly mode: 'human' | 'step' }, T.ControlState>(),
  'control/list': reads<Empty, { readonly sessions: readonly T.ControlState[] }>(),
  /** Says that a window shows this session; it is kept while any does, and a minute longer. */
  'control/attach': writes<InSession, T.ControlState>(),
  'control/detach': writes<InSession, Empty>(),
  /**
   * Sends input in order, batched; answered when the desktop has taken it. Rejects with `params.invalid` when the
   * person has no control.
   */
  'control/input': writes<InSession & { readonly events: readonly T.InputEvent[] }, Empty>(),
  /** An action that has no input events: an explicit wait, "this cannot be done" (`fail`), an answer (`finished`). */
  'control/act': writes<InSession & { readonly action: Action }, T.ControlState>(),
  /** Takes back nothing on the desktop: the last recorded step is left out of the demonstration. */
  'control/dropStep': writes<InSession, T.ControlState>(),
  'control/mode': writes<InSession & { readonly mode: 'human' | 'policy' | 'step' }, T.ControlState>(),
  /** Carries out the proposal, in step mode. */
  'control/accept': writes<InSession & { readonly proposal: number }, T.ControlState>(),
  /** Recording: the verifier judges. A success is kept at once. Taken-over rollout: as if the policy had ended it. */
  'control/finish': writes<InSession & { readonly failed?: boolean }, T.ControlState>(),
  'control/keep': writes<T.KeepParams, T.ControlState>(),
  /**
   * Recording: nothing is kept (a success that was kept leaves the pool and is tagged 'discarded'). Take-over: handed
   * back to the policy.
   */
  'control/discard': writes<InSession, Empty>(),

  // a policy that is tried; everything else of its session is control/*
  /** Runs under these folders that have a policy, and models that these run files name. */
  'try/policies': reads<
    { readonly roots: readonly string[]; readonly files: readonly string[] },
    { readonly policies: readonly T.TryPolicy[] }
  >(),
  /** Resolves when policy and desktop are there and the episode begins. Cancellable. */
  'try/start': writes<T.TryParams, T.ControlState>(),
  /** Steps of the session from this one on, with what the policy said of them. */
  'try/steps': reads<InSession & { readonly from: number }, T.TrySteps>(),
  /** Ends it now, unjudged; resolves when its desktop is gone. */
  'try/stop': writes<InSession, T.ControlState>(),

  // annotations
  'annotation/get': reads<OfTrajectory, T.AnnotationView>(),
  /**
   * Adds one revision, on disk when answered. `base` must be the revision shown (else `busy`, with the newer one in the
   * message).
   */
  'annotation/edit': writes<
    OfTrajectory & { readonly base: number; readonly ops: readonly T.AnnotationOp[] },
    T.AnnotationView
  >(),
  'annotation/undo': writes<OfTrajectory, T.AnnotationView>(),
  'annotation/redo': writes<OfTrajectory, T.AnnotationView>(),
  /** Acts the shown revision out on a fresh desktop and has it verified; cancellable, progress by `annotation/replayProgress`. */
  'annotation/replay': writes<OfTrajectory & { readonly provider?: ProviderChoice }, T.AnnotationView>(),
  'review/queue': reads<
    InRun & { readonly limit?: number; readonly family?: string; readonly includeReviewed?: boolean },
    T.ReviewQueue
  >(),

  // experience pool
  'pool/list': reads<InRun, T.PoolView>(),
  'pool/set': writes<InRun & { readonly rollouts: readonly string[]; readonly enabled: boolean }, T.PoolView>(),
  /** A finished trajectory of the run joins; without a verified success only with `override`. */
  'pool/add': writes<OfTrajectory & { readonly override?: string }, T.PoolView>(),
  'pool/remove': writes<InRun & { readonly rollouts: readonly string[]; readonly reason: string }, T.PoolView>(),

  // import and export
  'interchange/preview': reads<
    {
      readonly path: string;
      readonly format?: T.ImportFormatName;
      readonly options?: T.ImportOptions;
      readonly run?: T.RunPath;
    },
    T.ImportPreview
  >(),
  /**
   * Into a run that is not active, or into a new one: `name` under `base`. Cancellable between trajectories, and the same
   * request goes on. Progress by `interchange/progress`.
   */
  'interchange/import': writes<
    {
      readonly path: string;
      readonly format?: T.ImportFormatName;
      readonly options?: T.ImportOptions;
      readonly run?: T.RunPath;
      readonly base?: string;
      readonly name?: string;
      readonly pool?: boolean;
    },
    T.ImportResult
  >(),
  'interchange/export': writes<
    InRun & {
      readonly to: string;
      readonly format: T.ExportFormatName;
      readonly outcome?: 'success' | 'failure';
      readonly family?: string;
      readonly rollouts?: readonly string[];
      readonly split?: { readonly share: number; readonly seed: number };
      readonly annotations?: T.AnnotationFilter;
    },
    T.ExportResult
  >(),
} as const;
