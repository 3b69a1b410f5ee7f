import type { RunConfig } from '../config/index.js';
import type { DataManager } from '../data/dataManager.js';
import { systemClock } from '../rollout/clock.js';
import type { RunBudget } from './budget.js';
import type { Reporter } from './reporter.js';
import type { RunLog } from './runLog.js';
import type { RunState } from './runState.js';
import { watchBoard } from './tensorBoardWatch.js';
import { watchRun } from './watchRun.js';

/** Starts the observers of a run: TensorBoard's files, and alerts. Returns a function that ends both. */
export function observeRun(
  data: DataManager,
  r: {
    readonly config: RunConfig;
    readonly dir: string;
    readonly run: string;
    readonly reporter: Reporter;
    readonly budget: RunBudget;
    readonly state: RunState;
    readonly log: RunLog;
    /** Ends the current phase; the last evaluation follows. */
    readonly ending: AbortController;
  },
): () => Promise<void> {
  const endBoard = watchBoard(data, r),
    endAlerts = watchRun({
      config: r.config,
      dir: r.dir,
      data,
      now: () => systemClock.now(),
      status: () => ({ training: r.state.phase === 'training' && !r.budget.paused, version: r.state.version }),
      alert: (a) => {
        r.log.note(a.message);
        r.reporter.alert?.(a);
      },
      end: (a) => {
        r.log.note(`The run ends early, as set in its run file: watch.stop names ${a.kind}.`);
        r.ending.abort();
      },
    });
  return async () => {
    endAlerts();
    await endBoard();
  };
}
