/**
 * Every request of the daemon, declared once: `noun/verb`, one parameter object, one result object, and whether it
 * writes. What else speaks of requests derives from this map: the JSON-RPC types (methods.ts), what pages may call and
 * what comes back (webview/protocol.ts), what is refused in Restricted Mode, the daemon's validators. Pure.
 */
import type { EvaluationSplit, PresetName, ProviderChoice } from '../domain/index.js';
import { reads, writes, type Empty } from './call.js';
import { humanRequests } from './humanRequests.js';
import type { Recovered } from './activeRuns.js';
import type * as T from './types.js';
import type { Build } from './version.js';

export interface HelloParams {
  readonly protocol: number;
  readonly build: Build;
  /** Name for logs: 'VS Code window', 'test'. */
  readonly client: string;
}
export interface HelloResult {
  readonly protocol: number;
  readonly build: Build;
  readonly capabilities: readonly string[];
  readonly pid: number;
  readonly startedAt: number;
  readonly activeRuns: readonly T.RunPath[];
  /** What this daemon did, when it started, about runs that were active before; later ones come as `run/recovered`. */
  readonly recovered?: readonly Recovered[];
  readonly storage: string;
}
export interface StartParams {
  /** Run file text (JSON); absent = the preset alone. `file` is for messages, and for folders that stand beside it. */
  readonly text?: string;
  readonly file?: string;
  readonly preset?: PresetName;
  /** Folder in which a relative `store.dir` is resolved. */
  readonly base: string;
  readonly seed?: number;
  readonly minutes?: number;
  readonly provider?: ProviderChoice;
  readonly desktops?: number;
}
interface InRun {
  readonly run: T.RunPath;
}

export const requests = {
  'daemon/hello': reads<HelloParams, HelloResult>(),
  /**
   * Takes no new runs; exits when the active run ends. `waitingFor` empty = it exits now, unless `busy`: an evaluation
   * or an image build is waited for.
   */
  'daemon/drain': writes<Empty, { readonly waitingFor: readonly T.RunPath[]; readonly busy?: boolean }>(),
  /** Stops the active run cleanly (checkpoint, rollouts recorded as stopped), then exits. */
  'daemon/shutdown': writes<Empty, Empty>(),

  // runs
  /**
   * Starts a run, one at a time: `busy` names the active one. Resolves when the run folder exists and the run is under
   * way; desktops may still be starting.
   */
  'run/start': writes<StartParams, { readonly run: T.RunPath; readonly id: string }>(),
  /**
   * Go on with a run that is over or was interrupted: with what is left of its budget, with `minutes` as its whole
   * budget, or for `more` minutes from now, whatever it has used and whichever limit ended it.
   */
  'run/resume': writes<
    { readonly run: T.RunPath; readonly minutes?: number; readonly more?: number },
    { readonly run: T.RunPath; readonly id: string }
  >(),
  /**
   * Resolves when the run is closed: rollouts ended or recorded as stopped, a checkpoint kept, no desktop left. `now`
   * skips the grace of running rollouts.
   */
  'run/stop': writes<{ readonly run: T.RunPath; readonly now?: boolean }, T.RunSummary>(),
  /** Starts no new rollouts; those running end, the trainer goes on with what it has. */
  'run/pause': writes<InRun, Empty>(),
  'run/unpause': writes<InRun, Empty>(),
  /** Greedy episodes of a checkpoint of a run that is not active. Progress by `run/evaluateProgress`. Cancellable. */
  'run/evaluate': writes<
    {
      readonly run: T.RunPath;
      readonly version?: number;
      readonly episodes?: number;
      readonly split?: EvaluationSplit;
      readonly provider?: ProviderChoice;
    },
    T.EvalPoint
  >(),
  /** Runs under these folders (each a folder of run folders, or a run folder), newest first. */
  'run/list': reads<{ readonly roots: readonly string[] }, { readonly runs: readonly T.RunSummary[] }>(),
  'run/get': reads<InRun, T.RunDetail>(),
  /** Disk and policy size; it looks at every file of the run. */
  'run/footprint': reads<InRun, T.RunFootprint>(),
  /** The run file that makes the same configuration: its preset, and what goes beyond it. */
  'run/file': reads<InRun, { readonly text: string }>(),
  /** Reads the journal of a run that is over from end to end: what of it is damaged. Absent: nothing. */
  'run/check': reads<InRun, { readonly damage?: T.JournalDamage | undefined }>(),
  'run/series': reads<
    {
      readonly run: T.RunPath;
      /** e.g. 'update.refKl', 'run.rolloutsPerHour'. */
      readonly names: readonly string[];
      readonly maxPoints?: number;
    },
    { readonly series: readonly T.Series[] }
  >(),
  'run/curves': reads<
    { readonly run: T.RunPath; readonly window?: number; readonly maxPoints?: number },
    { readonly curves: readonly T.SuccessCurve[]; readonly evals: readonly T.EvalPoint[] }
  >(),
  'run/lanes': reads<
    {
      readonly run: T.RunPath;
      readonly from?: number;
      readonly to?: number;
      /** Pixels to draw on: shorter spans are merged. */
      readonly width: number;
    },
    T.Lanes
  >(),
  'run/curation': reads<InRun, T.CurationView>(),
  /** Any runs beside one another: curves and what to place them by, evaluations, tasks, where their run files differ. */
  'run/compare': reads<
    { readonly runs: readonly T.RunPath[]; readonly window?: number; readonly maxPoints?: number },
    T.Comparison
  >(),
  /** Newest failures in clusters, by where they part from successes of the same task; clicks only of one family. */
  'run/failures': reads<
    {
      readonly run: T.RunPath;
      readonly family?: string;
      readonly version?: { readonly min?: number; readonly max?: number };
    },
    T.FailuresView
  >(),

  // the queue: runs that begin one after another, with or without a window
  'queue/list': reads<Empty, T.QueueView>(),
  /** Each is checked as `run/start` checks it; `config.invalid` queues none of them. */
  'queue/add': writes<{ readonly runs: readonly T.QueuedRun[] }, T.QueueView>(),
  'queue/remove': writes<{ readonly id: string }, T.QueueView>(),
  /** Moves an entry so many places later; negative: sooner. */
  'queue/move': writes<{ readonly id: string; readonly by: number }, T.QueueView>(),
  'queue/pause': writes<{ readonly paused: boolean }, T.QueueView>(),

  // subscriptions: events since a sequence number without a gap, then live; batches of at most 200
  'events/subscribe': reads<
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
  >(),
  'events/unsubscribe': reads<{ readonly subscription: number }, Empty>(),

  // trajectories
  'trajectory/list': reads<
    {
      readonly run: T.RunPath;
      readonly filter?: T.TrajectoryFilter;
      readonly sort?: T.TrajectorySort;
      readonly cursor?: string;
      readonly limit?: number;
    },
    {
      readonly rows: readonly T.TrajectoryRow[];
      readonly total: number;
      readonly older?: number;
      readonly cursor?: string;
    }
  >(),
  /**
   * All trajectories of a run as columns, newest first, a part at a time: `next` is what the following part is asked
   * for with. `seq`: subscribe from there to follow what changes.
   */
  'trajectory/columns': reads<
    { readonly run: T.RunPath; readonly before?: number; readonly limit: number },
    {
      readonly columns: T.TrajectoryColumns;
      /** Sent with the first part only. */
      readonly total?: number;
      /** Older ones that the run only counts. */
      readonly older?: number;
      readonly next?: number;
      readonly seq: number;
      /** Somebody is writing the run. */
      readonly alive: boolean;
    }
  >(),
  /** The last screen of each, by its hash; absent where there is none. */
  'trajectory/frames': reads<
    { readonly run: T.RunPath; readonly rollouts: readonly string[] },
    { readonly frames: Readonly<Record<string, string>> }
  >(),
  /** Screens and actions of a few episodes; one whose records are damaged is left out. */
  'trajectory/strips': reads<
    { readonly run: T.RunPath; readonly rollouts: readonly string[] },
    { readonly strips: readonly T.EpisodeStrip[] }
  >(),
  'trajectory/get': reads<{ readonly run: T.RunPath; readonly rollout: string }, T.TrajectoryView>(),
  'trajectory/group': reads<{ readonly run: T.RunPath; readonly group: string }, T.GroupView>(),
  /**
   * The trajectory as `.traj.jsonl` text (protocol/trajectoryFile.ts); with `file`, written there with its frames beside
   * it.
   */
  'trajectory/export': writes<
    { readonly run: T.RunPath; readonly rollout: string; readonly file?: string },
    { readonly text?: string; readonly file?: string }
  >(),
  /**
   * A run, one of its trajectories, or a `.traj.jsonl` file as one HTML file that needs nothing else
   * (runtime/share/README.md). Cancellable.
   */
  'share/page': writes<
    { readonly run?: T.RunPath; readonly rollout?: string; readonly trajectory?: string; readonly to: string },
    { readonly file: string; readonly bytes: number; readonly scale: number; readonly without: number }
  >(),
  /** A table of a run as a file: CSV, JSON or Parquet by the ending of `to`. Cancellable. */
  'run/exportTable': writes<
    { readonly run: T.RunPath; readonly what: 'metrics' | 'rollouts'; readonly to: string },
    { readonly rows: number }
  >(),
  /**
   * Thumbnails, made when they are missing: path of a PNG at most `width` pixels wide for each hash, or of the frame
   * itself for width 0; absent where the frame cannot be read.
   */
  'frame/thumbnails': reads<
    { readonly run: T.RunPath; readonly hashes: readonly string[]; readonly width: number },
    { readonly paths: Readonly<Record<string, string>> }
  >(),
  /** The same as PNGs in base64, for a window on another machine; as many as fit into 64 MB. */
  'frame/pictures': reads<
    { readonly run: T.RunPath; readonly hashes: readonly string[]; readonly width: number },
    { readonly pictures: Readonly<Record<string, string>> }
  >(),

  // tasks, desktops, machine
  'task/list': reads<
    {
      readonly run?: T.RunPath;
      /** Tasks that the run file names, even where the run holds only imported or recorded trajectories. */
      readonly runnable?: boolean;
    },
    { readonly tasks: readonly T.TaskRow[] }
  >(),
  'desktop/list': reads<Empty, { readonly desktops: readonly T.DesktopRow[] }>(),
  /**
   * Live pictures as binary frames (binary.ts) of kind `screen` with this stream id, when something changes, at most
   * `maxFps`.
   */
  'desktop/watch': reads<
    { readonly desktop: string; readonly maxFps?: number },
    { readonly stream: number; readonly width: number; readonly height: number }
  >(),
  'desktop/unwatch': reads<{ readonly stream: number }, Empty>(),
  /** Ends the desktop's rollout as an error (it is retried) and replaces the desktop. */
  'desktop/restart': writes<{ readonly desktop: string }, Empty>(),
  /** The desktop images there are, by name. */
  'desktop/images': reads<Empty, { readonly images: readonly T.ImageRow[] }>(),
  /** Cancellable; progress by `desktop/buildProgress`. Without `image` the one of a run file that names none. */
  'desktop/build': writes<
    { readonly provider?: ProviderChoice; readonly image?: string; readonly force?: boolean },
    { readonly provider: string; readonly what: string }
  >(),
  'machine/doctor': reads<Empty, { readonly checks: readonly T.CheckRow[] }>(),
  /**
   * Sets the targets of alerts, by the settings of the client's machine (never by a workspace): with or without a
   * window from now on. The newest call counts; what is empty is as the daemon's own command line says.
   */
  'machine/alerts': writes<{ readonly command: string; readonly webhook: string; readonly desktop: boolean }, Empty>(),
  /** A starter run file as text, and the JSON schema. */
  'config/template': reads<{ readonly preset: PresetName }, { readonly text: string }>(),
  /** Finds the problems in a run file's text, place by place; nothing is started. */
  'config/check': reads<
    { readonly text: string; readonly file?: string },
    { readonly problems: readonly T.ConfigProblem[] }
  >(),
  /** Facts for a bug report: versions, machine, last log lines; no tokens, home folder as ~. */
  'machine/diagnostics': reads<Empty, { readonly files: Readonly<Record<string, string>> }>(),

  ...humanRequests,
} as const;

/** `{ method: [params, result] }` of every request. */
export type Requests = { readonly [M in keyof typeof requests]: NonNullable<(typeof requests)[M]['types']> };
/** A request by its wire name. */
export type Method = keyof Requests;
export type Params<M extends Method> = Requests[M][0];
export type Result<M extends Method> = Requests[M][1];
