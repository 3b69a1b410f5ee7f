import { ServiceError, type ControlState, type Trajectory } from '../domain/index.js';
import type { PoolAnswer, PoolWish } from '../data/types.js';

/** A person's decision about a recording that was judged. */
export interface KeepRequest {
  /** `auto`: joins the pool when it is a success. `override`: joins it for `reason`. */
  readonly pool: 'auto' | 'never' | 'override';
  readonly reason?: string | undefined;
  readonly note?: string | undefined;
  readonly tags?: readonly string[] | undefined;
}
/** Into a run; each opens and lets go of what it needs. */
export interface KeepingDeps {
  readonly keep: (t: Trajectory, pool: PoolWish) => Promise<PoolAnswer>;
  readonly pool: (rollout: string, wish: PoolWish) => Promise<PoolAnswer>;
  readonly unpool: (rollout: string, reason: string) => Promise<void>;
  /** Note and tags, as annotations of what was kept. */
  readonly annotate: (
    rollout: string,
    a: { readonly note?: string | undefined; readonly tags?: readonly string[] | undefined },
  ) => Promise<void>;
}

/** Keeps one trajectory, once: what is said of it later moves it into or out of the pool. */
export class Keeping {
  readonly #d: KeepingDeps;
  kept: ControlState['kept'];

  constructor(d: KeepingDeps) {
    this.#d = d;
  }

  /** Throws `params.invalid` where a reason is missing. */
  static check(p: KeepRequest): void {
    if (p.pool === 'override' && !p.reason?.trim())
      throw new ServiceError(
        'params.invalid',
        'Adding a trajectory that is not a verified success to the pool requires a reason.',
        'Enter a reason.',
      );
  }

  async keep(t: Trajectory, p: KeepRequest): Promise<void> {
    const { annotate, pool, unpool } = this.#d,
      wish: PoolWish = p.pool === 'override' ? { override: p.reason! } : p.pool,
      { kept } = this;
    if (!kept) await this.record(t, wish === 'auto' && t.outcome.kind !== 'success' ? 'never' : wish);
    else if (p.pool === 'never') {
      if (kept.pooled) {
        const why = 'left out by the person who recorded it';
        await unpool(kept.rollout, why);
        this.kept = { rollout: kept.rollout, pooled: false, why };
      }
    } else if (!kept.pooled) this.kept = { rollout: kept.rollout, ...(await pool(kept.rollout, wish)) };
    if (p.note !== undefined || p.tags !== undefined) await annotate(t.id, p);
  }

  async record(t: Trajectory, pool: PoolWish): Promise<void> {
    const answer = await this.#d.keep(t, pool);
    this.kept = {
      rollout: t.id,
      ...answer,
      ...(!answer.pooled && answer.why === undefined && t.outcome.kind === 'failure'
        ? { why: 'the verifier did not find a success' }
        : {}),
    };
  }

  /** Keeps the trajectory in the run, out of the pool and tagged. */
  async discard(): Promise<void> {
    const { kept } = this;
    if (!kept) return;
    if (kept.pooled) await this.#d.unpool(kept.rollout, 'discarded');
    await this.#d.annotate(kept.rollout, { tags: ['discarded'] });
    this.kept = { rollout: kept.rollout, pooled: false, why: 'discarded' };
  }
}
