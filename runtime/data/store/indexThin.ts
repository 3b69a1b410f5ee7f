/**
 * Keeps what updates leave in a full index within a bound (runtime/data/README.md#index): curves keep their peaks,
 * batches are added up, and the records of metrics are found in the journal.
 */
import type { Rows } from './indexRows.js';

/** Records of metrics, and batches, that stay as they are. A pass begins when there are twice as many. */
const WHOLE = 1024;
/**
 * Each bucket of older values keeps its lowest and its highest; there are between half as many buckets and this many.
 */
const BUCKETS = 4;
/** Rows of one slice. */
const SLICE = 2048;
/** Updates that are added up in one row of past_updates. */
const ADDED_UP = 16;
/** Metrics that are kept value by value: a resumed run reads what lessons, pools and stand-ins left (run/resume.ts). */
const EXACT = /^(reading|warm-start|pool-from|stand-in)\./;

/** Which of a metric's values stay, ascending by `seq`: the first, and of each bucket the lowest and the highest. Pure. */
export function peaks(seq: readonly number[], value: readonly number[], width: number): Set<number> {
  const stay = new Set<number>(seq.slice(0, 1));
  for (let from = 0, to = 0; from < seq.length; from = to) {
    const bucket = Math.floor(seq[from]! / width);
    let low = from,
      high = from;
    for (; to < seq.length && Math.floor(seq[to]! / width) === bucket; to++) {
      if (value[to]! < value[low]!) low = to;
      if (value[to]! > value[high]!) high = to;
    }
    stay.add(seq[low]!).add(seq[high]!);
  }
  return stay;
}

export class Thinner {
  readonly #rows: Rows;
  readonly #whole: number;
  #pass: Generator<void, void> | undefined;
  #until = 0;

  constructor(rows: Rows, whole = WHOLE) {
    this.#rows = rows;
    this.#whole = Math.max(1, whole);
  }

  /** Does a little; false when there is nothing to do. Within a transaction; what one lost is done by the next pass. */
  slice(): boolean {
    this.#pass ??= this.#begin();
    if (!this.#pass) return false;
    if (this.#pass.next().done) this.#pass = undefined;
    return true;
  }

  #begin(): Generator<void, void> | undefined {
    if (this.#newest('metrics', 2 * this.#whole) === undefined) return undefined;
    // Buckets are twice as wide whenever the run is twice as long, so that each holds whole ones of before.
    const end = this.#newest('metrics', this.#whole)!,
      width = 2 ** Math.max(0, Math.ceil(Math.log2(end / (BUCKETS * this.#whole)))),
      until = Math.floor(end / width) * width;
    if (until === this.#until) return undefined;
    this.#until = until;
    return this.#thin(until, width);
  }

  /** Sequence number of the n-th newest record of a type. */
  #newest(type: string, n: number): number | undefined {
    const [[seq] = []] = this.#rows.all('SELECT seq FROM events WHERE type = ? ORDER BY seq DESC LIMIT 1 OFFSET ?', [
      type,
      n - 1,
    ]);
    return typeof seq === 'number' ? seq : undefined;
  }

  *#thin(until: number, width: number): Generator<void, void> {
    const after = (name: string): unknown =>
      this.#rows.all('SELECT MIN(name) FROM metrics WHERE name > ?', [name])[0]?.[0];
    for (let name = after(''); typeof name === 'string'; name = after(name)) {
      if (EXACT.test(name)) continue;
      this.#curve(name, until, width);
      yield;
    }
    for (const type of ['metrics', 'batch.claimed', 'batch.trained'])
      for (const last = this.#newest(type, this.#whole) ?? 0; this.#records(type, last);) yield;
    while (this.#batches()) yield;
  }

  #curve(name: string, until: number, width: number): void {
    const found = this.#rows.all('SELECT seq, value FROM metrics WHERE name = ? AND seq < ? ORDER BY seq', [
        name,
        until,
      ]),
      seq = found.map(([s]) => Number(s)),
      stay = peaks(
        seq,
        found.map(([, v]) => Number(v)),
        width,
      );
    this.#rows.run('DELETE FROM metrics WHERE name = ?1 AND seq IN (SELECT value FROM json_each(?2))', [
      name,
      JSON.stringify(seq.filter((s) => !stay.has(s))),
    ]);
  }

  /** Metrics keep the places of their records: exports read them. */
  #records(type: string, until: number): boolean {
    const found = this.#rows.all('SELECT seq, position FROM events WHERE type = ? AND seq < ? ORDER BY seq LIMIT ?', [
        type,
        until,
        SLICE,
      ]),
      last = found.at(-1)?.[0];
    if (last === undefined) return false;
    if (type === 'metrics')
      this.#rows.run('INSERT OR REPLACE INTO past_metrics VALUES(?, ?)', [
        last,
        new Uint8Array(Float64Array.from(found, ([, p]) => Number(p)).buffer),
      ]);
    this.#rows.run('DELETE FROM events WHERE type = ? AND seq <= ?', [type, last]);
    return true;
  }

  #batches(): boolean {
    const rows = this.#rows,
      trained = 'FROM batches WHERE trained_version',
      [[newest] = []] = rows.all(`SELECT trained_version ${trained} IS NOT NULL ORDER BY 1 DESC LIMIT 1 OFFSET ?`, [
        this.#whole - 1,
      ]),
      oldest = rows.number(`SELECT MIN(trained_version) ${trained} IS NOT NULL`);
    if (typeof newest !== 'number' || oldest >= newest) return false;
    const until = [Math.min(newest, oldest + SLICE)];
    rows.run(
      `INSERT INTO past_updates SELECT trained_version / ${ADDED_UP}, MAX(trained_at), COUNT(*), SUM(steps), SUM(COALESCE(tokens, 0)), SUM(mute) ${trained} < ? GROUP BY 1
      ON CONFLICT DO UPDATE SET at = MAX(at, excluded.at), n = n + excluded.n, steps = steps + excluded.steps, tokens = tokens + excluded.tokens, mute = mute + excluded.mute`,
      until,
    );
    rows.run(`DELETE ${trained} < ?`, until);
    rows.run(
      "DELETE FROM batches WHERE state = 'released' AND claimed_at < (SELECT MIN(claimed_at) FROM batches WHERE state = 'trained')",
    );
    return true;
  }
}
