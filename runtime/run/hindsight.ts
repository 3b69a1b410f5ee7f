import type { RunConfig } from '../config/index.js';
import type { Hindsight } from '../rollout/types.js';
import { mayHold } from '../tasks/mayHold.js';
import type { Tasks } from '../tasks/open.js';

/**
 * A verdict takes some tens of ms, and few are asked for: this is for a desktop whose answers hang. Rollouts of other
 * desktops go on meanwhile.
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
    // The lessons of a deterministic run must not depend on the clock.
    withinMs: config.run.deterministic ? Infinity : WITHIN_MS,
  };
}
