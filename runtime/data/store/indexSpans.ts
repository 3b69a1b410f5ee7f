/** Work of lanes in the tables of indexSchema.ts: records of spans, when each lane was there, and sums by the minute. */
import type { EventOf } from '../events.js';
import type { Rows } from './indexRows.js';

type Spans = EventOf<'spans'>;

const MINUTE_MS = 60_000;

export const endOfSpans = (e: Spans): number => e.t0 + e.start.reduce((m, s, i) => Math.max(m, s + e.ms[i]!), 0);

/** Of a record that has passed `checkRecord` (recordChecks.ts). */
export function addSpans(rows: Rows, e: Spans & { readonly seq: number }): void {
  const t1 = endOfSpans(e);
  rows.run('INSERT OR IGNORE INTO spans VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)', [
    e.seq,
    e.lane,
    e.kind,
    e.t0,
    t1,
    e.what,
    bytes(e.start),
    bytes(e.ms),
    e.of,
    JSON.stringify(e.rollouts),
    e.version,
  ]);
  if (rows.modified === 0) return;
  rows.run(
    'INSERT INTO lanes VALUES(?, ?, ?, ?) ON CONFLICT DO UPDATE SET t0 = MIN(t0, excluded.t0), t1 = MAX(t1, excluded.t1)',
    [e.lane, e.kind, e.t0, t1],
  );
  for (const [key, ms] of minutesOf(e))
    rows.run('INSERT INTO span_minutes VALUES(?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ms = ms + excluded.ms', [
      e.lane,
      Math.floor(key / KINDS),
      key % KINDS,
      e.kind,
      ms,
    ]);
}

/** Most activities. */
const KINDS = 256;
/** ms by minute and activity. A span over several minutes counts in each of them. */
function minutesOf(e: Spans): Map<number, number> {
  const sums = new Map<number, number>();
  for (const [i, what] of e.what.entries()) {
    let from = e.t0 + e.start[i]!;
    const end = from + e.ms[i]!;
    for (let minute = Math.floor(from / MINUTE_MS); from < end; minute++) {
      const to = Math.min(end, (minute + 1) * MINUTE_MS),
        key = minute * KINDS + what;
      if (to <= from) break;
      sums.set(key, (sums.get(key) ?? 0) + to - from);
      from = to;
    }
  }
  return sums;
}

const bytes = (a: Float32Array): Uint8Array => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
