/**
 * Every request and notification of the daemon. `noun/verb`, one parameter object, one result object. Errors: JSON-RPC
 * error with
 * `data: {kind, remedy}` (RunError without its message, which is the error's message); kinds are those of
 * domain/errors.ts and `DaemonErrorKind`.
 */
import { NotificationType, RequestType } from 'vscode-jsonrpc';
import type { ProviderChoice, RunError } from '../domain/index.js';
import type { ErrorData } from './errors.js';
import type * as T from './types.js';
import type { Build } from './version.js';

type Req<P, R> = RequestType<P, R, ErrorData>;
const req = <P, R>(m: string): Req<P, R> => new RequestType<P, R, ErrorData>(m);
const note = <P>(m: string): NotificationType<P> => new NotificationType<P>(m);
type Empty = Record<string, never>;

// daemon
export interface HelloParams {
  readonly protocol: number;
  readonly build: Build;
  /** For logs: 'VS Code window', 'test'. */
  readonly client: string;
}
export interface HelloResult {
  readonly protocol: number;
  readonly build: Build;
  readonly capabilities: readonly string[];
  readonly pid: number;
  readonly startedAt: number;
  readonly activeRuns: readonly T.RunPath[];
  readonly storage: string;
}
export const hello = req<HelloParams, HelloResult>('daemon/hello');
/**
 * No new runs; exits when the active run ends. `waitingFor` empty = it exits now, unless `busy`: an evaluation or an
 * image build is waited for.
 */
export const drain = req<Empty, { readonly waitingFor: readonly T.RunPath[]; readonly busy?: boolean }>('daemon/drain');
/** Stops the active run cleanly (checkpoint, rollouts recorded as stopped), then exits. */
export const shutdown = req<Empty, Empty>('daemon/shutdown');
/** Before the daemon goes, to every client. */
export const goingDown = note<{
  readonly reason: 'idle' | 'drained' | 'shutdown' | 'fault';
  readonly message?: string;
}>('daemon/goingDown');

// runs
export interface StartParams {
  /** Run file text (JSON); absent = the preset alone. `file` is only for messages. */
  readonly text?: string;
  readonly file?: string;
  readonly preset?: 'quickstart' | 'paper';
  /** Where a relative `store.dir` is resolved. */
  readonly base: string;
  readonly seed?: number;
  readonly minutes?: number;
  readonly provider?: ProviderChoice;
  readonly desktops?: number;
}
/**
 * One run at a time: `busy` names the active one. Resolves when the run folder exists and the run is under way;
 * desktops may still be starting.
 */
export const startRun = req<StartParams, { readonly run: T.RunPath; readonly id: string }>('run/start');
/** Go on with a run that is over or was interrupted. */
export const resumeRun = req<
  { readonly run: T.RunPath; readonly minutes?: number },
  { readonly run: T.RunPath; readonly id: string }
>('run/resume');
/**
 * Resolves when the run is closed: rollouts ended or recorded as stopped, a checkpoint kept, no desktop left. `now`
 * skips the grace of running rollouts.
 */
export const stopRun = req<{ readonly run: T.RunPath; readonly now?: boolean }, T.RunSummary>('run/stop');
/** No new rollouts; those running end, the trainer goes on with what it has. */
export const pauseRun = req<{ readonly run: T.RunPath }, Empty>('run/pause');
export const unpauseRun = req<{ readonly run: T.RunPath }, Empty>('run/unpause');
/** Greedy episodes of a checkpoint of a run that is not active. Progress by `evaluateProgress`. Cancellable. */
export const evaluate = req<
  {
    readonly run: T.RunPath;
    readonly version?: number;
    readonly episodes?: number;
    readonly split?: 'train' | 'heldout' | 'templates';
    readonly provider?: ProviderChoice;
  },
  T.EvalPoint
>('run/evaluate');
export const evaluateProgress = note<{
  readonly run: T.RunPath;
  readonly done: number;
  readonly episodes: number;
  readonly successes: number;
}>('run/evaluateProgress');
/** Runs under these folders (each a folder of run folders, or a run folder), newest first. */
export const listRuns = req<{ readonly roots: readonly string[] }, { readonly runs: readonly T.RunSummary[] }>(
  'run/list',
);
export const getRun = req<{ readonly run: T.RunPath }, T.RunDetail>('run/get');
export const getSeries = req<
  {
    readonly run: T.RunPath;
    /** e.g. 'update.refKl', 'run.rolloutsPerHour'. */
    readonly names: readonly string[];
    readonly maxPoints?: number;
  },
  { readonly series: readonly T.Series[] }
>('run/series');
export const getCurves = req<
  { readonly run: T.RunPath; readonly window?: number; readonly maxPoints?: number },
  { readonly curves: readonly T.SuccessCurve[]; readonly evals: readonly T.EvalPoint[] }
>('run/curves');
export const getLanes = req<
  {
    readonly run: T.RunPath;
    readonly from?: number;
    readonly to?: number;
    /** Pixels to draw on: shorter spans are merged. */
    readonly width: number;
  },
  T.Lanes
>('run/lanes');
export const getCuration = req<{ readonly run: T.RunPath }, T.CurationView>('run/curation');
/** A run was made, ended, or changed its state; list again. */
export const runsChanged = note<{ readonly run: T.RunPath; readonly state: T.RunState }>('run/changed');
/** Once a second while a run is active, to every client. */
export const runStatus = note<{ readonly run: T.RunPath; readonly status: T.RunStatus; readonly ledger: T.Ledger }>(
  'run/status',
);

// subscriptions: events since a sequence number without a gap, then live; batches of at most 200
export const subscribe = req<
  {
    readonly run: T.RunPath;
    readonly sinceSeq: number;
    readonly types?: readonly T.RunEventType[];
    /** Only this rollout's events. */
    readonly rollout?: string;
  },
  {
    readonly subscription: number;
    /** Next sequence number to be written when the subscription began. */
    readonly headSeq: number;
  }
>('events/subscribe');
export const unsubscribe = req<{ readonly subscription: number }, Empty>('events/unsubscribe');
/**
 * `nextSeq`: pass as `sinceSeq` after a reconnect. `live` is true once the past was delivered. `ended`: the run is over
 * and nothing will follow. `error`: the subscription ended because of it.
 */
export const events = note<{
  readonly subscription: number;
  readonly run: T.RunPath;
  readonly events: readonly T.RunEvent[];
  readonly nextSeq: number;
  readonly live: boolean;
  readonly ended?: boolean;
  readonly error?: RunError;
}>('events/batch');

// trajectories
export const listTrajectories = req<
  {
    readonly run: T.RunPath;
    readonly filter?: T.TrajectoryFilter;
    readonly sort?: T.TrajectorySort;
    readonly cursor?: string;
    readonly limit?: number;
  },
  { readonly rows: readonly T.TrajectoryRow[]; readonly total: number; readonly cursor?: string }
>('trajectory/list');
export const getTrajectory = req<{ readonly run: T.RunPath; readonly rollout: string }, T.TrajectoryView>(
  'trajectory/get',
);
export const getGroup = req<{ readonly run: T.RunPath; readonly group: string }, T.GroupView>('trajectory/group');
/**
 * The trajectory as `.traj.jsonl` text (protocol/trajectoryFile.ts); with `file`, written there with its frames beside
 * it.
 */
export const exportTrajectory = req<
  { readonly run: T.RunPath; readonly rollout: string; readonly file?: string },
  { readonly text?: string; readonly file?: string }
>('trajectory/export');
/**
 * Thumbnails, made when they are missing: path of a PNG at most `width` pixels wide for each hash; absent where the
 * frame cannot be read.
 */
export const thumbnails = req<
  { readonly run: T.RunPath; readonly hashes: readonly string[]; readonly width: number },
  { readonly paths: Readonly<Record<string, string>> }
>('frame/thumbnails');

// tasks, desktops, machine
export const listTasks = req<
  {
    readonly run?: T.RunPath;
    /** Those its run file names, also where it holds only what people brought. */
    readonly runnable?: boolean;
  },
  { readonly tasks: readonly T.TaskRow[] }
>('task/list');
export const listDesktops = req<Empty, { readonly desktops: readonly T.DesktopRow[] }>('desktop/list');
/** A desktop's row changed, or it is gone (`row` absent); coalesced to at most 4 a second per desktop. */
export const desktopChanged = note<{ readonly desktop: string; readonly row?: T.DesktopRow }>('desktop/changed');
/**
 * Live pictures as binary frames (binary.ts) of kind `screen` with this stream id, when something changes, at most
 * `maxFps`.
 */
export const watchDesktop = req<
  { readonly desktop: string; readonly maxFps?: number },
  { readonly stream: number; readonly width: number; readonly height: number }
>('desktop/watch');
export const unwatchDesktop = req<{ readonly stream: number }, Empty>('desktop/unwatch');
export const streamEnded = note<{ readonly stream: number; readonly error?: RunError }>('desktop/streamEnded');
/** Ends the desktop's rollout as an error (it is retried) and replaces the desktop. */
export const restartDesktop = req<{ readonly desktop: string }, Empty>('desktop/restart');
/** Cancellable; progress by `buildProgress`. */
export const buildDesktop = req<
  { readonly provider?: ProviderChoice; readonly force?: boolean },
  { readonly provider: string; readonly what: string }
>('desktop/build');
export const buildProgress = note<T.BuildProgress>('desktop/buildProgress');
export const doctor = req<Empty, { readonly checks: readonly T.CheckRow[] }>('machine/doctor');
/** A starter run file as text, and the JSON schema. */
export const template = req<{ readonly preset: 'quickstart' | 'paper' }, { readonly text: string }>('config/template');
/** Facts for a bug report: versions, machine, last log lines; no tokens, home folder as ~. */
export const diagnostics = req<Empty, { readonly files: Readonly<Record<string, string>> }>('machine/diagnostics');

export type { DaemonErrorKind, ErrorData } from './errors.js';
export * from './humanMethods.js';
