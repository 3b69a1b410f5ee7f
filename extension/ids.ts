/** Every id that the manifest and the code share. test/unit/manifest checks both ways. */
import type { PageKind } from '../webview/protocol.js';
import { commandTable } from './commandTable.js';

type CommandTable = typeof commandTable;
/** Commands of the palette and of menus. */
export const commands = Object.fromEntries(Object.entries(commandTable).map(([key, { id }]) => [key, id])) as {
  readonly [K in keyof CommandTable]: CommandTable[K]['id'];
};
export type CommandId = (typeof commands)[keyof typeof commands];

export const views = {
  container: 'dartStudio',
  runs: 'dartStudio.runs',
  tasks: 'dartStudio.tasks',
  desktops: 'dartStudio.desktops',
  trajectories: 'dartStudio.trajectories',
  pool: 'dartStudio.pool',
} as const;

/** Webview panel type of a page; `activeWebviewPanelId` and `webviewId` in `when` clauses. */
export const panelType = (kind: PageKind): string => `dartStudio.${kind}`;
export const trajectoryEditor = 'dartStudio.trajectory';
export const walkthrough = 'start';

/** Context keys that the code sets; each is used by a `when`. */
export const contextKeys = {
  daemon: 'dartStudio.daemon',
  runActive: 'dartStudio.runActive',
  runPaused: 'dartStudio.runPaused',
  runStopping: 'dartStudio.runStopping',
  /** The dashboard that has the focus shows the active run, and not another one. */
  dashboardOfActiveRun: 'dartStudio.dashboardOfActiveRun',
  /** The editor that has the focus shows a run file. */
  runFileActive: 'dartStudio.runFileActive',
  hasRuns: 'dartStudio.hasRuns',
  runSelected: 'dartStudio.runSelected',
  hasDesktops: 'dartStudio.hasDesktops',
  filtered: 'dartStudio.trajectoriesFiltered',
  machine: 'dartStudio.machine',
  /** A person has a desktop: a demonstration is being recorded, or a rollout was taken over. */
  controlOpen: 'dartStudio.controlOpen',
  /** Whether the window is attached to a runtime elsewhere, in place of this machine's own. */
  attached: 'dartStudio.attached',
} as const;

/** Keys of stored state: `workspaceState` for choices in the UI, `globalState` for "don't show again". */
export const stored = {
  selectedRun: 'selectedRun',
  extraRoots: 'extraRoots',
  filter: 'trajectoryFilter',
  sort: 'trajectorySort',
  tableFilters: 'trajectoryTableFilters',
  saidSurvives: 'saidTrainingSurvives',
  panelTitles: 'panelTitles',
  runFiles: 'runFiles',
  sessions: 'controlSessions',
  saidRecovered: 'saidRecovered',
} as const;
