/** Every notification of the daemon, by its wire name. Pure. */
import type { RunError } from '../domain/index.js';
import type { Recovered } from './activeRuns.js';
import type * as T from './types.js';

export interface Notifications {
  /** Before the daemon goes, to every client. */
  readonly 'daemon/goingDown': {
    readonly reason: 'idle' | 'drained' | 'shutdown' | 'fault';
    readonly message?: string;
  };
  readonly 'run/evaluateProgress': {
    readonly run: T.RunPath;
    readonly done: number;
    readonly episodes: number;
    readonly successes: number;
    /** Episodes wait for room on the disk. */
    readonly diskFull?: true;
  };
  /** A run was made, ended, or changed its state; list again. */
  readonly 'run/changed': { readonly run: T.RunPath; readonly state: T.RunState };
  /** A daemon that has just started went on with a run that was active before, or did not, and why. */
  readonly 'run/recovered': Recovered;
  /** Something about an active run that somebody should look at. */
  readonly 'run/alert': {
    readonly run: T.RunPath;
    readonly id: string;
    readonly name: string;
    readonly kind: T.AlertKind;
    readonly message: string;
    readonly at: number;
  };
  'queue/changed': T.QueueView;
  /** Once a second while a run is active, to every client. */
  readonly 'run/status': { readonly run: T.RunPath; readonly status: T.RunStatus; readonly ledger: T.Ledger };
  /**
   * `nextSeq`: pass as `sinceSeq` after a reconnect. `live` is true once the past was delivered. `ended`: the run is over
   * and nothing will follow. `error`: the subscription ended because of it.
   */
  readonly 'events/batch': {
    readonly subscription: number;
    readonly run: T.RunPath;
    readonly events: readonly T.RunEvent[];
    readonly nextSeq: number;
    readonly live: boolean;
    readonly ended?: boolean;
    readonly error?: RunError;
  };
  /** A desktop's row changed, or it is gone (`row` absent); coalesced to at most 4 a second per desktop. */
  readonly 'desktop/changed': { readonly desktop: string; readonly row?: T.DesktopRow };
  readonly 'desktop/streamEnded': { readonly stream: number; readonly error?: RunError };
  readonly 'desktop/buildProgress': T.BuildProgress;
  readonly 'control/changed': T.ControlState;
  readonly 'annotation/replayProgress': { readonly run: T.RunPath; readonly rollout: string } & {
    readonly step: number;
    readonly of: number;
    readonly desktop?: string;
  };
  readonly 'annotation/changed': { readonly run: T.RunPath; readonly rollout: string } & { readonly revision: number };
  readonly 'pool/changed': { readonly run: T.RunPath };
  readonly 'interchange/progress': T.InterchangeProgress;
}
/** A notification by its wire name. */
export type NotificationName = keyof Notifications;
/** Any notification, told apart by its name. */
export type Notice = {
  readonly [N in NotificationName]: { readonly method: N; readonly params: Notifications[N] };
}[NotificationName];
