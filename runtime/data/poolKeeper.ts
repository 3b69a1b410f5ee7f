import type { RolloutId, Trajectory } from '../domain/index.js';
import type { Commits } from './commits.js';
import { overridden } from './curation/curateGroup.js';
import { pooling } from './pooling.js';
import type { DataState } from './state.js';
import type { TrajectoryCache } from './trajectoryCache.js';
import type { PoolAnswer, PoolWish } from './types.js';

/** Changes the experience pool and journals each change; keeps the trajectories of its entries in memory. */
export class PoolKeeper {
  readonly #state: DataState;
  readonly #commits: Commits;
  readonly #trajectories: TrajectoryCache;

  constructor(state: DataState, commits: Commits, trajectories: TrajectoryCache) {
    this.#state = state;
    this.#commits = commits;
    this.#trajectories = trajectories;
  }

  /** Applies what a finished trajectory changes at once; the promise resolves when it is on disk. */
  add(t: Trajectory, wish: PoolWish, by?: 'person'): [PoolAnswer, Promise<void>] {
    const { events, answer } = pooling(this.#state.pool, t, wish, this.#state.version, by);
    if (events.some((e) => e.type === 'pool.added')) this.#trajectories.set(t);
    const saved = this.#commits.commit(events);
    for (const e of events) if (e.type === 'pool.removed') this.#trajectories.forget(e.entry);
    return [answer, saved];
  }
  /**
   * Why a relabelled success would not be imitated. It has no other use, so it is then not recorded. Undefined for
   * everything else.
   */
  refuses(t: Trajectory): PoolAnswer | undefined {
    if (t.provenance.kind !== 'hindsight') return undefined;
    // When a rollout is repeated after a crash, its success may already be in the pool.
    if (this.#state.pool.get(t.id)) return { pooled: false, why: 'it is there' };
    const { answer } = pooling(this.#state.pool, t, 'auto', this.#state.version);
    return answer.pooled ? undefined : answer;
  }
  /** Unknown ids are skipped. */
  async switch(rollouts: readonly RolloutId[], enabled: boolean): Promise<void> {
    const { pool } = this.#state,
      entries = rollouts.filter((r) => pool.get(r) && pool.get(r)!.enabled !== enabled);
    if (entries.length > 0) await this.#commits.commit([{ type: 'pool.switched', entries, enabled }]);
  }
  async remove(rollouts: readonly RolloutId[], reason: string): Promise<void> {
    const mine = rollouts.filter((r) => this.#state.pool.get(r)),
      saved = this.#commits.commit(mine.map((entry) => ({ type: 'pool.removed', entry, reason, by: 'person' })));
    for (const r of mine) this.#trajectories.forget(r);
    await saved;
  }
  /** Enabled entries that people added (demonstrations, imports, overrides), as successes. */
  external(): Trajectory[] {
    return this.#state.pool.entries().flatMap((e) => {
      const ours = e.provenance === 'rollout' && e.override === undefined,
        t = e.enabled && !ours ? this.#trajectories.all.get(e.id) : undefined;
      return t ? [overridden(t)] : [];
    });
  }
}
