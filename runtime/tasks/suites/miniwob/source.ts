import { StudioError, id, type FamilyId, type TaskId } from '../../../domain/index.js';
import type { Task, TaskSource } from '../../types.js';
import type { Pages } from './pages.js';

/** A task is a page and a seed: `miniwob/click-button#7`. What it asks for is known once it has begun on a desktop. */
export class MiniwobSource implements TaskSource {
  readonly families: TaskSource['families'];
  readonly #said = new Map<TaskId, string>();

  constructor(pages: Pages) {
    this.families = pages.names.map((name) => ({
      id: id<FamilyId>(`miniwob/${name}`),
      split: 'train' as const,
      apps: ['chrome'],
      steps: 10,
      infeasible: false,
    }));
  }

  task(family: FamilyId, seed: number): Task {
    const task = id<TaskId>(`${family}#${seed}`);
    if (!this.families.some((f) => f.id === family)) throw unknown(task);
    const page = family.slice('miniwob/'.length);
    return {
      id: task,
      family,
      instruction: this.#said.get(task) ?? `(${page}: its page says what to do)`,
      config: [],
      evaluator: { func: 'miniwob', options: { page, seed } },
      relatedApps: ['chrome'],
      infeasible: false,
    };
  }

  byId(task: TaskId): Task {
    const [family, seed] = task.split('#');
    if (family === undefined || !/^\d{1,15}$/.test(seed ?? '')) throw unknown(task);
    return this.task(id<FamilyId>(family), Number(seed));
  }

  /** Remembers the newest of them, for lists that name a rollout before it has a desktop. */
  said(task: Task, instruction: string): void {
    this.#said.delete(task.id);
    this.#said.set(task.id, instruction);
    if (this.#said.size > REMEMBERED) this.#said.delete(this.#said.keys().next().value!);
  }
}
const REMEMBERED = 10_000;

const unknown = (task: string): StudioError =>
  new StudioError(
    'task.invalid',
    `There is no task ${task} in this copy of MiniWoB++.`,
    'Choose one that `dart-studio tasks check DIR` lists.',
  );
