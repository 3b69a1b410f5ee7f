import { taskGroupOf, type TaskGroup } from './applicationNames.js';
import { meanScore } from './scores.js';
import type { TaskRow } from './types.js';

/** Tasks of one application, and what came of them. */
export interface ApplicationTasks {
  readonly app: TaskGroup;
  readonly rows: readonly TaskRow[];
  /** Episodes of the newest evaluations. */
  readonly episodes: number;
  readonly solved: number;
  /** Mean of their rewards, where there are any; so is `rolloutScore`. */
  readonly score: number | undefined;
  readonly rollouts: number;
  readonly successes: number;
  readonly rolloutScore: number | undefined;
}

/** Fewer tasks are found at a glance without groups. */
const MANY = 20;

// Ordered by name; then tasks of several applications, and those of none.
const rank = (app: TaskGroup): string => (app === undefined ? '2' : app === '' ? '1' : `0${app.toLowerCase()}`);

/** Many tasks by their application; empty where they are few, or of one. Pure. */
export function byApplication(tasks: readonly TaskRow[]): readonly ApplicationTasks[] {
  const groups = new Map<TaskGroup, TaskRow[]>();
  for (const row of tasks) {
    const app = taskGroupOf(row),
      known = groups.get(app);
    if (known) known.push(row);
    else groups.set(app, [row]);
  }
  if (tasks.length <= MANY || groups.size < 2) return [];
  return [...groups].sort(([a], [b]) => (rank(a) < rank(b) ? -1 : 1)).map(([app, rows]) => sumOf(app, rows));
}
/** The results of tasks, summed. Pure. */
export function sumOf(app: TaskGroup, rows: readonly TaskRow[]): ApplicationTasks {
  const sum = (of: (r: TaskRow) => number | undefined): number => rows.reduce((all, r) => all + (of(r) ?? 0), 0);
  return {
    app,
    rows,
    episodes: sum((r) => r.evaluation?.episodes),
    solved: sum((r) => r.evaluation?.successes),
    score: meanScore(rows.flatMap((r) => r.evaluation ?? [])),
    rollouts: sum((r) => r.rollouts),
    successes: sum((r) => r.successes),
    rolloutScore: meanScore(rows.map((r) => ({ ...r, episodes: r.rollouts }))),
  };
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** OSWorld's tasks are called by a UUID, which says nothing to a person: their words do. Pure. */
export function nameOfTask({ family, title, apps = [] }: Pick<TaskRow, 'family' | 'title' | 'apps'>): string {
  if (!title || !UUID.test(family)) return family;
  const before = `${apps.join(', ')}: `;
  return title.startsWith(before) ? title.slice(before.length) : title;
}
