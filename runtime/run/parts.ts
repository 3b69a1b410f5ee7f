import type { RunConfig } from '../config/index.js';
import type { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';
import type { Clock } from '../rollout/clock.js';
import type { DesktopRegistry } from '../rollout/desktopRegistry.js';
import type { Scheduler } from '../rollout/scheduler.js';
import type { RunBudget } from './budget.js';
import type { Engine } from './engine.js';
import type { Tasks } from '../tasks/open.js';
import type { RunMonitor } from './monitor.js';
import type { Progress } from './resume.js';
import type { RunLog } from './runLog.js';
import type { RunState } from './runState.js';
import type { Successes } from './successes.js';

/** The parts that the phases of one run work with; TrainingRun creates and closes them. */
export interface RunParts {
  readonly config: RunConfig;
  /** The run folder. */
  readonly dir: string;
  readonly clock: Clock;
  readonly tasks: Tasks;
  readonly data: DataManager;
  readonly engine: Engine;
  readonly scheduler: Scheduler;
  readonly desktops: DesktopRegistry;
  readonly successes: Successes;
  readonly monitor: RunMonitor;
  readonly budget: RunBudget;
  /** How far earlier parts of the run got. */
  readonly progress: Progress;
  readonly state: RunState;
  readonly log: RunLog;
  /** Fires when the current phase must end: the budget is spent, a person stops the run, or something failed. */
  readonly ending: AbortSignal;
}

export const instructionOf =
  (tasks: Tasks) =>
  (o: RolloutOrder): string =>
    tasks.source.task(o.family, o.seed).instruction;
