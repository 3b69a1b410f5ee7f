/**
 * Every command: the one place that names it. `npm run generate` writes from it what package.json contributes as
 * commands and to the palette, and their titles in package.nls.json; which other menus have it, package.json says
 * itself. What a command does is in extension/commands: the compiler asks for it.
 */
interface Command {
  /** Never changes: people's key bindings name it. */
  readonly id: `dartStudio.${string}`;
  readonly title: string;
  /** The title in menus. */
  readonly shortTitle?: string;
  /** A codicon; on rows and in title bars only the icon is seen. */
  readonly icon?: string;
  /** When the palette offers it. */
  readonly palette: string;
}

const always = 'true';
const never = 'false';
const trusted = 'isWorkspaceTrusted';
const onDisk = `${trusted} && !virtualWorkspace`;
const withRuns = `${trusted} && dartStudio.hasRuns`;
const withRun = `${trusted} && dartStudio.runSelected`;
const idle = `${onDisk} && !dartStudio.runActive`;
const withDesktops = `${trusted} && (dartStudio.hasDesktops || !dartStudio.daemon)`;
const steering = `${trusted} && (dartStudio.hasDesktops && dartStudio.runActive || !dartStudio.daemon)`;
const inTrajectory = 'activeWebviewPanelId == dartStudio.inspector || activeCustomEditorId == dartStudio.trajectory';
const inTrajectories = `${inTrajectory} || activeWebviewPanelId == dartStudio.compare`;
const withTrajectory = `${trusted} && (dartStudio.runSelected || activeWebviewPanelId == dartStudio.inspector)`;

export const commandTable = {
  startTraining: { id: 'dartStudio.startTraining', title: 'Start Training…', icon: 'play', palette: idle },
  startTrainingWithFile: {
    id: 'dartStudio.startTrainingWithFile',
    title: 'Start Training with This File',
    icon: 'play',
    palette: `${onDisk} && (dartStudio.runFileActive || resourceFilename =~ /(^|\\.)dart-run\\.json$/)`,
  },
  stopTraining: {
    id: 'dartStudio.stopTraining',
    title: 'Stop Training',
    icon: 'debug-stop',
    palette: `${trusted} && (dartStudio.runActive || !dartStudio.daemon)`,
  },
  pause: {
    id: 'dartStudio.pause',
    title: 'Pause',
    shortTitle: 'Pause Training',
    icon: 'debug-pause',
    palette: `${trusted} && (dartStudio.runActive && !dartStudio.runPaused && !dartStudio.runStopping || !dartStudio.daemon)`,
  },
  resume: {
    id: 'dartStudio.resume',
    title: 'Resume',
    shortTitle: 'Resume Training',
    icon: 'debug-continue',
    palette: `${trusted} && (dartStudio.runPaused || !dartStudio.daemon)`,
  },
  resumeRun: { id: 'dartStudio.resumeRun', title: 'Resume Run…', icon: 'debug-rerun', palette: idle },
  newRunFile: { id: 'dartStudio.newRunFile', title: 'New Run File', icon: 'new-file', palette: onDisk },
  evaluate: { id: 'dartStudio.evaluateCheckpoint', title: 'Evaluate Checkpoint…', icon: 'beaker', palette: idle },
  openDashboard: { id: 'dartStudio.openDashboard', title: 'Open Dashboard', icon: 'graph-line', palette: trusted },
  openTable: { id: 'dartStudio.openTrajectoryTable', title: 'Open Trajectory Table', icon: 'table', palette: trusted },
  openTrajectory: { id: 'dartStudio.openTrajectory', title: 'Open Trajectory…', icon: 'open-preview', palette: always },
  openTrajectoryBeside: {
    id: 'dartStudio.openTrajectoryBeside',
    title: 'Open Trajectory to the Side…',
    icon: 'split-horizontal',
    palette: withRun,
  },
  compareRuns: { id: 'dartStudio.compareRuns', title: 'Compare Runs…', icon: 'diff-multiple', palette: withRuns },
  openRunFile: { id: 'dartStudio.openRunFile', title: 'Open Run File', icon: 'go-to-file', palette: withRuns },
  duplicateRun: { id: 'dartStudio.duplicateRun', title: 'Duplicate with Changes…', icon: 'copy', palette: withRuns },
  compare: { id: 'dartStudio.compareTrajectories', title: 'Compare Trajectories', icon: 'diff', palette: trusted },
  watchDesktop: { id: 'dartStudio.watchDesktop', title: 'Watch Desktop', icon: 'eye', palette: withDesktops },
  restartDesktop: {
    id: 'dartStudio.restartDesktop',
    title: 'Restart Desktop…',
    icon: 'debug-restart',
    palette: withDesktops,
  },
  openRunFolder: { id: 'dartStudio.openRunFolder', title: 'Open Run Folder…', icon: 'folder-opened', palette: trusted },
  forgetRunFolder: { id: 'dartStudio.forgetRunFolder', title: 'Remove from List', palette: never },
  startRuntime: {
    id: 'dartStudio.startRuntime',
    title: 'Start Runtime',
    icon: 'plug',
    palette: `${trusted} && dartStudio.daemon != ready`,
  },
  stopRuntime: {
    id: 'dartStudio.stopRuntime',
    title: 'Stop Runtime',
    palette: `${trusted} && dartStudio.daemon != stopped`,
  },
  attachRuntime: { id: 'dartStudio.attachRuntime', title: 'Attach to Runtime…', icon: 'remote', palette: trusted },
  detachRuntime: {
    id: 'dartStudio.detachRuntime',
    title: 'Detach from Runtime',
    icon: 'debug-disconnect',
    palette: `${trusted} && dartStudio.attached`,
  },
  restartRuntime: { id: 'dartStudio.restartRuntime', title: 'Restart Runtime', icon: 'refresh', palette: trusted },
  buildDesktop: { id: 'dartStudio.buildDesktopImage', title: 'Build Desktop Image', icon: 'tools', palette: onDisk },
  checkMachine: { id: 'dartStudio.checkMachine', title: 'Check This Machine', icon: 'checklist', palette: trusted },
  showLog: { id: 'dartStudio.showLog', title: 'Show Log', icon: 'output', palette: always },
  showRuntimeLog: { id: 'dartStudio.showRuntimeLog', title: 'Show Runtime Log', icon: 'output', palette: always },
  collectDiagnostics: { id: 'dartStudio.collectDiagnostics', title: 'Collect Diagnostics', palette: always },
  openWalkthrough: { id: 'dartStudio.openWalkthrough', title: 'Open Walkthrough', palette: always },
  openSample: { id: 'dartStudio.openSampleRun', title: 'Open Sample Run', icon: 'mortar-board', palette: always },
  openSettings: { id: 'dartStudio.openSettings', title: 'Open Settings', icon: 'gear', palette: always },
  deleteAllData: { id: 'dartStudio.deleteAllData', title: 'Delete All Data…', palette: trusted },
  refresh: { id: 'dartStudio.refresh', title: 'Refresh', icon: 'refresh', palette: trusted },
  selectRun: { id: 'dartStudio.selectRun', title: 'Select Run', palette: withRuns },
  filterTrajectories: {
    id: 'dartStudio.filterTrajectories',
    title: 'Filter Trajectories…',
    icon: 'filter',
    palette: withRun,
  },
  clearTrajectoryFilter: {
    id: 'dartStudio.clearTrajectoryFilter',
    title: 'Clear Trajectory Filter',
    icon: 'clear-all',
    palette: `${trusted} && dartStudio.trajectoriesFiltered`,
  },
  sortTrajectories: {
    id: 'dartStudio.sortTrajectories',
    title: 'Sort Trajectories',
    icon: 'list-ordered',
    palette: withRun,
  },
  showTaskTrajectories: {
    id: 'dartStudio.showTaskTrajectories',
    title: 'Show Trajectories of Task',
    icon: 'list-filter',
    palette: withRun,
  },
  loadMore: { id: 'dartStudio.loadMoreTrajectories', title: 'Load More Trajectories', palette: never },
  openAsTrajectory: {
    id: 'dartStudio.openAsTrajectory',
    title: 'Open as Trajectory',
    icon: 'open-preview',
    palette: 'resourceFilename =~ /\\.traj\\.jsonl$/',
  },
  openAsText: { id: 'dartStudio.openAsText', title: 'Open as Text', icon: 'go-to-file', palette: inTrajectory },
  exportTrajectory: {
    id: 'dartStudio.exportTrajectory',
    title: 'Export Trajectory…',
    icon: 'export',
    palette: withRun,
  },
  exportPage: { id: 'dartStudio.exportPage', title: 'Export as HTML…', icon: 'share', palette: trusted },
  exportTable: { id: 'dartStudio.exportTable', title: 'Export Run Data…', icon: 'table', palette: trusted },
  copyLink: { id: 'dartStudio.copyLink', title: 'Copy Link', icon: 'link', palette: 'dartStudio.hasRuns' },
  addToQueue: { id: 'dartStudio.addToQueue', title: 'Add to Queue…', icon: 'add', palette: onDisk },
  removeFromQueue: { id: 'dartStudio.removeFromQueue', title: 'Remove from Queue', icon: 'close', palette: onDisk },
  moveUpInQueue: { id: 'dartStudio.moveUpInQueue', title: 'Move Up in Queue', icon: 'arrow-up', palette: onDisk },
  moveDownInQueue: {
    id: 'dartStudio.moveDownInQueue',
    title: 'Move Down in Queue',
    icon: 'arrow-down',
    palette: onDisk,
  },
  pauseQueue: { id: 'dartStudio.pauseQueue', title: 'Turn Queue On or Off', icon: 'debug-pause', palette: onDisk },
  renameRun: { id: 'dartStudio.renameRun', title: 'Rename Run…', palette: withRuns },
  editRunNotes: { id: 'dartStudio.editRunNotes', title: 'Edit Notes of Run…', palette: withRuns },
  tagRun: { id: 'dartStudio.tagRun', title: 'Edit Tags of Run…', palette: withRuns },
  groupRun: { id: 'dartStudio.groupRun', title: 'Move Run to Group…', palette: withRuns },
  pinRun: { id: 'dartStudio.pinRun', title: 'Pin or Unpin Run', icon: 'pin', palette: withRuns },
  archiveRun: { id: 'dartStudio.archiveRun', title: 'Archive or Restore Run', palette: withRuns },
  deleteRun: { id: 'dartStudio.deleteRun', title: 'Delete Run…', icon: 'trash', palette: withRuns },
  findRun: { id: 'dartStudio.findRun', title: 'Find Run…', icon: 'search', palette: withRuns },
  showArchived: {
    id: 'dartStudio.showArchivedRuns',
    title: 'Show or Hide Archived Runs',
    icon: 'archive',
    palette: withRuns,
  },
  copyRunPath: { id: 'dartStudio.copyRunPath', title: 'Copy Path of Run', palette: withRuns },
  revealRun: { id: 'dartStudio.revealRunFolder', title: 'Show Run Folder', palette: withRuns },
  copyStep: { id: 'dartStudio.copyStep', title: 'Copy Step as JSON', icon: 'copy', palette: inTrajectories },
  saveScreenshot: {
    id: 'dartStudio.saveScreenshot',
    title: 'Save Screenshot…',
    icon: 'device-camera',
    palette: inTrajectories,
  },
  nextEntropyStep: {
    id: 'dartStudio.nextHighEntropyStep',
    title: 'Next High-Entropy Step',
    icon: 'arrow-down',
    palette: inTrajectory,
  },
  previousEntropyStep: {
    id: 'dartStudio.previousHighEntropyStep',
    title: 'Previous High-Entropy Step',
    icon: 'arrow-up',
    palette: inTrajectory,
  },
  recordDemonstration: {
    id: 'dartStudio.recordDemonstration',
    title: 'Record Demonstration…',
    icon: 'record',
    palette: onDisk,
  },
  tryPolicy: { id: 'dartStudio.tryPolicy', title: 'Try Policy…', icon: 'hubot', palette: onDisk },
  showSession: {
    id: 'dartStudio.showSession',
    title: 'Show Controlled Desktop',
    icon: 'person',
    palette: `${trusted} && dartStudio.controlOpen`,
  },
  takeOver: { id: 'dartStudio.takeOver', title: 'Take Over', icon: 'person', palette: steering },
  stepThrough: {
    id: 'dartStudio.stepThroughRollout',
    title: 'Step Through Rollout',
    icon: 'debug-step-over',
    palette: steering,
  },
  annotate: {
    id: 'dartStudio.annotateTrajectory',
    title: 'Annotate Trajectory',
    icon: 'edit',
    palette: withTrajectory,
  },
  replay: {
    id: 'dartStudio.replayAndVerify',
    title: 'Replay and Verify',
    icon: 'verified',
    palette: `${onDisk} && (dartStudio.runSelected || activeWebviewPanelId == dartStudio.inspector)`,
  },
  reviewQueue: {
    id: 'dartStudio.reviewTrajectories',
    title: 'Review Trajectories…',
    icon: 'check-all',
    palette: withRuns,
  },
  importTrajectories: {
    id: 'dartStudio.importTrajectories',
    title: 'Import Trajectories…',
    icon: 'cloud-download',
    palette: onDisk,
  },
  exportTrajectories: {
    id: 'dartStudio.exportTrajectories',
    title: 'Export Trajectories…',
    icon: 'cloud-upload',
    palette: `${onDisk} && dartStudio.hasRuns`,
  },
  openPool: { id: 'dartStudio.openPool', title: 'Show Experience Pool', icon: 'library', palette: trusted },
  addToPool: { id: 'dartStudio.addToPool', title: 'Add to Experience Pool', icon: 'add', palette: withTrajectory },
  removeFromPool: {
    id: 'dartStudio.removeFromPool',
    title: 'Remove from Experience Pool…',
    icon: 'trash',
    palette: withTrajectory,
  },
  enableInPool: { id: 'dartStudio.enableInPool', title: 'Turn On in Experience Pool', icon: 'eye', palette: never },
  disableInPool: {
    id: 'dartStudio.disableInPool',
    title: 'Turn Off in Experience Pool',
    icon: 'eye-closed',
    palette: never,
  },
} as const satisfies Readonly<Record<string, Command>>;
