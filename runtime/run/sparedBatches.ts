import { StudioError, toRunError, type LearnStep, type RolloutId } from '../domain/index.js';
import type { ClaimedBatch } from '../data/claims.js';
import { unreadableTrajectory, untrainable } from './backends/learner.js';
import type { RunParts } from './parts.js';

/** So many batches in a row that cannot be trained, whoever is left out of them: the fault is not theirs. */
export const MOST_UNTRAINABLE = 3;

/**
 * Batches that could not be trained because of a trajectory: damaged on disk, or not taken by the trainer. It costs the
 * groups that have it, and never the run, unless every batch has one.
 */
export class SparedBatches {
  readonly #r: Pick<RunParts, 'successes' | 'data' | 'log'>;
  /** Batches in a row that the trainer did not take. */
  #inARow = 0;
  /** Trajectories that the trainer has refused, of which a claim gives up one at a time. */
  readonly #found = new Set<RolloutId>();

  constructor(r: Pick<RunParts, 'successes' | 'data' | 'log'>) {
    this.#r = r;
  }

  /** Throws for steps of a trajectory that the trainer has refused already: it is not asked again. */
  check(steps: readonly Pick<LearnStep, 'trajectory'>[]): void {
    const again = steps.find((s) => this.#found.has(s.trajectory.id));
    if (!again) return;
    const { id } = again.trajectory;
    throw new StudioError(
      'trainer.invalid',
      `Rollout ${id} cannot be trained, as a batch before has shown.`,
      'The log says why.',
      { details: { untrainable: [id] } },
    );
  }
  /** A batch was trained. */
  trained(): void {
    this.#inARow = 0;
  }

  /** Releases a batch without the groups of the trajectory that is to blame; false where none is, or too often. */
  async spare(batch: Pick<ClaimedBatch, 'id'>, error: unknown): Promise<boolean> {
    const damaged = unreadableTrajectory(error),
      rollout = damaged ?? this.#refused(untrainable(error).rollouts);
    if (rollout === undefined) return false;
    const { successes, data, log } = this.#r;
    successes.forget(rollout);
    const lost = await data.lose(batch.id, rollout, damaged === undefined ? 'refused' : 'corrupt'),
      what = lost.length > 0 ? `Its group ${lost.join(', ')} is retired as lost.` : 'It is no longer imitated.';
    log.note(`${toRunError(error).message} ${what}`);
    return true;
  }
  #refused(rollouts: readonly RolloutId[]): RolloutId | undefined {
    const [first] = rollouts;
    if (first === undefined || this.#found.has(first)) return first;
    if (++this.#inARow === MOST_UNTRAINABLE) return undefined;
    for (const r of rollouts) this.#found.add(r);
    return first;
  }
}
