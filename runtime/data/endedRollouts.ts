import { RETIRE_REASONS, id, type RetireReason, type RolloutId } from '../domain/index.js';

/** How a rollout ended. */
export type Ended = { readonly at: 'trained' } | { readonly at: 'retired'; readonly reason: RetireReason };

/** Each ending is stored as its index here plus one; 0 means none. */
const ENDINGS: readonly Ended[] = [
  { at: 'trained' },
  ...RETIRE_REASONS.map((reason): Ended => ({ at: 'retired', reason })),
];
const byteOf = (e: Ended): number => (e.at === 'trained' ? 1 : 2 + RETIRE_REASONS.indexOf(e.reason));

/** The `n`th rollout that a run plans, from 1: `r000042`. */
export const numberedRollout = (n: number): RolloutId => id<RolloutId>(`r${String(n).padStart(6, '0')}`);
/** The number of a planned rollout; undefined for any other name. */
function numberOf(rollout: RolloutId): number | undefined {
  const n = /^r\d{6,12}$/.test(rollout) ? Number(rollout.slice(1)) : undefined;
  return n !== undefined && numberedRollout(n) === rollout ? n : undefined;
}

/**
 * How rollouts ended, in one byte each: a run of a week has millions, numbered in the order in which they are planned.
 * A rollout with another kind of name, or a number far beyond the others (in a journal from elsewhere), is stored by
 * name.
 */
export class EndedRollouts {
  #bytes = new Uint8Array(1 << 10);
  readonly #named = new Map<RolloutId, Ended>();

  get(rollout: RolloutId): Ended | undefined {
    const byte = this.#bytes[numberOf(rollout) ?? -1];
    return byte ? ENDINGS[byte - 1] : this.#named.get(rollout);
  }

  set(rollout: RolloutId, e: Ended): void {
    const n = numberOf(rollout);
    if (n === undefined || n >= 2 * this.#bytes.length) {
      this.#named.set(rollout, e);
      return;
    }
    if (n >= this.#bytes.length) {
      const longer = new Uint8Array(2 * this.#bytes.length);
      longer.set(this.#bytes);
      this.#bytes = longer;
    }
    this.#bytes[n] = byteOf(e);
    this.#named.delete(rollout);
  }

  delete(rollout: RolloutId): void {
    const n = numberOf(rollout);
    if (n !== undefined && n < this.#bytes.length) this.#bytes[n] = 0;
    this.#named.delete(rollout);
  }

  /** Rollouts that ended as `at`; walks over all. */
  *all(at: Ended['at']): Generator<RolloutId> {
    for (const [n, byte] of this.#bytes.entries())
      if (byte > 0 && ENDINGS[byte - 1]!.at === at) yield numberedRollout(n);
    for (const [rollout, e] of this.#named) if (e.at === at) yield rollout;
  }
}
