/**
 * Keeps the index within its bound (runtime/data/README.md#index): the oldest goes first, a little with every batch of
 * records, and what goes is counted.
 */
import type { Rows } from './indexRows.js';
import { Thinner } from './indexThin.js';

/** Which of a run's trajectories lose their screens by a rule of `store.keep`. */
export type ScreenClass = 'retired' | 'failure' | 'success';
export interface IndexOptions {
  /** Bytes. */
  readonly bound?: number | undefined;
  /** The policy's newest successes stay: a run that is resumed imitates them (run/successes.ts). */
  readonly successes?: number | undefined;
  /** These stay until their screens are gone, as far as there is room: who removes screens finds them here. */
  readonly loseScreens?: readonly ScreenClass[] | undefined;
  /** The newest records of metrics, and batches, stay as they are. */
  readonly updates?: number | undefined;
}

/**
 * sql.js can hold 2 GB, and a snapshot needs as much again while it is written; a snapshot of more than 1 GiB is not
 * loaded (indexEngine.ts).
 */
export const INDEX_BOUND = 800e6;
/** Beyond the bound by this factor, rollouts go whose screens are still there. */
const HARD = 1.2;
/** Slices with one batch of records; rows looked at for one of them. */
const SLICES = 8,
  SPANS = 256,
  LANES = 16,
  ROLLOUTS = 128;
/** However full it is: the newest spans, and minutes. */
const HOUR_MS = 3_600_000,
  KEEP_SPANS_MS = HOUR_MS,
  KEEP_MINUTES_MS = 4 * HOUR_MS;
const SUCCESSES = 600;

const ENDED = "('trained', 'dropped')";
/**
 * Rollouts that nobody needs any more, and relabelled ones that have left the pool. ?1: when the oldest success to be
 * kept ended; ?2: classes that lose screens.
 */
const GOES = `(r.provenance = 'hindsight' OR r.provenance = 'rollout' AND r.state IN ('trained', 'retired') AND r.human = 0
    AND (r.outcome IS NOT 'success' OR r.ended_at < ?1))
  AND (r.bare = 1 OR r.started_at IS NULL OR instr(?2, CASE WHEN r.state = 'retired' OR r.outcome = 'error' THEN 'retired' WHEN r.provenance = 'hindsight' THEN 'failure' ELSE r.outcome END) = 0)
  AND NOT EXISTS(SELECT 1 FROM pool p WHERE p.rollout = r.id)
  AND NOT EXISTS(SELECT 1 FROM held h WHERE h.rollout = r.id)
  AND NOT EXISTS(SELECT 1 FROM groups g WHERE g.id = r.grp AND g.state NOT IN ${ENDED})
  AND NOT EXISTS(SELECT 1 FROM injections i CROSS JOIN groups g ON g.id = i.grp WHERE i.rollout = r.id AND g.state NOT IN ${ENDED})`;
const OLDEST = `SELECT r.id, r.grp, r.born, ${GOES} FROM (SELECT * FROM rollouts WHERE born > ?3 ORDER BY born LIMIT ${ROLLOUTS}) r`;
const THESE = 'IN (SELECT value FROM json_each(?1))';

export class Trimmer {
  readonly #rows: Rows;
  readonly #bound: number;
  readonly #lose: string;
  readonly #successes: number;
  readonly #updates: Thinner;
  /** Where the next look at rollouts begins, behind those that had to stay; -1: from the beginning. */
  #born = -1;
  /** Hour and lane whose minutes were added up last. */
  #folded: readonly [number, string] | undefined;

  constructor(rows: Rows, o: IndexOptions = {}) {
    this.#rows = rows;
    this.#bound = o.bound ?? INDEX_BOUND;
    this.#successes = o.successes ?? SUCCESSES;
    this.#updates = new Thinner(rows, o.updates);
    this.#lose = (o.loseScreens ?? []).join(' ');
  }

  /** Within the transaction of a batch. */
  trim(): void {
    for (let i = 0; i < SLICES && this.#bytes() > this.#bound; i++)
      if (
        !this.#spans(KEEP_SPANS_MS) &&
        !this.#minutes() &&
        !this.#updates.slice() &&
        !this.#rollouts() &&
        !this.#spans(0)
      )
        return;
  }

  /** Bytes in use: the file does not get smaller, but fills what became free. */
  #bytes(): number {
    const of = (what: string): number => this.#rows.number(`PRAGMA ${what}`);
    return (of('page_count') - of('freelist_count')) * of('page_size');
  }

  #spans(keepMs: number): boolean {
    const rows = this.#rows,
      newest = rows.number('SELECT MAX(t1) FROM spans'),
      [[last, end] = []] = rows.all(
        `SELECT MAX(seq), MAX(t1) FROM (SELECT seq, t1 FROM spans ORDER BY seq LIMIT ${SPANS})`,
      );
    if (typeof last !== 'number' || Number(end) >= newest - keepMs) return false;
    rows.run('DELETE FROM spans WHERE seq <= ?', [last]);
    // Before then, lanes are drawn by the minute.
    rows.run(
      "INSERT OR REPLACE INTO meta VALUES('spansFrom', MAX(?, COALESCE((SELECT value FROM meta WHERE key = 'spansFrom'), 0)))",
      [end],
    );
    return true;
  }

  /** Minutes of some lanes become an hour. */
  #minutes(): boolean {
    const rows = this.#rows,
      end = Math.floor((rows.number('SELECT MAX(t1) FROM lanes') - KEEP_MINUTES_MS) / HOUR_MS);
    if (!this.#folded) {
      const [[first] = []] = rows.all('SELECT MIN(minute) FROM span_minutes');
      if (typeof first !== 'number') return false;
      this.#folded = [Math.floor(first / 60), ''];
    }
    const [hour, after] = this.#folded;
    if (hour >= end) return false;
    const lanes = rows
        .all(`SELECT lane FROM lanes WHERE lane > ? ORDER BY lane LIMIT ${LANES}`, [after])
        .map(([l]) => l!),
      of = `lane ${THESE} AND minute >= ?2 AND minute < ?3`,
      range = [JSON.stringify(lanes), hour * 60, (hour + 1) * 60];
    rows.run(
      `INSERT INTO span_hours SELECT lane, ?2 / 60, what, kind, SUM(ms) FROM span_minutes WHERE ${of} GROUP BY lane, what
      ON CONFLICT DO UPDATE SET ms = ms + excluded.ms`,
      range,
    );
    rows.run(`DELETE FROM span_minutes WHERE ${of}`, range);
    this.#folded = lanes.length < LANES ? [hour + 1, ''] : [hour, String(lanes.at(-1))];
    return true;
  }

  #rollouts(): boolean {
    const rows = this.#rows,
      [[won] = [-Infinity]] = rows.all(
        `SELECT ended_at FROM rollouts WHERE outcome = 'success' AND provenance = 'rollout' ORDER BY ended_at DESC LIMIT 1 OFFSET ?`,
        [this.#successes - 1],
      ),
      lose = this.#bytes() > HARD * this.#bound ? '' : this.#lose,
      seen = rows.all(OLDEST, [won, lose, this.#born]),
      go = seen.filter(([, , , goes]) => goes === 1);
    // After the last rollout the next look begins anew with those that had to stay.
    this.#born = seen.length < ROLLOUTS ? -1 : Number(seen.at(-1)![2]);
    if (go.length > 0) {
      this.#count(JSON.stringify(go.map(([id]) => id)));
      this.#groups(JSON.stringify([...new Set(go.map(([, group]) => group))]));
    }
    return seen.length === ROLLOUTS || go.length > 0;
  }

  #count(ids: string): void {
    const run = (sql: string): void => this.#rows.run(sql, [ids]),
      // A relabelled one is its rollout again, and counts nowhere.
      own = `id ${THESE} AND provenance = 'rollout'`,
      // Branches are counted, and are no outcomes (totals.ts).
      judged = `${own} AND outcome IN ('success', 'failure') AND origin IS NULL`;
    run(`INSERT INTO past SELECT family, state, COALESCE(reason, ''), CASE WHEN origin IS NULL THEN COALESCE(outcome, '') ELSE '' END, COUNT(*), SUM(started_at IS NOT NULL OR outcome IS NOT NULL), SUM(steps), MAX(version_max), MIN(instruction)
      FROM rollouts WHERE ${own} GROUP BY 1, 2, 3, 4
      ON CONFLICT DO UPDATE SET n = n + excluded.n, begun = begun + excluded.begun, steps = steps + excluded.steps,
      version_max = NULLIF(MAX(COALESCE(version_max, -1), COALESCE(excluded.version_max, -1)), -1), instruction = MIN(COALESCE(instruction, excluded.instruction), COALESCE(excluded.instruction, instruction))`);
    run(`INSERT OR IGNORE INTO past_families(family) SELECT DISTINCT family FROM rollouts WHERE ${judged}`);
    run(`INSERT OR REPLACE INTO past_outcomes SELECT recorded, ended_at, (SELECT f.id FROM past_families f WHERE f.family = r.family), outcome = 'success', steps, reward
      FROM rollouts r WHERE ${judged} AND recorded IS NOT NULL`);
    for (const table of ['steps', 'tracks', 'gave_up']) run(`DELETE FROM ${table} WHERE rollout ${THESE}`);
    run(`DELETE FROM rollouts WHERE id ${THESE}`);
  }

  /** Removes groups of which no rollout is left. */
  #groups(ids: string): void {
    const gone = `id ${THESE} AND state IN ${ENDED} AND NOT EXISTS(SELECT 1 FROM rollouts r WHERE r.grp = g.id)`,
      run = (sql: string): void => this.#rows.run(sql, [ids]);
    run(`INSERT INTO past_groups SELECT family, COUNT(*), cap, MAX(opened_at), SUM(COALESCE(injected, 0)) FROM groups g WHERE ${gone} GROUP BY family
      ON CONFLICT DO UPDATE SET n = n + excluded.n, injected = injected + excluded.injected,
      cap = CASE WHEN excluded.opened_at >= opened_at THEN excluded.cap ELSE cap END, opened_at = MAX(opened_at, excluded.opened_at)`);
    run(`DELETE FROM groups AS g WHERE ${gone}`);
  }
}

/** The classes of screens that `store.keep` has a rule for. `config` is from run.json, which may be a stranger's. */
export function losingScreens(config: unknown): ScreenClass[] {
  const keep = (config as { readonly store?: { readonly keep?: Readonly<Record<string, unknown>> } } | undefined)?.store
      ?.keep,
    all: readonly ScreenClass[] = ['retired', 'failure', 'success'];
  return all.filter((c) => keep?.['gigabytes'] !== undefined || keep?.[`${c}Hours`] !== undefined);
}
