/**
 * Messages between a webview page and the extension host; pure types, both sides import them. What comes from a page is
 * validated by the host (extension/panels/messages.ts); what comes from the host is trusted. The page never talks to
 * the daemon (CSP connect-src 'none').
 *
 * Handshake: the page posts `ready` with a boot id; the host answers `init` with the full state; every later message
 * carries the boot id, or is dropped, so that a page rebuilt after being hidden never sees messages for the old page.
 */
import type {
  ControlState,
  RunEvent,
  RunEventType,
  RunStatus,
  Ledger,
  DesktopRow,
  ProviderChoice,
  SavedTableFilter,
  TableFilter,
  TrajectoryView,
} from '../runtime/protocol/types.js';
import type { Method, Params, Result } from '../runtime/protocol/requests.js';

/** Views of the table page. */
export const tableViews = ['list', 'failures', 'changes'] as const;
export type TableView = (typeof tableViews)[number];

/** Folders whose files a page may show: a path below `path` is the URI `uri` + the rest. */
export interface ResourceRoot {
  readonly path: string;
  readonly uri: string;
}

/**
 * The input that a page is opened with; also what a restored page asks for (kept in its own state, navigation only).
 */
export type PageInput =
  | { readonly kind: 'dashboard'; readonly run: string }
  /** Several runs beside one another. */
  | { readonly kind: 'compareRuns'; readonly runs: readonly string[] }
  | {
      readonly kind: 'inspector';
      readonly run?: string;
      readonly rollout: string;
      /** Custom editor: the document itself. */
      readonly document?: TrajectoryView;
      /** Lines of the document that could not be used. */
      readonly skipped?: readonly {
        readonly line: number;
        readonly why: string;
      }[];
      /** Index of the step to show first. */
      readonly step?: number;
      /** Opened to be annotated: the tools are shown. */
      readonly annotate?: boolean;
      /** The trajectory is from the run's review queue (`review/queue`): the page goes on to the next. */
      readonly queue?: boolean;
    }
  | { readonly kind: 'compare'; readonly run: string; readonly left: string; readonly right: string }
  | {
      readonly kind: 'table';
      readonly run: string;
      readonly view?: TableView;
      readonly filter?: TableFilter;
      /** Saved filters of this workspace, as the host has them when it tells the page. */
      readonly saved?: readonly SavedTableFilter[];
    }
  | {
      readonly kind: 'try';
      /** Folders of runs, and run files: what can be tried. */
      readonly roots: readonly string[];
      readonly files: readonly string[];
      /** Folder of run folders, beside which what is kept is kept. */
      readonly base: string;
      /** The policy that is chosen first. */
      readonly run?: string;
      /** Version of one of its checkpoints. */
      readonly version?: number;
      readonly provider?: ProviderChoice;
      /** The session that the page shows, and its desktop. */
      readonly desktop?: string;
      readonly session?: string;
    }
  | {
      readonly kind: 'live';
      readonly desktop: string;
      /** A person is, or was, in control (`control/attach`). */
      readonly session?: string;
    };

/** A person's part in an episode, on the pages that show one live. */
const controlMethods = [
  'control/takeOver',
  'control/attach',
  'control/detach',
  'control/input',
  'control/act',
  'control/dropStep',
  'control/mode',
  'control/accept',
  'control/finish',
  'control/keep',
  'control/discard',
] as const satisfies readonly Method[];
/**
 * Every page, as its folder is called, with the daemon requests that it may make through the host, by their wire name
 * (runtime/protocol/requests.ts). Nothing else is passed on.
 */
export const pageMethods = {
  dashboard: [
    'run/get',
    'run/check',
    'run/footprint',
    'run/series',
    'run/curves',
    'run/lanes',
    'run/curation',
    'trajectory/list',
    'task/list',
  ],
  compareRuns: ['run/compare'],
  inspector: [
    'trajectory/get',
    'trajectory/list',
    'frame/thumbnails',
    'annotation/get',
    'annotation/edit',
    'annotation/undo',
    'annotation/redo',
    'annotation/replay',
    'review/queue',
    'pool/list',
    'pool/add',
  ],
  compare: ['trajectory/get', 'frame/thumbnails'],
  table: ['trajectory/columns', 'trajectory/frames', 'frame/thumbnails', 'run/failures', 'trajectory/strips'],
  live: ['desktop/list', 'trajectory/get', ...controlMethods],
  try: [
    'try/policies',
    'try/start',
    'try/steps',
    'try/stop',
    'run/get',
    'task/list',
    'desktop/images',
    'frame/thumbnails',
    ...controlMethods,
  ],
} as const satisfies Readonly<Record<string, readonly Method[]>>;
/** Requests that go on while their page is hidden, which tears it down: the page that is built again gets the answer. */
export const longMethods = ['annotation/replay', 'try/start'] as const satisfies readonly Method[];
/** Events of a run that change its trajectories. */
export const trajectoryEvents = [
  'started',
  'step',
  'ended',
  'group',
  'trained',
  'closed',
] as const satisfies readonly RunEventType[];
export type PageKind = keyof typeof pageMethods;
export type InputOf<K extends PageKind> = Extract<PageInput, { readonly kind: K }>;
export type PageMethod<K extends PageKind = PageKind> = (typeof pageMethods)[K][number];
/** Asks the daemon for some of its methods: the host of a page, or a part of a page that is given no more. */
export interface Requester<Asked extends PageMethod> {
  /** Rejects with RequestFailed; an aborted request is cancelled on the way. */
  request<M extends Asked>(method: M, params: Params<M>, signal?: AbortSignal): Promise<Result<M>>;
}

/** Commands of the editor that a page may run. */
export const pageCommands = [
  'startTraining',
  'stopTraining',
  'pause',
  'resume',
  'evaluate',
  'openDashboard',
  'compareRuns',
  'openRunFile',
  'duplicateRun',
  'showLog',
  'startRuntime',
  'watchDesktop',
  'recordDemonstration',
  'buildDesktop',
  'tryPolicy',
] as const;
export type PageCommand = (typeof pageCommands)[number];

/** Actions only the editor can carry out. */
export type HostAction =
  | {
      readonly action: 'openTrajectory';
      readonly run: string;
      readonly rollout: string;
      readonly step?: number;
      readonly beside?: boolean;
    }
  | { readonly action: 'compare'; readonly run: string; readonly left: string; readonly right: string }
  /** The list of trajectories behind what was clicked. */
  | { readonly action: 'openTable'; readonly run: string; readonly filter: TableFilter; readonly view?: TableView }
  /** Saves a filter of the workspace, in place of one of the same name. */
  | { readonly action: 'keepFilter'; readonly filter: SavedTableFilter }
  | { readonly action: 'dropFilter'; readonly name: string }
  | { readonly action: 'openText'; readonly run?: string; readonly rollout: string }
  | { readonly action: 'copy'; readonly text: string }
  /** A link to what the page shows; `step` is its index. */
  | { readonly action: 'copyLink'; readonly run: string; readonly rollout?: string; readonly step?: number }
  /** A run, a trajectory of it, or the document of the page as one HTML file. */
  | { readonly action: 'exportPage'; readonly run?: string; readonly rollout?: string }
  /** A chart that could not be put into the clipboard: a PNG in base64, for a file that the user names. */
  | { readonly action: 'saveChart'; readonly name: string; readonly png: string }
  /** A screenshot: the host asks where to and copies the file. */
  | { readonly action: 'saveImage'; readonly path: string; readonly name: string }
  | {
      readonly action: 'command';
      readonly command: PageCommand;
      readonly argument?: string;
    }
  | { readonly action: 'annotate'; readonly run: string; readonly rollout: string }
  /**
   * The page went on to another trajectory of its run by itself, as the review queue does: nothing is to be shown,
   * later questions are about that one.
   */
  | { readonly action: 'moved'; readonly rollout: string };

export type ToHost =
  | { readonly type: 'ready'; readonly boot: string }
  /** The page's script did not come: the page is built anew. */
  | { readonly type: 'lost'; readonly boot: string }
  | {
      readonly type: 'request';
      readonly boot: string;
      readonly id: number;
      readonly method: PageMethod;
      readonly params: unknown;
    }
  | { readonly type: 'cancel'; readonly boot: string; readonly id: number }
  /**
   * Events of a run, from `sinceSeq` on; the host keeps the daemon subscription alive over reconnects. One per page: a
   * new one replaces it.
   */
  | {
      readonly type: 'subscribe';
      readonly boot: string;
      readonly run: string;
      readonly sinceSeq: number;
      readonly types?: readonly RunEvent['type'][];
      readonly rollout?: string;
    }
  | { readonly type: 'action'; readonly boot: string; readonly action: HostAction }
  /** The reader's choices: a page that is built again begins with them. */
  | { readonly type: 'now'; readonly boot: string; readonly input: PageInput }
  /** Title of the panel. */
  | { readonly type: 'title'; readonly boot: string; readonly title: string }
  /** A fault in the page, for the log. */
  | { readonly type: 'fault'; readonly boot: string; readonly message: string };

export interface HostError {
  readonly kind: string;
  readonly message: string;
  readonly remedy: string;
}

export type DaemonState = 'stopped' | 'starting' | 'attaching' | 'ready' | 'reconnecting' | 'incompatible' | 'failed';

/** A request (`longMethods`) of the page before this one. */
export interface PageJob {
  readonly id: number;
  readonly method: PageMethod;
  readonly params: unknown;
}

export type ToPage =
  | {
      readonly type: 'init';
      readonly boot: string;
      readonly input: PageInput;
      readonly roots: readonly ResourceRoot[];
      readonly daemon: DaemonState;
      readonly trusted: boolean;
      /** Answered, and cancelled, by their ids, as if this page had asked. */
      readonly jobs?: readonly PageJob[];
    }
  /** Same panel, another thing to show. */
  | { readonly type: 'show'; readonly boot: string; readonly input: PageInput; readonly roots: readonly ResourceRoot[] }
  | {
      readonly type: 'response';
      readonly boot: string;
      readonly id: number;
      readonly result?: unknown;
      readonly error?: HostError;
    }
  | {
      readonly type: 'events';
      readonly boot: string;
      readonly run: string;
      readonly events: readonly RunEvent[];
      readonly nextSeq: number;
      readonly live: boolean;
      readonly ended?: boolean;
    }
  | {
      readonly type: 'status';
      readonly boot: string;
      readonly run: string;
      readonly status: RunStatus;
      readonly ledger: Ledger;
    }
  | { readonly type: 'desktop'; readonly boot: string; readonly desktop: string; readonly row?: DesktopRow }
  /** A changed rectangle of a watched desktop, PNG. */
  | {
      readonly type: 'screen';
      readonly boot: string;
      readonly x: number;
      readonly y: number;
      readonly width: number;
      readonly height: number;
      readonly at: number;
      readonly png: Uint8Array;
      readonly screen: { readonly width: number; readonly height: number };
    }
  /** The saved filters of the workspace changed. */
  | { readonly type: 'savedFilters'; readonly boot: string; readonly saved: readonly SavedTableFilter[] }
  /** State of the control session that the page shows. */
  | { readonly type: 'control'; readonly boot: string; readonly state: ControlState }
  /** Somebody, perhaps this page, edited the trajectory shown; or a replay of it goes on. */
  | {
      readonly type: 'annotation';
      readonly boot: string;
      readonly run: string;
      readonly rollout: string;
      readonly revision?: number;
      readonly replay?: { readonly step: number; readonly of: number; readonly desktop?: string };
    }
  | { readonly type: 'daemon'; readonly boot: string; readonly state: DaemonState; readonly error?: HostError }
  /**
   * A keyboard shortcut or native menu item of VS Code that the page carries out: 'nextEntropy', 'copyStep', … To a
   * comparison of runs also 'reload': one of them has begun, ended or changed its state.
   */
  | { readonly type: 'do'; readonly boot: string; readonly what: string; readonly context?: unknown };
