import { message, type FamilyId } from '../../domain/index.js';
import type { DynamicLengthConfig } from '../config.js';
import { groupSeries } from './groupSeries.js';
import type { Mechanism } from './mechanism.js';

/**
 * Lengths (turns) of a family's successes, demonstrations included: a family with a demonstration starts from its
 * length.
 */
export class SuccessLengths {
  readonly #window: number;
  readonly #lengths = new Map<FamilyId, number[]>();
  constructor(window: number) {
    this.#window = window;
  }

  add(family: FamilyId, steps: number): void {
    const xs = this.#lengths.get(family) ?? [];
    // Without a window only the longest success counts.
    if (this.#window <= 0) this.#lengths.set(family, [Math.max(steps, xs[0] ?? 0)]);
    else {
      xs.push(steps);
      if (xs.length > this.#window) xs.shift();
      this.#lengths.set(family, xs);
    }
  }
  longest(family: FamilyId): number | undefined {
    const xs = this.#lengths.get(family);
    return xs ? Math.max(...xs) : undefined;
  }
}

/**
 * Step cap in turns (runtime/data/README.md#dynamic-trajectory-length): clamp(longest success + slack, floor, global);
 * the global cap before a first success, and for exploring rollouts. `u` in [0, 1) decides whether the rollout
 * explores. The task's own limit may lower `global`.
 */
export function stepCap(longest: number | undefined, u: number, c: DynamicLengthConfig, taskLimit?: number): number {
  const global = Math.max(1, Math.min(c.global, taskLimit ?? c.global));
  if (!c.enabled || longest === undefined || u < c.exploreShare) return global;
  return Math.min(global, Math.max(c.floor, longest + c.slack));
}

export const dynamicLength: Mechanism<'dynamicLength'> = {
  plan: (plan, family, options) => ({ ...plan, cap: stepCap(family.longest, 1, options, family.limit) }),
  charts: [
    {
      name: 'cap',
      unit: 'count',
      words: {
        title: message('Max steps'),
        says: message(
          'Dynamic trajectory length: the longest success of a task so far plus a little slack. Longer rollouts of it would almost surely fail.',
        ),
        label: message('mean over tasks, with range'),
        empty: message('No group was opened.'),
        summary: message('Max steps: mean {0} steps at first, {1} now, between {2} and {3} over the tasks.'),
      },
      read: (run) => groupSeries(run, 'cap'),
    },
  ],
};
