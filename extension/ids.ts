/** Every id that the manifest and the code share. test/unit/manifest checks both ways. */

/** Commands of the palette and of menus. */
export const commands = {
  startTraining: 'dartStudio.startTraining',
  startTrainingWithFile: 'dartStudio.startTrainingWithFile',
  stopTraining: 'dartStudio.stopTraining',
  pause: 'dartStudio.pause',
  resume: 'dartStudio.resume',
  resumeRun: 'dartStudio.resumeRun',
  newRunFile: 'dartStudio.newRunFile',
  evaluate: 'dartStudio.evaluateCheckpoint',
  openDashboard: 'dartStudio.openDashboard',
  compareRuns: 'dartStudio.compareRuns',
  openRunFile: 'dartStudio.openRunFile',
  duplicateRun: 'dartStudio.duplicateRun',
  openTrajectory: 'dartStudio.openTrajectory',
  openTrajectoryBeside: 'dartStudio.openTrajectoryBeside',
  compare: 'dartStudio.compareTrajectories',
  openTable: 'dartStudio.openTrajectoryTable',
  watchDesktop: 'dartStudio.watchDesktop',
  restartDesktop: 'dartStudio.restartDesktop',
  openRunFolder: 'dartStudio.openRunFolder',
  forgetRunFolder: 'dartStudio.forgetRunFolder',
  startRuntime: 'dartStudio.startRuntime',
  stopRuntime: 'dartStudio.stopRuntime',
  restartRuntime: 'dartStudio.restartRuntime',
  buildDesktop: 'dartStudio.buildDesktopImage',
  checkMachine: 'dartStudio.checkMachine',
  showLog: 'dartStudio.showLog',
  showRuntimeLog: 'dartStudio.showRuntimeLog',
  collectDiagnostics: 'dartStudio.collectDiagnostics',
  openWalkthrough: 'dartStudio.openWalkthrough',
  openSample: 'dartStudio.openSampleRun',
  openSettings: 'dartStudio.openSettings',
  deleteAllData: 'dartStudio.deleteAllData',
  refresh: 'dartStudio.refresh',
  selectRun: 'dartStudio.selectRun',
  filterTrajectories: 'dartStudio.filterTrajectories',
  clearTrajectoryFilter: 'dartStudio.clearTrajectoryFilter',
  showTaskTrajectories: 'dartStudio.showTaskTrajectories',
  sortTrajectories: 'dartStudio.sortTrajectories',
  loadMore: 'dartStudio.loadMoreTrajectories',
  openAsTrajectory: 'dartStudio.openAsTrajectory',
  openAsText: 'dartStudio.openAsText',
  exportTrajectory: 'dartStudio.exportTrajectory',
  copyRunPath: 'dartStudio.copyRunPath',
  revealRun: 'dartStudio.revealRunFolder',
  copyStep: 'dartStudio.copyStep',
  saveScreenshot: 'dartStudio.saveScreenshot',
  nextEntropyStep: 'dartStudio.nextHighEntropyStep',
  previousEntropyStep: 'dartStudio.previousHighEntropyStep',
  recordDemonstration: 'dartStudio.recordDemonstration',
  showSession: 'dartStudio.showSession',
  takeOver: 'dartStudio.takeOver',
  stepThrough: 'dartStudio.stepThroughRollout',
  annotate: 'dartStudio.annotateTrajectory',
  replay: 'dartStudio.replayAndVerify',
  reviewQueue: 'dartStudio.reviewTrajectories',
  importTrajectories: 'dartStudio.importTrajectories',
  exportTrajectories: 'dartStudio.exportTrajectories',
  openPool: 'dartStudio.openPool',
  addToPool: 'dartStudio.addToPool',
  removeFromPool: 'dartStudio.removeFromPool',
  enableInPool: 'dartStudio.enableInPool',
  disableInPool: 'dartStudio.disableInPool',
} as const;
export type CommandId = (typeof commands)[keyof typeof commands];

export const views = {
  container: 'dartStudio',
  runs: 'dartStudio.runs',
  tasks: 'dartStudio.tasks',
  desktops: 'dartStudio.desktops',
  trajectories: 'dartStudio.trajectories',
  pool: 'dartStudio.pool',
} as const;

/** Webview panel types; `activeWebviewPanelId` and `webviewId` in `when` clauses. */
export const panels = {
  dashboard: 'dartStudio.dashboard',
  compareRuns: 'dartStudio.compareRuns',
  inspector: 'dartStudio.inspector',
  compare: 'dartStudio.compare',
  live: 'dartStudio.live',
  table: 'dartStudio.table',
} as const;
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
} as const;

/** Keys of stored state: `workspaceState` for choices in the UI, `globalState` for "don't show again". */
export const stored = {
  selectedRun: 'selectedRun',
  extraRoots: 'extraRoots',
  filter: 'trajectoryFilter',
  sort: 'trajectorySort',
  tableFilters: 'trajectoryTableFilters',
  saidSurvives: 'saidTrainingSurvives',
  muteFinished: 'muteRunFinished',
  panelTitles: 'panelTitles',
  runFiles: 'runFiles',
  sessions: 'controlSessions',
  saidRecovered: 'saidRecovered',
} as const;
