import { StudioError, type PolicyVersion, type RolloutId, type Trajectory } from '../domain/index.js';
import type { PoolConfig } from './config.js';
import { headOf, type JournalEvent, type StepExtra, type StoredEvent } from './events.js';
import { ExperiencePool, poolContent, poolEntryOf } from './experiencePool.js';
import { applyToPool, pooling } from './pooling.js';
import { RunStore, type RunMeta, type RunStoreOptions } from './store/runStore.js';
import type { PoolAnswer, PoolWish } from './types.js';

export interface AppendOptions extends RunStoreOptions {
  /** Creates the run when the folder has none. */
  readonly create?: Omit<RunMeta, 'format'>;
  /** The pool's rules, from run.json. */
  readonly pool: (meta: RunMeta) => PoolConfig;
  /** Called with every event already there, including steps; without it steps are not parsed. */
  readonly each?: (e: StoredEvent) => void;
}

/**
 * Adds trajectories and pool changes to an inactive run or a collection, under the folder's lock and with the pool from
 * the journal. Nothing else of the run changes. Rejects with `run.busy` when another process writes it.
 */
export class RunAppender {
  readonly store: RunStore;
  readonly pool: ExperiencePool;
  readonly version: PolicyVersion;

  private constructor(store: RunStore, pool: ExperiencePool, version: PolicyVersion) {
    this.store = store;
    this.pool = pool;
    this.version = version;
  }

  static async open(dir: string, o: AppendOptions): Promise<RunAppender> {
    // The pool's options are in run.json, which may not exist yet: the pool's few events wait for them.
    const replay: StoredEvent[] = [];
    let version = 0,
      seen = 0;
    const store = await RunStore.open(
      dir,
      o,
      (e) => {
        seen++;
        o.each?.(e);
        if (
          e.type === 'pool.added' ||
          e.type === 'pool.removed' ||
          e.type === 'pool.switched' ||
          (e.type === 'group.formed' && e.members.some((m) => m.injected))
        )
          replay.push(e);
        else if (e.type === 'batch.trained' || e.type === 'checkpoint') version = Math.max(version, e.version);
      },
      o.each ? noise : [...noise, 'rollout.step', 'trajectory.started', 'trajectory.recorded'],
    );
    try {
      const pool = new ExperiencePool(o.pool(store.meta));
      for (const e of replay) applyToPool(pool, e);
      if (seen === 0 && o.create)
        await store.append({ type: 'run.opened', run: store.meta.id, resumed: false, pid: process.pid });
      return new RunAppender(store, pool, version);
    } catch (e) {
      await store.close();
      throw e;
    }
  }

  /**
   * Resolves when it is on disk; a crash leaves either all of it or nothing that counts. `by`: a person decided about
   * the pool. `extras`: for people, beside each step.
   */
  async record(
    t: Trajectory,
    wish: PoolWish,
    by?: 'person',
    extras: readonly (StepExtra | undefined)[] = [],
  ): Promise<PoolAnswer> {
    await this.#identify(t);
    const { events, answer } = this.#pooling(t, wish, by);
    // Appended in one turn of the event loop, so that the journal writes the head together with its steps and after
    // them.
    await this.#append([
      ...t.steps.map((step, i): JournalEvent => ({
        type: 'rollout.step',
        rollout: t.id,
        step,
        ...(extras[i] ? { extra: extras[i] } : {}),
      })),
      { type: 'trajectory.recorded', head: headOf(t) },
      ...events,
    ]);
    return answer;
  }
  async addToPool(t: Trajectory, wish: PoolWish): Promise<PoolAnswer> {
    await this.#identify(t);
    const { events, answer } = this.#pooling(t, wish, 'person');
    await this.#append(events);
    return answer;
  }
  async switchPool(rollouts: readonly RolloutId[], enabled: boolean): Promise<void> {
    const entries = rollouts.filter((r) => this.pool.get(r) && this.pool.get(r)!.enabled !== enabled);
    for (const r of entries) this.pool.switch(r, enabled);
    if (entries.length > 0) await this.#append([{ type: 'pool.switched', entries, enabled }]);
  }
  async removeFromPool(rollouts: readonly RolloutId[], reason: string): Promise<void> {
    const mine = rollouts.filter((r) => this.pool.get(r));
    for (const r of mine) this.pool.remove(r, 'person');
    await this.#append(mine.map((entry) => ({ type: 'pool.removed', entry, reason, by: 'person' })));
  }
  close(): Promise<void> {
    return this.store.close();
  }

  /**
   * Sets the content hash of older entries that may do the same as `t`, from their trajectories. Unreadable ones match
   * nothing.
   */
  async #identify(t: Trajectory): Promise<void> {
    if (t.outcome.kind === 'error') return;
    for (const e of this.pool.unidentified(poolEntryOf(t, ''))) {
      const there = await this.store.readTrajectory(e).catch((x: unknown) => {
        if (x instanceof StudioError && x.kind === 'store.damaged') return undefined;
        throw x;
      });
      if (there) this.pool.identify(e, poolContent(there));
    }
  }
  #pooling(t: Trajectory, wish: PoolWish, by?: 'person'): ReturnType<typeof pooling> {
    const p = pooling(this.pool, t, wish, this.version, by);
    for (const e of p.events) applyToPool(this.pool, e);
    return p;
  }
  async #append(events: readonly JournalEvent[]): Promise<void> {
    await Promise.all(events.map((e) => this.store.append(e)));
  }
}

/** Event types that make up most of a journal and do not matter here. */
const noise: readonly JournalEvent['type'][] = ['spans', 'metrics', 'eval', 'log'];
