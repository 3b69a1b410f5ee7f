/** Rows as the runtime sends them, for tests of what is shown. */
import type {
  ControlState,
  DesktopRow,
  EvalPoint,
  PoolEntryRow,
  PoolFamily,
  PoolView,
  RunStatus,
  RunSummary,
  TaskRow,
  TrajectoryRow,
} from '../../../runtime/protocol/types.js';

export const evalPoint = (o: Partial<EvalPoint> = {}): EvalPoint => ({
  label: 'final',
  at: 5,
  version: 7,
  episodes: 64,
  successes: 48,
  errors: 0,
  low: 0.63,
  high: 0.84,
  perFamily: {},
  ...o,
});
export const status = (o: Partial<RunStatus> = {}): RunStatus => ({
  state: 'running',
  phase: 'training',
  elapsedMs: 60_000,
  version: 4,
  rollouts: 120,
  running: 6,
  waitingGroups: 2,
  errors: 0,
  rolloutsPerHour: 118.6,
  stepsPerMinute: 30,
  trainedActionsPerMinute: 20,
  success: 0.634,
  curve: [],
  desktopUtilisation: 0.9,
  replicaUtilisation: 0.5,
  trainerUtilisation: 0.4,
  replicaVersions: [4],
  ...o,
});
export const run = (o: Partial<RunSummary> = {}): RunSummary => ({
  run: '/w/runs/a',
  id: 'a',
  name: 'quickstart',
  createdAt: 1000,
  state: 'running',
  rollouts: 120,
  version: 4,
  evals: [0.1, 0.5, 0.9],
  ...o,
});
export const task = (o: Partial<TaskRow> = {}): TaskRow => ({
  family: 'desk/form-one',
  rollouts: 40,
  successes: 30,
  spark: [0, 0.5, 1],
  ...o,
});
export const desktop = (o: Partial<DesktopRow> = {}): DesktopRow => ({
  desktop: 'local-1',
  run: '/w/runs/a',
  provider: 'local',
  state: 'idle',
  since: 0,
  resets: 3,
  replaced: 0,
  ...o,
});
export const trajectory = (o: Partial<TrajectoryRow> = {}): TrajectoryRow => ({
  rollout: 'r-1',
  task: 'desk/form-one#5',
  family: 'desk/form-one',
  instruction: 'Type "x" into the left field',
  outcome: 'success',
  provenance: 'rollout',
  steps: 3,
  cap: 8,
  ...o,
});
export const control = (o: Partial<ControlState> = {}): ControlState => ({
  session: 's1',
  purpose: 'record',
  mode: 'human',
  desktop: 'hand-1',
  screen: { width: 960, height: 540 },
  run: '/w/runs/a',
  family: 'desk/form-one',
  task: 'desk/form-one#5',
  seed: 5,
  instruction: 'Type "x"',
  steps: [],
  ...o,
});
export const poolEntry = (o: Partial<PoolEntryRow> = {}): PoolEntryRow => ({
  rollout: 'h-1',
  task: 'desk/form-one#5',
  steps: 4,
  source: 'human',
  addedAt: 1000,
  uses: 0,
  enabled: true,
  usable: true,
  ...o,
});
export const poolFamily = (o: Partial<PoolFamily> = {}): PoolFamily => ({
  family: 'desk/form-one',
  entries: [poolEntry()],
  successes: 1,
  shortest: 4,
  newest: 1000,
  uses: 0,
  rollouts: 40,
  neverSolved: false,
  ...o,
});
export const poolView = (families: readonly PoolFamily[] = [poolFamily()]): PoolView => {
  const never = families.filter((f) => f.neverSolved);
  return {
    families,
    entries: families.reduce((n, f) => n + f.entries.length, 0),
    injections: 0,
    neverSolved: never.length,
    covered: never.filter((f) => f.entries.some((e) => e.enabled)).length,
    active: false,
  };
};
