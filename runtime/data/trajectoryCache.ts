import { type BranchPoint, type RolloutId, type Trajectory, internalError } from '../domain/index.js';
import type { DataState } from './state.js';
import type { Before } from './types.js';

/** Trajectories that may still be needed: those of open, waiting and claimed groups, and of the pool. */
export class TrajectoryCache {
  readonly #state: DataState;
  readonly all: Map<RolloutId, Trajectory>;

  constructor(state: DataState, all: Map<RolloutId, Trajectory>) {
    this.#state = state;
    this.all = all;
  }
  set(t: Trajectory): void {
    this.all.set(t.id, t);
  }
  /** Throws `internal` when it is not in memory. */
  readonly get = (rollout: RolloutId): Trajectory => {
    const t = this.all.get(rollout);
    if (!t) throw internalError(`Trajectory ${rollout} is needed and not in memory.`);
    return t;
  };
  /** A trajectory up to and including one of its steps; undefined when it is not in memory. */
  upTo({ of, step }: BranchPoint): Before | undefined {
    const t = this.all.get(of);
    return t && t.steps.length > step ? { instruction: t.instruction, steps: t.steps.slice(0, step + 1) } : undefined;
  }
  /** Drops a trajectory unless it is still needed. */
  forget(rollout: RolloutId): void {
    const { ledger, pool } = this.#state,
      at = ledger.state(rollout)?.at;
    if (pool.get(rollout) || at === 'recorded' || at === 'grouped' || at === 'claimed') return;
    for (const g of this.#groups()) if (g.members.some((m) => m.rollout === rollout)) return;
    this.all.delete(rollout);
  }
  *#groups(): Generator<{ readonly members: readonly { readonly rollout: RolloutId }[] }> {
    yield* this.#state.ready.values();
    for (const b of this.#state.claimed.values()) yield* b.groups;
  }
}
