import type { GroupId, PolicyVersion, RolloutId, Trajectory } from '../domain/index.js';
import { headOf, type JournalEvent } from './events.js';

/** What is known of rollouts that have not ended. */
export class RunningRollouts {
  /** Oldest version that may act in each. */
  readonly began = new Map<RolloutId, PolicyVersion>();
  /** The rollouts that a person holds; true when training no longer waits for them. */
  readonly held = new Map<RolloutId, boolean>();
  readonly #written = new Map<RolloutId, Set<number>>();

  /** A step is in the journal. */
  wrote(rollout: RolloutId, index: number): void {
    const written = this.#written.get(rollout) ?? new Set<number>();
    this.#written.set(rollout, written.add(index));
  }
  /**
   * Forgets the steps so far; a person who holds the rollout goes on holding it. Returns the steps that are in the
   * journal.
   */
  restart(rollout: RolloutId): ReadonlySet<number> {
    const written = this.#written.get(rollout) ?? new Set<number>();
    this.#written.delete(rollout);
    this.began.delete(rollout);
    return written;
  }
  /** As `restart`, for a rollout that has ended. */
  end(rollout: RolloutId): ReadonlySet<number> {
    this.held.delete(rollout);
    return this.restart(rollout);
  }
  hold(rollout: RolloutId, how: 'held' | 'long' | 'free'): void {
    if (how === 'free') this.held.delete(rollout);
    else this.held.set(rollout, how === 'long');
  }
}

/**
 * The events that record a trajectory that has ended: its steps, without those already `written`, and its head. `late`:
 * its group, which has continued without it.
 */
export const recordedEvents = (t: Trajectory, written: ReadonlySet<number>, late?: GroupId): JournalEvent[] => [
  ...t.steps
    .filter((s) => !written.has(s.index))
    .map((step): JournalEvent => ({ type: 'rollout.step', rollout: t.id, step })),
  { type: 'trajectory.recorded', head: headOf(t) },
  ...(late === undefined
    ? []
    : [{ type: 'rollout.retired' as const, rollout: t.id, group: late, reason: 'stale' as const }]),
];
