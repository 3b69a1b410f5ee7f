/** Requests and notifications of demonstrations: control, annotations, pool, import and export. See methods.ts. */
import { NotificationType, RequestType } from 'vscode-jsonrpc';
import type { Action, ProviderChoice } from '../domain/index.js';
import type { ErrorData } from './errors.js';
import type * as T from './types.js';

const req = <P, R>(m: string): RequestType<P, R, ErrorData> => new RequestType<P, R, ErrorData>(m);
const note = <P>(m: string): NotificationType<P> => new NotificationType<P>(m);
type Empty = Record<string, never>;
interface InRun {
  readonly run: T.RunPath;
}
interface OfTrajectory extends InRun {
  readonly rollout: string;
}
interface InSession {
  readonly session: T.ControlSessionId;
}

// a person at a desktop. Pictures: desktop/watch with the session's desktop
/** A fresh desktop, set up for the task, in the person's hands. Cancellable. */
export const recordDemonstration = req<T.RecordParams, T.ControlState>('control/record');
/** The desktop's rollout waits for a person: `human` acts, `step` consents. */
export const takeOver = req<{ readonly desktop: string; readonly mode: 'human' | 'step' }, T.ControlState>(
  'control/takeOver',
);
export const listControl = req<Empty, { readonly sessions: readonly T.ControlState[] }>('control/list');
/** Says that a window shows this session; it is kept while any does, and a minute longer. */
export const attachControl = req<InSession, T.ControlState>('control/attach');
export const detachControl = req<InSession, Empty>('control/detach');
/**
 * In order, batched; answered when the desktop has taken them. Rejects with `params.invalid` when the person has no
 * control.
 */
export const controlInput = req<InSession & { readonly events: readonly T.InputEvent[] }, Empty>('control/input');
/** An action that has no input events: an explicit wait, "this cannot be done" (`fail`), an answer (`finished`). */
export const controlAct = req<InSession & { readonly action: Action }, T.ControlState>('control/act');
/** Takes back nothing on the desktop: the last recorded step is left out of the demonstration. */
export const dropStep = req<InSession, T.ControlState>('control/dropStep');
export const setControlMode = req<InSession & { readonly mode: 'human' | 'policy' | 'step' }, T.ControlState>(
  'control/mode',
);
/** In step mode: the proposal is carried out. */
export const acceptProposal = req<InSession & { readonly proposal: number }, T.ControlState>('control/accept');
/** Recording: the verifier judges. A success is kept at once. Taken-over rollout: as if the policy had ended it. */
export const finishControl = req<InSession & { readonly failed?: boolean }, T.ControlState>('control/finish');
export const keepDemonstration = req<T.KeepParams, T.ControlState>('control/keep');
/**
 * Recording: nothing is kept (a success that was kept leaves the pool and is tagged 'discarded'). Take-over: handed
 * back to the policy.
 */
export const discardControl = req<InSession, Empty>('control/discard');
export const controlChanged = note<T.ControlState>('control/changed');

// annotations
export const getAnnotations = req<OfTrajectory, T.AnnotationView>('annotation/get');
/**
 * One revision, on disk when answered. `base` must be the revision shown (else `busy`, with the newer one in the
 * message).
 */
export const editAnnotations = req<
  OfTrajectory & { readonly base: number; readonly ops: readonly T.AnnotationOp[] },
  T.AnnotationView
>('annotation/edit');
export const undoAnnotation = req<OfTrajectory, T.AnnotationView>('annotation/undo');
export const redoAnnotation = req<OfTrajectory, T.AnnotationView>('annotation/redo');
/** Acts the shown revision out on a fresh desktop and has it verified; cancellable, progress by `replayProgress`. */
export const replayTrajectory = req<OfTrajectory & { readonly provider?: ProviderChoice }, T.AnnotationView>(
  'annotation/replay',
);
export const replayProgress = note<
  OfTrajectory & { readonly step: number; readonly of: number; readonly desktop?: string }
>('annotation/replayProgress');
export const annotationChanged = note<OfTrajectory & { readonly revision: number }>('annotation/changed');
export const reviewQueue = req<
  InRun & { readonly limit?: number; readonly family?: string; readonly includeReviewed?: boolean },
  T.ReviewQueue
>('review/queue');

// experience pool
export const listPool = req<InRun, T.PoolView>('pool/list');
export const setPool = req<InRun & { readonly rollouts: readonly string[]; readonly enabled: boolean }, T.PoolView>(
  'pool/set',
);
/** A finished trajectory of the run joins; without a verified success only with `override`. */
export const addToPool = req<OfTrajectory & { readonly override?: string }, T.PoolView>('pool/add');
export const removeFromPool = req<
  InRun & { readonly rollouts: readonly string[]; readonly reason: string },
  T.PoolView
>('pool/remove');
export const poolChanged = note<InRun>('pool/changed');

// import and export
export const previewImport = req<
  {
    readonly path: string;
    readonly format?: T.ImportFormatName;
    readonly options?: T.ImportOptions;
    readonly run?: T.RunPath;
  },
  T.ImportPreview
>('interchange/preview');
/**
 * Into a run that is not active, or into a new one: `name` under `base`. Cancellable between trajectories, and the same
 * request goes on. Progress by `interchangeProgress`.
 */
export const importTrajectories = req<
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
>('interchange/import');
export const exportTrajectories = req<
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
>('interchange/export');
export const interchangeProgress = note<T.InterchangeProgress>('interchange/progress');
