import { jsonOrNothing, isObject } from '../foreign/json.js';
import { activities } from '../domain/index.js';
import { nextTurn } from '../concurrency/turns.js';
import { type LaneSpans } from '../data/events.js';
import type { RunReader } from '../data/store/runStore.js';
import type { Activity, Lane, LaneKind, Lanes } from '../protocol/types.js';
import { Heap } from './heap.js';

/** Window when none is asked for: the newest half hour. */
const DEFAULT_WINDOW_MS = 30 * 60_000;
/** From this much time per pixel on, minutes are drawn instead of spans. */
const COARSE_MS = 15_000;
const HOUR_MS = 3_600_000;
/** Lanes that are drawn, and desktops that get places, the newest of a run: nobody looks at as many rows. */
const MOST_LANES = 5000;
const order: Readonly<Record<LaneKind, number>> = { desktop: 0, replica: 1, trainer: 2 };

interface Span {
  what: Activity;
  start: number;
  ms: number;
  rollout: string;
  version: number;
  /** Calls under way in the mean, of one that stands for several. Default 1. */
  calls?: number;
}
interface Columns {
  readonly id: string;
  readonly kind: LaneKind;
  readonly spans: Span[];
}

/**
 * The spans of every lane in a window, drawn on `width` pixels: spans shorter than a pixel are merged into what took
 * most of it.
 */
export async function lanes(
  run: RunReader,
  q: { readonly from?: number | undefined; readonly to?: number | undefined; readonly width: number },
): Promise<Lanes> {
  const [range] = await run.index.query(
      "SELECT MIN(t0) AS a, MAX(t1) AS b, (SELECT value FROM meta WHERE key = 'spansFrom') AS fine FROM lanes",
      [],
    ),
    last = Number(range?.['b'] ?? 0);
  const to = q.to ?? last,
    from = q.from ?? Math.max(Number(range?.['a'] ?? 0), to - DEFAULT_WINDOW_MS),
    pixel = (to - from) / q.width;
  const concurrency = concurrencyOf(run.meta.config),
    known = concurrency === undefined ? {} : { concurrency };
  if (!(to > from)) return { from, to, lanes: [], syncs: [], ...known, merged: false };
  // Older than this, only minutes are left in the index.
  const kept = Math.max(from, Number(range?.['fine'] ?? 0)),
    fine = pixel < COARSE_MS && kept < to,
    found = fine ? await spansOf(run, kept, to) : await minutesOf(run, from, to, pixel),
    syncs = fine ? syncsOf(found) : await allSyncs(run, from, to);
  if (fine && kept > from)
    for (const [id, l] of await minutesOf(run, from, kept, pixel)) {
      const mine = found.get(id) ?? { ...l, spans: [] },
        begin = mine.spans[0]?.start ?? kept;
      found.set(id, { ...mine, spans: [...l.spans.filter((s) => s.start < begin), ...mine.spans] });
    }
  const places = await slotsOf(run);
  let merged = !fine || kept > from;
  const out: Lane[] = [];
  const drawn = [...found.values()].slice(0, MOST_LANES);
  for (const l of drawn.sort((a, b) => order[a.kind] - order[b.kind] || natural(a.id, b.id))) {
    const m = fine ? mergeSpans(l.spans, pixel) : l.spans;
    merged ||= m.length < l.spans.length;
    out.push(laneOf(l, m, places.get(l.id)));
  }
  return { from, to, lanes: out, syncs, ...known, merged };
}
/** Replicas on model servers answer many calls at the same time; the config is that of a run's file, perhaps a stranger's. */
export function concurrencyOf(config: unknown): number | undefined {
  const policy = isObject(config) ? config['policy'] : undefined,
    vlm = isObject(policy) && policy['kind'] === 'vlm' ? policy['vlm'] : undefined,
    n = isObject(vlm) ? vlm['concurrency'] : undefined;
  return typeof n === 'number' && n >= 1 ? n : undefined;
}
const { compare: natural } = new Intl.Collator('en', { numeric: true });
const laneOf = ({ id, kind }: Columns, spans: readonly Span[], slot?: number): Lane => ({
  id,
  kind,
  ...(slot === undefined ? {} : { slot }),
  what: spans.map((s) => s.what),
  start: spans.map((s) => s.start),
  ms: spans.map((s) => s.ms),
  rollout: spans.map((s) => s.rollout),
  version: spans.map((s) => s.version),
  ...(spans.some((s) => s.calls !== undefined) ? { calls: spans.map((s) => s.calls ?? 1) } : {}),
});

/**
 * The place of each desktop among those that were there at the same time: a desktop that replaced another one takes its
 * place, so that there are as many places as the run has desktops. It is that of the whole run, whatever window is
 * asked for.
 */
async function slotsOf(run: RunReader): Promise<ReadonlyMap<string, number>> {
  const [newest] = await run.index.query('SELECT MAX(seq) AS seq FROM spans', []),
    seq = Number(newest?.['seq'] ?? 0),
    known = slotsKnown.get(run);
  if (known?.seq === seq) return known.slots;
  const rows = await run.index.query(
      `SELECT lane, t0 AS a, t1 AS b FROM lanes WHERE kind = 'desktop' ORDER BY t1 DESC LIMIT ${MOST_LANES}`,
      [],
    ),
    slots = placesOf(rows.map((r) => ({ id: String(r['lane']), from: Number(r['a']), to: Number(r['b']) })));
  slotsKnown.set(run, { seq, slots });
  return slots;
}
/** Every record is read for them: of a run that has not grown they are the same. */
const slotsKnown = new WeakMap<RunReader, { readonly seq: number; readonly slots: ReadonlyMap<string, number> }>();
/** The lowest place that is free when each begins, in the order in which they begin. Pure. */
export function placesOf(
  lives: readonly { readonly id: string; readonly from: number; readonly to: number }[],
): Map<string, number> {
  const free = new Heap<number>((a, b) => a - b),
    taken = new Heap<{ readonly place: number; readonly to: number }>((a, b) => a.to - b.to),
    out = new Map<string, number>();
  let places = 0;
  for (const l of [...lives].sort((a, b) => a.from - b.from || natural(a.id, b.id))) {
    for (let t = taken.first; t !== undefined && t.to <= l.from; t = taken.first) free.put(taken.take()!.place);
    const place = free.take() ?? places++;
    taken.put({ place, to: l.to });
    out.set(l.id, place);
  }
  return out;
}

/** A journal record's spans. */
export function spansIn(r: LaneSpans): Span[] {
  return Array.from(r.what, (what, i): Span => ({
    what: activities[what] ?? 'idle',
    start: r.t0 + r.start[i]!,
    ms: r.ms[i]!,
    rollout: r.rollouts[r.of[i]!] ?? '',
    version: r.version ?? -1,
  }));
}
/** A journal record as the wire's lane and syncs. */
export function laneOfRecord(r: LaneSpans): { readonly lane: Lane; readonly syncs: Lanes['syncs'] } {
  const spans = spansIn(r),
    columns = { id: r.lane, kind: r.kind, spans };
  return { lane: laneOf(columns, spans), syncs: syncsOf(new Map([[r.lane, columns]])) };
}
const syncsOf = (lanes: ReadonlyMap<string, Columns>): Lanes['syncs'] =>
  [...lanes.values()].flatMap((l) =>
    l.kind !== 'replica'
      ? []
      : l.spans
          .filter((s) => s.what === 'sync')
          .map((s) => ({ lane: l.id, start: s.start, ms: s.ms, version: s.version })),
  );

/**
 * Runs of spans shorter than a pixel become one of the activity that took most of that time, as long as all of them
 * took: what was idle between them stays idle. Of calls that overlap it is as long as they lasted together, with how
 * many were under way. Spans are in order of their start. Pure.
 */
export function mergeSpans(spans: readonly Span[], pixel: number): Span[] {
  const out: Span[] = [];
  for (let i = 0; i < spans.length;) {
    const first = spans[i]!;
    if (first.ms >= pixel) {
      out.push(first);
      i++;
      continue;
    }
    const end = first.start + pixel,
      time = new Map<Activity, number>();
    let busy = 0,
      j = i;
    // The first one always: so far from now a pixel may be less than one time differs from the next.
    do {
      const s = spans[j]!;
      time.set(s.what, (time.get(s.what) ?? 0) + s.ms);
      busy += s.ms;
      j++;
    } while (j < spans.length && spans[j]!.start < end && spans[j]!.ms < pixel);
    if (j === i + 1) {
      out.push(first);
      i = j;
      continue;
    }
    const [what] = [...time].reduce((a, b) => (b[1] > a[1] ? b : a)),
      same = spans.slice(i, j).every((s) => s.rollout === first.rollout),
      lasted = spans.slice(i, j).reduce((end, s) => Math.max(end, s.start + s.ms), 0) - first.start;
    out.push({
      what,
      start: first.start,
      ...overlapping(busy, lasted),
      rollout: same ? first.rollout : '',
      version: first.version,
    });
    i = j;
  }
  return out;
}

/** Rounded times of neighbours touch: what is over by less does not overlap. */
const TOUCH_MS = 1;
/** `busy` ms of spans within `lasted` ms. */
const overlapping = (busy: number, lasted: number): { readonly ms: number; readonly calls?: number } =>
  busy > lasted + TOUCH_MS ? { ms: lasted, calls: busy / lasted } : { ms: busy };

const floats = (b: unknown): Float32Array => {
  const u = Uint8Array.from(b as Uint8Array);
  return new Float32Array(u.buffer);
};

async function spansOf(run: RunReader, from: number, to: number): Promise<Map<string, Columns>> {
  const rows = await run.index.query(
      'SELECT lane, kind, t0, what, start, ms, who, rollouts, version FROM spans WHERE t1 >= ? AND t0 <= ?',
      [from, to],
    ),
    out = new Map<string, Columns>();
  for (const [k, r] of rows.entries()) {
    const id = String(r['lane']),
      lane = out.get(id) ?? { id, kind: String(r['kind']) as LaneKind, spans: [] };
    out.set(id, lane);
    const record: LaneSpans = {
      lane: id,
      kind: lane.kind,
      t0: Number(r['t0']),
      what: r['what'] as Uint8Array,
      start: floats(r['start']),
      ms: floats(r['ms']),
      of: r['who'] as Uint8Array,
      rollouts: namesIn(String(r['rollouts'])),
      version: typeof r['version'] === 'number' ? r['version'] : undefined,
    };
    for (const s of spansIn(record)) if (s.start + s.ms >= from && s.start <= to) lane.spans.push(s);
    // Thousands of records are a matter of tens of ms: the loop turns in between.
    if (k % 50 === 49) await nextTurn();
  }
  for (const [id, l] of out) {
    l.spans.sort((a, b) => a.start - b.start);
    if (l.kind !== 'replica') out.set(id, { ...l, spans: joinSpans(l.spans) });
  }
  return out;
}
/** Times are stored in single precision: pieces of one span meet within so many ms. */
const MEET_MS = 1;
/** Joins the pieces of a span that was written while it went on. Spans are in order of their start. Pure. */
export function joinSpans(spans: readonly Span[]): Span[] {
  const out: Span[] = [];
  for (const s of spans) {
    const last = out.at(-1);
    if (
      last &&
      last.what === s.what &&
      last.rollout === s.rollout &&
      Math.abs(s.start - last.start - last.ms) <= MEET_MS
    )
      out[out.length - 1] = { ...last, ms: s.start + s.ms - last.start, version: s.version };
    else out.push(s);
  }
  return out;
}

/** Per pixel (whole minutes) the activity that took most of it, as long as it took. */
async function minutesOf(run: RunReader, from: number, to: number, pixel: number): Promise<Map<string, Columns>> {
  const per = Math.max(1, Math.round(pixel / 60_000)),
    out = new Map<string, Columns>();
  // Single minutes are in the right order in the table; any other width has to be summed first, which takes several
  // times as long.
  const minutes = 'FROM span_minutes WHERE minute >= ?2 AND minute <= ?3';
  const rows = await run.index.columns(
    per === 1
      ? `SELECT lane, kind, minute / ?1, what, MAX(ms), SUM(ms) ${minutes} GROUP BY lane, minute ORDER BY lane, minute`
      : `SELECT lane, kind, bucket, what, MAX(ms), SUM(ms) FROM (SELECT lane, kind, minute / ?1 AS bucket, what, SUM(ms) AS ms ${minutes} GROUP BY lane, bucket, what) GROUP BY lane, bucket ORDER BY lane, bucket`,
    [per, Math.floor(from / 60_000), Math.floor(to / 60_000)],
  );
  // Times that have no minutes any more are drawn by the hour: no hour is in both tables.
  const hours = await run.index.columns(
    'SELECT lane, kind, hour, what, MAX(ms), SUM(ms) FROM span_hours WHERE hour >= ?1 AND hour <= ?2 GROUP BY lane, hour ORDER BY lane, hour',
    [Math.floor(from / HOUR_MS), Math.floor(to / HOUR_MS)],
  );
  addSums(out, hours, HOUR_MS);
  addSums(out, rows, per * 60_000);
  return out;
}
/** Columns of lane, kind, which part of time, activity, its ms, ms of all; parts of a lane ascend. */
function addSums(out: Map<string, Columns>, sums: readonly (readonly unknown[])[], partMs: number): void {
  const [lane = [], kind = [], part = [], what = [], , busy = []] = sums;
  lane.forEach((id, i) => {
    const l = out.get(String(id)) ?? { id: String(id), kind: String(kind[i]) as LaneKind, spans: [] };
    out.set(l.id, l);
    l.spans.push({
      what: activities[Number(what[i])] ?? 'idle',
      start: Number(part[i]) * partMs,
      ...coarse(l.kind, Number(busy[i]), partMs),
      rollout: '',
      version: -1,
    });
  });
}

/** Calls of a replica for more than the time that fits mean that several were under way at a time. */
export const coarse = (
  kind: LaneKind,
  busy: number,
  partMs: number,
): { readonly ms: number; readonly calls?: number } =>
  kind === 'replica' ? overlapping(busy, partMs) : { ms: Math.min(partMs, busy) };

const sync = activities.indexOf('sync');
async function allSyncs(run: RunReader, from: number, to: number): Promise<Lanes['syncs']> {
  const rows = await run.index.query(
    `SELECT lane, t0, what, start, ms, version FROM spans WHERE kind = 'replica' AND t1 >= ? AND t0 <= ? AND instr(what, x'${sync.toString(16).padStart(2, '0')}') > 0 LIMIT 5000`,
    [from, to],
  );
  return rows.flatMap((r) => {
    const start = floats(r['start']),
      ms = floats(r['ms']);
    return Array.from(r['what'] as Uint8Array).flatMap((w, i) =>
      w === sync
        ? [
            {
              lane: String(r['lane']),
              start: Number(r['t0']) + start[i]!,
              ms: ms[i]!,
              version: Number(r['version'] ?? -1),
            },
          ]
        : [],
    );
  });
}

/** Ids of a record of spans; none where the index, which may be a stranger's, holds something else. */
function namesIn(text: string): string[] {
  const names = text.length > MOST_NAMES ? undefined : jsonOrNothing(text, { depth: 1, values: MOST_NAMES });
  return Array.isArray(names) ? (names as string[]) : [];
}
/** Characters. A record holds the spans of one lane within a few seconds. */
const MOST_NAMES = 1 << 20;
