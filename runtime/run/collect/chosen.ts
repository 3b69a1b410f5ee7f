import { checkProbeSet, familiesIn, type EvaluationSplit, type ProbeSet, type Tasks } from '../../tasks/open.js';
import type { Attempted } from './attempts.js';

/** The tasks to collect: so many training seeds of each family of a suite, or every file of a folder. */
export const trainingTasks =
  (seeds: number) =>
  ({ families, taskOf }: Tasks): Attempted[] =>
    Array.from({ length: seeds }, (_, i) =>
      families.flatMap(({ id: family, seeds: s }) => {
        const seed = 'count' in s ? (i < s.count ? s.from + i : undefined) : s[i];
        return seed === undefined ? [] : [{ family, seed, task: taskOf(family, seed) }];
      }),
    ).flat();

/**
 * The tasks to measure: `each` tasks of every family of a suite that has something held out this way, or every file of
 * a folder, whatever `each` is; the first `skip` tasks of each family are left out.
 */
export const measuredTasks =
  (split: EvaluationSplit, each: number, set?: ProbeSet, skip = 0) =>
  (tasks: Tasks): Attempted[] => {
    checkProbeSet(tasks, split, set);
    const chosen = new Map<string, Attempted>();
    for (const { family, seed } of tasks.probesOf(split, familiesIn(tasks, split, set) * each, set, skip)) {
      const task = tasks.source.task(family, seed),
        id = tasks.taskOf(family, seed);
      chosen.set(id, {
        family,
        seed,
        task: id,
        domain: task.domain ?? family.split('/')[0]!,
        infeasible: task.infeasible,
        ...(task.maxSteps === undefined ? {} : { cap: task.maxSteps }),
      });
    }
    return [...chosen.values()];
  };
