import type { ProcessEntry } from '../concurrency/process.js';
import type { AlertTargets } from './alerts/alertSender.js';
import type { Notifications } from '../protocol/notifications.js';
import type { Recovered } from '../protocol/activeRuns.js';
import type { TrainResult } from '../run/trainRun.js';
import type { SessionPlan } from './runSession.js';
import type { Ledger, RunEvent, RunPath, RunStatus } from '../protocol/types.js';

/** The service's log; the daemon puts it into its own. */
export type ServiceLog = (level: 'info' | 'warn' | 'error', message: string) => void;
export interface StudioServiceOptions {
  /** The bundle that child processes and workers are started from. */
  readonly entry: ProcessEntry;
  /** Thumbnails and summaries of runs; may be deleted at any time. */
  readonly cacheDir: string;
  /** Folder of the record of active runs; the cache folder when absent. */
  readonly storage?: string;
  /** Targets of alerts until a window tells its machine's settings. */
  readonly alerts?: AlertTargets;
  readonly log: ServiceLog;
}
/** Why a request's signal fired: its client did not cancel it but is not there any more. */
export const gone = 'gone';
/** A request's knowledge of its caller. */
export interface ServiceContext {
  /** Fires when the client cancels the request or goes away; then its reason is `gone`. */
  readonly signal: AbortSignal;
  /** Fires when the client goes away, however long after this request; the same object for all of its requests. */
  readonly client?: AbortSignal;
  /** A notification to this client alone, by its wire name (progress of a long request). */
  notify(method: string, params: unknown): void;
}
export type Handler = (params: unknown, c: ServiceContext) => Promise<unknown>;

export interface EventBatch {
  readonly events: readonly RunEvent[];
  readonly nextSeq: number;
  /** The past was delivered. */
  readonly live: boolean;
  readonly ended?: boolean;
}
export interface EventQuery {
  readonly run: RunPath;
  readonly sinceSeq: number;
  readonly types?: readonly RunEvent['type'][];
  readonly rollout?: string;
}

/** A changed rectangle of a watched desktop. */
export interface ScreenPatch {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly at: number;
  readonly png: Uint8Array;
}

export type Broadcast =
  | { readonly method: 'run/recovered'; readonly params: Recovered }
  | { readonly method: 'run/alert'; readonly params: Notifications['run/alert'] }
  | {
      readonly method:
        'run/changed' | 'queue/changed' | 'desktop/changed' | 'control/changed' | 'annotation/changed' | 'pool/changed';
      readonly params: unknown;
    }
  | {
      readonly method: 'run/status';
      readonly params: { readonly run: RunPath; readonly status: RunStatus; readonly ledger: Ledger };
    };

/**
 * Everything the daemon can do, without a transport: the server (runtime/server) puts it on a WebSocket. Handlers
 * validate their parameters (StudioError-like with kind `params.invalid` through `ServiceError`) and reject with
 * StudioError otherwise.
 */
export interface StudioService {
  /**
   * Handlers by wire name: every request of protocol/methods.ts except daemon/*, events/* and desktop/watch,
   * desktop/unwatch, which are the server's.
   */
  readonly handlers: ReadonlyMap<string, Handler>;
  /**
   * Next sequence number this run's journal will write: the head when a subscription begins. Rejects with not.found.
   */
  head(run: RunPath): Promise<number>;
  /**
   * Batches of at most 200 events. Waits for the consumer (back-pressure); ends with `ended` when the run is over, or
   * when the signal fires.
   */
  events(q: EventQuery, signal: AbortSignal): AsyncIterable<EventBatch>;
  /**
   * Whole screen first, then what changes, at most `maxFps`; a slow consumer gets the newest state, never a queue.
   * Rejects with not.found.
   */
  watch(
    desktop: string,
    o: { readonly maxFps: number },
    signal: AbortSignal,
  ): Promise<{ readonly width: number; readonly height: number; readonly patches: AsyncIterable<ScreenPatch> }>;
  onBroadcast(listener: (b: Broadcast) => void): () => void;
  /** Runs under way, and long jobs (evaluation, image build) that keep the daemon alive. */
  readonly active: readonly RunPath[];
  readonly busy: boolean;
  onIdle(listener: () => void): () => void;
  /** Goes on with runs that were active when the last daemon ended; each is also broadcast as `run/recovered`. */
  recover?(): Promise<void>;
  /** The runs it has recovered so far. */
  readonly recovered?: readonly Recovered[];
  /** A newer daemon waits for the end of this one: what is under way goes on, and nothing begins by itself. */
  drain?(): void;
  /** Trains, as `run/start` does; resolves when the run is over. Rejects with what ended it. */
  train(plan: SessionPlan): Promise<TrainResult>;
  /**
   * Stops what is active cleanly; `now` without grace. `keep`: nobody wanted it to end, so the next daemon goes on with
   * it. Idempotent.
   */
  close(o: { readonly now: boolean; readonly keep?: boolean }): Promise<void>;
}
