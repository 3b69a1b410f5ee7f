import type { RunConfig } from '../config/index.js';
import type { Hindsight } from '../rollout/types.js';
import { mayHold } from '../tasks/mayHold.js';
import type { Tasks } from '../tasks/open.js';

/**
 * Time limit of all verdicts on one failure, for a desktop that hangs: a verdict usually takes some tens of ms.
 * Rollouts on other desktops continue meanwhile.
 */
const WITHIN_MS = 3000;

/** Finds the other tasks that a run's failures may have done (`curation.hindsight`); undefined where that is off. */
export function hindsightOf(config: RunConfig, { source }: Pick<Tasks, 'source'>): Hindsight | undefined {
  if (!config.curation.hindsight.enabled || !source.siblings) return undefined;
  return {
    siblings: (task, report) => {
      const all = source.siblings?.(task) ?? [];
      return { all: all.length, likely: all.filter((s) => mayHold(task, report, s)) };
    },
    // What a deterministic run learns must not depend on the clock.
    withinMs: config.run.deterministic ? Infinity : WITHIN_MS,
  };
}
