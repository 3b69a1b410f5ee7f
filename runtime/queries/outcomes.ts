import { orUndefined } from '../concurrency/failures.js';
import type { RunReader } from '../data/store/runStore.js';

/**
 * Outcomes of training rollouts in the order in which they ended, as columns; those a person helped with are not the
 * policy's. There are millions in a long run: 25 bytes each.
 */
export interface Outcomes {
  readonly at: Readonly<Float64Array>;
  /** Places in `families`. */
  readonly family: Readonly<Uint32Array>;
  readonly families: readonly string[];
  /** 1 or 0. */
  readonly success: Readonly<Uint8Array>;
  /** Rewards, 0 to 1: a failure may have a part. */
  readonly score: Readonly<Float64Array>;
  /** How many steps each rollout took. */
  readonly steps: Readonly<Uint32Array>;
}

/** Rollouts that are read at once. */
const PAGE = 20_000;
/** The newest record of one that had been recorded before. */
const AGAIN = "(SELECT value FROM meta WHERE key = 'again')";
/** Rollouts that ended after a record of the journal, in its order. */
const NEWER = `SELECT recorded, ended_at, family, outcome = 'success', steps, reward, ${AGAIN} FROM rollouts
  WHERE recorded > ?1 AND provenance = 'rollout' AND origin IS NULL AND human = 0 AND outcome IN ('success', 'failure')
  UNION ALL SELECT o.recorded, o.ended_at, f.family, o.success, o.steps, o.reward, ${AGAIN} FROM past_outcomes o JOIN past_families f ON f.id = o.family
  WHERE o.recorded > ?1 ORDER BY 1 LIMIT ${PAGE}`;

class Columns {
  n = 0;
  at = new Float64Array(64);
  family = new Uint32Array(64);
  success = new Uint8Array(64);
  score = new Float64Array(64);
  steps = new Uint32Array(64);
  readonly families: string[] = [];
  readonly #places = new Map<string, number>();

  /** Room for so many more. */
  grow(more: number): void {
    const size = this.n + more;
    if (size <= this.at.length) return;
    const of = <A extends Float64Array | Uint32Array | Uint8Array>(old: A, fresh: A): A => {
      fresh.set(old);
      return fresh;
    };
    // A quarter more than is needed, so that growing costs little and little lies idle.
    const n = Math.ceil(1.25 * size);
    this.at = of(this.at, new Float64Array(n));
    this.family = of(this.family, new Uint32Array(n));
    this.success = of(this.success, new Uint8Array(n));
    this.score = of(this.score, new Float64Array(n));
    this.steps = of(this.steps, new Uint32Array(n));
  }
  move(from: number, to: number): void {
    for (const c of [this.at, this.family, this.success, this.score, this.steps]) c[to] = c[from]!;
  }
  place(family: string): number {
    let p = this.#places.get(family);
    if (p === undefined) this.#places.set(family, (p = this.families.push(family) - 1));
    return p;
  }
  view(): Outcomes {
    const { n, at, family, families, success, score, steps } = this;
    return {
      at: at.subarray(0, n),
      family: family.subarray(0, n),
      families,
      success: success.subarray(0, n),
      score: score.subarray(0, n),
      steps: steps.subarray(0, n),
    };
  }
}

/**
 * The known outcomes of one run: an open run is asked every second or two, and all but the newest rollouts were read
 * before.
 */
class Reading {
  readonly #run: RunReader;
  #seq = -1;
  #columns = new Columns();
  #last: Promise<unknown> = Promise.resolve();

  constructor(run: RunReader) {
    this.#run = run;
  }

  /** Reads what the reading before has not seen, one reading after another. */
  read(): Promise<Outcomes> {
    const reading = this.#last.then(() => this.#newer());
    this.#last = orUndefined(reading, 'who asked for it is told');
    return reading;
  }
  async #newer(): Promise<Outcomes> {
    for (;;) {
      const page = await this.#run.index.columns(NEWER, [this.#seq]),
        [seq = [], ...columns] = page,
        again = (columns.pop() ?? []).reduce<number>((a, x) => Math.max(a, Number(x ?? -1)), -1);
      if (this.#seq >= 0 && again > this.#seq) {
        // A rollout that was recorded again replaces itself.
        this.#seq = -1;
        this.#columns = new Columns();
        continue;
      }
      this.#add(seq.length, columns);
      this.#seq = Math.max(this.#seq, Number(seq.at(-1) ?? -1));
      if (seq.length < PAGE) return this.#columns.view();
    }
  }
  /** Merges rollouts in by when they ended; those that ended together stay in the order of their records. */
  #add(
    n: number,
    [at = [], family = [], success = [], steps = [], reward = []]: readonly (readonly unknown[])[],
  ): void {
    const c = this.#columns,
      order = Array.from({ length: n }, (_, i) => i).sort((a, b) => Number(at[a]) - Number(at[b]));
    c.grow(n);
    for (let i = c.n - 1, j = n - 1, to = c.n + n - 1; j >= 0; to--) {
      const row = order[j]!;
      if (i >= 0 && c.at[i]! > Number(at[row])) {
        c.move(i--, to);
        continue;
      }
      c.at[to] = Number(at[row]);
      c.family[to] = c.place(String(family[row]));
      c.success[to] = success[row] === 1 ? 1 : 0;
      c.score[to] = Number(reward[row] ?? success[row] ?? 0);
      c.steps[to] = Number(steps[row]);
      j--;
    }
    c.n += n;
  }
}

const readings = new WeakMap<RunReader, Reading>();
/** The outcomes, to be read at once: rollouts that are read later are merged into it. */
export function outcomes(run: RunReader): Promise<Outcomes> {
  const known = readings.get(run) ?? new Reading(run);
  readings.set(run, known);
  return known.read();
}
