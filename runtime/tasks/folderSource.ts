import type { FamilyId, TaskId } from '../domain/index.js';
import { StudioError } from '../domain/index.js';
import type { CheckOptions } from './check.js';
import { readFolder } from './check.js';
import type { CheckRow, Task, TaskSource } from './types.js';

export interface FolderSourceOptions extends CheckOptions {
  /** Ids kept for evaluation only; default none. */
  readonly heldout?: (id: TaskId) => boolean;
  /** Step cap of a task that names none (OSWorld's runner: 15). */
  readonly steps?: number;
}
/** Rows of what was left out: unsupported and invalid files. */
export interface FolderSource extends TaskSource {
  readonly tasks: readonly Task[];
  readonly skipped: readonly CheckRow[];
}

/**
 * The runnable tasks of a folder, each its own family; the seed is ignored. Rejects with `task.unsupported` when none
 * can run.
 */
export async function openFolder(dir: string, o: FolderSourceOptions): Promise<FolderSource> {
  const read = await readFolder(dir, o);
  const tasks = read.flatMap((t) => (t.task && t.row.status === 'runnable' ? [t.task] : []));
  const skipped = read.filter((t) => t.row.status !== 'runnable').map((t) => t.row);
  if (tasks.length === 0) {
    throw new StudioError(
      'task.unsupported',
      `No task under ${dir} can run: ${read.length === 0 ? 'there are no task files' : `${skipped.length} are left out`}.`,
      'Run `dart-studio tasks check` on the folder to see what they need.',
    );
  }
  const all = new Map<string, Task>(tasks.map((t) => [t.id, t]));
  const find = (id: string): Task => {
    const t = all.get(id);
    if (!t)
      throw new StudioError(
        'task.invalid',
        `There is no runnable task ${id} under ${dir}.`,
        'Choose one that `dart-studio tasks check` calls runnable.',
      );
    return t;
  };
  return {
    families: tasks.map((t) => ({
      id: t.family,
      split: o.heldout?.(t.id) ? ('heldout' as const) : ('train' as const),
      apps: t.relatedApps,
      steps: t.maxSteps ?? o.steps ?? 15,
      infeasible: t.infeasible,
    })),
    task: (family: FamilyId) => find(family),
    byId: (taskId: TaskId) => find(taskId),
    tasks,
    skipped,
  };
}
