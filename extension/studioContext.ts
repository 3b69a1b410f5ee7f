/** The objects that commands, views and panels share; context.ts builds them. */
import type { ExtensionContext, LogOutputChannel, WorkspaceFolder } from 'vscode';
import type { ReviewQueue, RunPath, TrajectorySort } from '../runtime/protocol/types.js';
import type { DaemonClient } from './daemon/client.js';
import type { TrajectoryEditors } from './editors/trajectoryEditor.js';
import type { Reporter } from './errors.js';
import type { CommandId } from './ids.js';
import type { Machine } from './model/contextKeys.js';
import type { ViewFilter } from './model/filter.js';
import type { ControlSessions } from './model/controlSessions.js';
import type { PoolModel } from './model/poolModel.js';
import type { StudioModel } from './model/studioModel.js';
import type { TrajectoryList } from './model/trajectoryList.js';
import type { PanelManager } from './panels/panelManager.js';
import type { WebviewHost } from './panels/webviewHost.js';
import type { Reports } from './reports.js';
import type { RunFileChecks } from './runFileChecks.js';
import type { FolderSettings } from './settings.js';
import type { Trees } from './views/trees.js';

export interface StudioContext {
  readonly extension: ExtensionContext;
  readonly log: LogOutputChannel;
  readonly runtimeLog: LogOutputChannel;
  readonly report: Reporter;
  readonly client: DaemonClient;
  readonly model: StudioModel;
  readonly list: TrajectoryList;
  readonly pool: PoolModel;
  readonly sessions: ControlSessions;
  readonly trees: Trees;
  /** In Restricted Mode: starts the runtime that reads the sample run, and no other. */
  readSample(): Promise<void>;
  readonly panels: PanelManager;
  readonly editors: TrajectoryEditors;
  readonly reports: Reports;
  readonly runFiles: RunFileChecks;
  /** File-system path of the runtime's folder (globalStorageUri). */
  readonly storage: string;
  /** Runs that are being stopped from this window. */
  readonly stopping: Set<string>;
  /** Runs cancelled while they started: their end is not announced. */
  readonly cancelled: Set<string>;
  /** The page that has the focus: a panel's or a custom editor's. */
  readonly activeHost: WebviewHost | undefined;

  /** Refuses in Restricted Mode: nothing is started there. */
  requireTrust(): void;
  /** Refuses changes of recorded runs in Restricted Mode. */
  requireEditing(): void;
  /** Refuses also where the workspace is not on this machine's disk. */
  requireTraining(): void;
  /** Refuses while the window is attached to a runtime elsewhere: what is wanted is of this machine. */
  requireHere(): void;
  /** Starts the runtime or attaches to it; resolves when it answers. */
  ensureRuntime(signal?: AbortSignal): Promise<void>;
  /** Attaches when one is running; never starts one, never fails. */
  attach(): Promise<void>;
  /** Paths of the workspace folders on disk. */
  folders(): readonly string[];
  /** Folder that new runs are kept in. */
  home(folder?: WorkspaceFolder): string;
  /** The runs folder of each workspace folder on disk; none where no folder is open. */
  homes(): readonly string[];
  /** Settings of this folder, or of the one that keeps this run; without either, of the one that keeps new runs. */
  settings(of?: WorkspaceFolder | RunPath): FolderSettings;
  /** Folder in which relative paths of a run without a file are resolved. */
  base(): string;
  /** Every folder that runs are looked for in. */
  roots(): readonly string[];
  addRoot(path: string): Promise<void>;
  dropRoot(path: string): Promise<void>;
  setMachine(m: Machine): void;
  filter(f: ViewFilter): Promise<void>;
  sort(by: TrajectorySort): Promise<void>;
  /** Marks this run as being reviewed: the number of waiting trajectories is shown from now on. */
  reviewing(run: RunPath, queue: ReviewQueue): void;
  /** Runs a command and reports its errors. */
  run(command: CommandId, arg?: unknown): void;
}
