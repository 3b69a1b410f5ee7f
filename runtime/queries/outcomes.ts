import { orUndefined } from '../domain/index.js';
import type { RunReader } from '../data/store/runStore.js';

/**
 * Outcomes of training rollouts in the order in which they ended, as columns; those a person helped with are not the
 * policy's.
 */
export interface Outcomes {
  readonly at: readonly number[];
  readonly family: readonly string[];
  readonly success: readonly boolean[];
  /** Rewards, 0 to 1: a failure may have a part. */
  readonly score: readonly number[];
  /** How many steps each rollout took. */
  readonly steps: readonly number[];
}

interface Ended {
  readonly seq: number;
  readonly id: string;
  readonly at: number;
  readonly family: string;
  readonly success: boolean;
  readonly score: number;
  readonly steps: number;
}
/** Those that ended after a record of the journal, as it was written. */
const NEWER = `SELECT recorded, id, ended_at, family, outcome = 'success', steps, reward FROM rollouts
  WHERE recorded > ?1 AND provenance = 'rollout' AND human = 0 AND outcome IN ('success', 'failure')
  UNION ALL SELECT o.recorded, '#' || o.recorded, o.ended_at, f.family, o.success, o.steps, o.reward FROM past_outcomes o JOIN past_families f ON f.id = o.family
  WHERE o.recorded > ?1 ORDER BY 1`;

/** What is known of one run: an open run is asked every second or two, and all but the newest rollouts were read before. */
class Reading {
  readonly #run: RunReader;
  #seq = -1;
  #ended: Ended[] = [];
  #known = new Set<string>();
  #view: Outcomes = { at: [], family: [], success: [], score: [], steps: [] };
  #last: Promise<unknown> = Promise.resolve();

  constructor(run: RunReader) {
    this.#run = run;
  }

  /** One reading after the other: each asks only for what the one before has not seen. */
  read(): Promise<Outcomes> {
    const reading = this.#last.then(() => this.#newer());
    this.#last = orUndefined(reading, 'who asked for it is told');
    return reading;
  }
  async #newer(): Promise<Outcomes> {
    const rows = await this.#rows();
    if (rows.some((r) => this.#known.has(r.id))) {
      // One that was recorded again replaces itself.
      this.#forget();
      return this.#newer();
    }
    if (rows.length === 0) return this.#view;
    const last = this.#ended.at(-1);
    this.#ended.push(...rows);
    for (const r of rows) this.#known.add(r.id);
    if (last && rows.some((r) => before(r, last) < 0)) this.#ended.sort(before);
    this.#view = columnsOf(this.#ended);
    return this.#view;
  }
  async #rows(): Promise<Ended[]> {
    const [seq = [], id = [], at = [], family = [], success = [], steps = [], reward = []] =
        await this.#run.index.columns(NEWER, [this.#seq]),
      rows = id.map((of, i): Ended => ({
        seq: Number(seq[i]),
        id: String(of),
        at: Number(at[i]),
        family: String(family[i]),
        success: success[i] === 1,
        score: Number(reward[i] ?? success[i] ?? 0),
        steps: Number(steps[i]),
      }));
    this.#seq = Math.max(this.#seq, Number(seq.at(-1) ?? -1));
    return [...new Map(rows.map((r) => [r.id, r])).values()].sort(before);
  }
  #forget(): void {
    this.#seq = -1;
    this.#ended = [];
    this.#known = new Set();
  }
}
const before = (a: Ended, b: Ended): number => a.at - b.at || a.seq - b.seq;
const columnsOf = (ended: readonly Ended[]): Outcomes => ({
  at: ended.map((r) => r.at),
  family: ended.map((r) => r.family),
  success: ended.map((r) => r.success),
  score: ended.map((r) => r.score),
  steps: ended.map((r) => r.steps),
});

const readings = new WeakMap<RunReader, Reading>();
export function outcomes(run: RunReader): Promise<Outcomes> {
  const known = readings.get(run) ?? new Reading(run);
  readings.set(run, known);
  return known.read();
}
