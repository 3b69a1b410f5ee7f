/**
 * Utilisation lanes without a canvas: the window of time shown, rows, spans found and merged. Pure. Times are ms since
 * the epoch.
 */
import type { Activity, Lane, LaneKind, Lanes } from '../../runtime/protocol/types.js';
import { lowerBound } from './chartMath.js';

export interface Window {
  readonly from: number;
  readonly to: number;
}
/** Shortest and longest stretch of time that can be shown. */
export const minSpanMs = 200;

/** Keeps a window inside the limits, moving it before cutting it. */
export function clampWindow(w: Window, limits: Window): Window {
  const whole = Math.max(limits.to - limits.from, minSpanMs),
    span = Math.min(Math.max(w.to - w.from, minSpanMs), whole);
  const from = Math.min(Math.max(w.from, limits.from), Math.max(limits.from, limits.from + whole - span));
  return { from, to: from + span };
}
/** Factor < 1 zooms in; `at` (0..1 across the window) stays where it is. */
export function zoomWindow(w: Window, factor: number, at: number, limits: Window): Window {
  const span = w.to - w.from,
    next = Math.min(Math.max(span * factor, minSpanMs), Math.max(limits.to - limits.from, minSpanMs)),
    pivot = w.from + span * at;
  return clampWindow({ from: pivot - next * at, to: pivot + next * (1 - at) }, limits);
}
/** Moves by a share of its width. */
export const panWindow = (w: Window, share: number, limits: Window): Window => {
  const d = (w.to - w.from) * share;
  return clampWindow({ from: w.from + d, to: w.to + d }, limits);
};
/** The newest stretch of the same width. */
export const followWindow = (w: Window, limits: Window): Window =>
  clampWindow({ from: limits.to - (w.to - w.from), to: limits.to }, limits);

/** A place where one desktop followed another: its spans in order, each with the desktop that did it. */
export interface SlotLane extends Lane {
  readonly names?: readonly string[];
}
/**
 * Desktops by their places: those that replaced one another become one lane. One that is told by event has no place yet
 * and gets the lowest that is free.
 */
export function inSlots(lanes: readonly Lane[], named: (place: number) => string): readonly SlotLane[] {
  const places: Lane[][] = [],
    started = (l: Lane): number => l.start[0] ?? Infinity,
    end = (l: Lane): number => (l.start.at(-1) ?? -Infinity) + (l.ms.at(-1) ?? 0);
  for (const l of lanes) if (l.kind === 'desktop' && l.slot !== undefined) (places[l.slot] ??= []).push(l);
  const fresh = lanes.filter((l) => l.kind === 'desktop' && l.slot === undefined);
  for (const l of fresh.sort((a, b) => started(a) - started(b))) {
    let place = 0;
    while (places[place]?.some((x) => end(x) > started(l))) place++;
    (places[place] ??= []).push(l);
  }
  const replaced = places.some((of) => of.length > 1);
  return [
    ...lanes.filter((l) => l.kind !== 'desktop'),
    // Places that nobody used in this window are holes.
    ...Object.entries(places).map(([place, of]) => (replaced ? oneLane(named(Number(place)), of) : of[0]!)),
  ];
}
function oneLane(id: string, of: readonly Lane[]): SlotLane {
  const at = of.flatMap((l) => l.start.map((start, i) => ({ l, i, start }))).sort((a, b) => a.start - b.start);
  return {
    id,
    kind: of[0]!.kind,
    what: at.map(({ l, i }) => l.what[i]!),
    start: at.map((x) => x.start),
    ms: at.map(({ l, i }) => l.ms[i]!),
    rollout: at.map(({ l, i }) => l.rollout[i]!),
    version: at.map(({ l, i }) => l.version[i]!),
    names: at.map(({ l }) => l.id),
  };
}

export interface Row {
  readonly lane: number;
  readonly y: number;
  readonly height: number;
}
export interface Heading {
  readonly kind: LaneKind;
  readonly y: number;
  readonly height: number;
  readonly count: number;
}
export interface Layout {
  readonly rows: readonly Row[];
  readonly headings: readonly Heading[];
  readonly height: number;
}
/** The few that everything waits for first: however many desktops there are, they are in sight. */
const order: readonly LaneKind[] = ['trainer', 'replica', 'desktop'];
/** Rows under a heading per kind: trainer, replicas, desktops. */
export function layoutRows(
  lanes: readonly Lane[],
  o: { readonly row: number; readonly gap: number; readonly heading: number },
): Layout {
  const rows: Row[] = [],
    headings: Heading[] = [];
  let y = 0;
  for (const kind of order) {
    const mine = lanes
      .map((l, i) => ({ l, i }))
      .filter((x) => x.l.kind === kind)
      .sort((a, b) => a.l.id.localeCompare(b.l.id, 'en', { numeric: true }));
    if (mine.length === 0) continue;
    if (y > 0) y += o.gap * 2;
    headings.push({ kind, y, height: o.heading, count: mine.length });
    y += o.heading;
    for (const m of mine) {
      rows.push({ lane: m.i, y, height: o.row });
      y += o.row + o.gap;
    }
  }
  return { rows, headings, height: y };
}
export const rowAt = (l: Layout, y: number): number => l.rows.findIndex((r) => y >= r.y && y < r.y + r.height);

/** Spans [a, b) of a lane that touch the window. Spans of a lane are ascending and do not overlap. */
export function spansIn(l: Lane, w: Window): readonly [number, number] {
  let a = lowerBound(l.start, w.from);
  if (a > 0 && l.start[a - 1]! + l.ms[a - 1]! > w.from) a--;
  return [a, lowerBound(l.start, w.to)];
}
/** The span at a moment, or the nearest one within `slack` ms; -1: none. */
export function spanAt(l: Lane, at: number, slack = 0): number {
  const i = lowerBound(l.start, at + 1e-6) - 1;
  if (i >= 0 && at <= l.start[i]! + l.ms[i]!) return i;
  const before = i >= 0 ? at - (l.start[i]! + l.ms[i]!) : Infinity,
    after = i + 1 < l.start.length ? l.start[i + 1]! - at : Infinity;
  return Math.min(before, after) > slack ? -1 : before <= after ? i : i + 1;
}

/** A published version on its way over the replicas: from the first swap to the last. */
export interface SyncBand {
  readonly version: number;
  readonly from: number;
  readonly to: number;
  readonly replicas: number;
}
export function syncBands(syncs: Lanes['syncs']): SyncBand[] {
  const by = new Map<number, { from: number; to: number; replicas: number }>();
  for (const s of syncs) {
    const b = by.get(s.version);
    if (b) {
      b.from = Math.min(b.from, s.start);
      b.to = Math.max(b.to, s.start + s.ms);
      b.replicas++;
    } else by.set(s.version, { from: s.start, to: s.start + s.ms, replicas: 1 });
  }
  return [...by].map(([version, b]) => ({ version, ...b })).sort((a, b) => a.from - b.from);
}

/**
 * Adds later spans to what is known. What both have (same lane, same start) is taken from the later; lanes keep their
 * ascending order.
 */
export function appendLanes(known: Lanes, later: Pick<Lanes, 'lanes' | 'syncs'>, keepFrom = -Infinity): Lanes {
  const byId = new Map(known.lanes.map((l) => [l.id, l]));
  for (const l of later.lanes) {
    const before = byId.get(l.id),
      overlaps = l.kind === 'replica' && known.concurrency !== undefined;
    byId.set(l.id, overlaps ? joined(before, l, keepFrom) : concat(before, l, keepFrom));
  }
  const seen = new Set(later.syncs.map((s) => `${s.lane} ${s.version}`));
  const syncs = [
    ...known.syncs.filter((s) => s.start + s.ms > keepFrom && !seen.has(`${s.lane} ${s.version}`)),
    ...later.syncs,
  ].sort((a, b) => a.start - b.start);
  const lanes = [...byId.values()],
    end = (l: Lane): number => (l.start.at(-1) ?? 0) + (l.ms.at(-1) ?? 0);
  return {
    lanes,
    syncs,
    ...(known.concurrency === undefined ? {} : { concurrency: known.concurrency }),
    merged: known.merged,
    from: Math.max(known.from, keepFrom),
    to: Math.max(known.to, ...later.lanes.map(end)),
  };
}
function concat(a: Lane | undefined, b: Lane, keepFrom: number): Lane {
  if (!a || a.start.length === 0) return b;
  const first = b.start[0];
  if (first === undefined) return a;
  const from = lowerBound(a.start, keepFrom),
    to = Math.max(from, lowerBound(a.start, first)),
    goesOn = to > from && isSame(a, to - 1, b);
  const cut = <T>(xs: readonly T[], ys: readonly T[]): T[] => [...xs.slice(from, goesOn ? to - 1 : to), ...ys];
  return {
    id: a.id,
    kind: a.kind,
    slot: a.slot ?? b.slot,
    what: cut(a.what, b.what),
    start: cut(a.start, goesOn ? [a.start[to - 1]!, ...b.start.slice(1)] : b.start),
    ms: cut(a.ms, goesOn ? [first + b.ms[0]! - a.start[to - 1]!, ...b.ms.slice(1)] : b.ms),
    rollout: cut(a.rollout, b.rollout),
    version: cut(a.version, b.version),
    ...(a.calls || b.calls ? { calls: cut(callsOf(a), callsOf(b)) } : {}),
  };
}
/**
 * Joins overlapping calls, each once, by their start: they are told when they end, so that a later one may have begun
 * before others that are known.
 */
function joined(a: Lane | undefined, b: Lane, keepFrom: number): Lane {
  const all = (a ? [a, b] : [b]).flatMap((l) => l.start.map((start, i) => ({ l, i, start }))),
    named = new Map(all.map((x) => [`${x.start} ${x.l.ms[x.i]!} ${x.l.rollout[x.i]!}`, x]));
  const at = [...named.values()].filter((x) => x.start >= keepFrom).sort((x, y) => x.start - y.start),
    column = <T>(of: (l: Lane) => readonly T[]): T[] => at.map(({ l, i }) => of(l)[i]!);
  return {
    id: b.id,
    kind: b.kind,
    what: column((l) => l.what),
    start: column((l) => l.start),
    ms: column((l) => l.ms),
    rollout: column((l) => l.rollout),
    version: column((l) => l.version),
    ...(a?.calls || b.calls ? { calls: at.map(({ l, i }) => l.calls?.[i] ?? 1) } : {}),
  };
}
/** The spans of a lane that `kept` says yes to. */
export function someOf(l: Lane, kept: (start: number, ms: number) => boolean): Lane {
  const of = <T>(xs: readonly T[]): T[] => xs.filter((_, i) => kept(l.start[i]!, l.ms[i]!));
  return {
    ...l,
    what: of(l.what),
    start: of(l.start),
    ms: of(l.ms),
    rollout: of(l.rollout),
    version: of(l.version),
    ...(l.calls ? { calls: of(l.calls) } : {}),
  };
}
const callsOf = (l: Lane): readonly number[] => l.calls ?? l.start.map(() => 1);
/** Whether b's first span continues a's: a long span is told in pieces that meet within a ms. */
const isSame = (a: Lane, i: number, b: Lane): boolean =>
  a.kind !== 'replica' &&
  a.what[i] === b.what[0] &&
  a.rollout[i] === b.rollout[0] &&
  Math.abs(b.start[0]! - a.start[i]! - a.ms[i]!) <= 1;

/**
 * Share of the window each activity took, over lanes of one kind; what is left is idle. A replica that takes new weights
 * answers nobody, so that counts as idle too, as in the run's own utilisation. With `concurrency`, the calls that one
 * lane may have under way at a time, it is the share of those.
 */
export function shares(
  lanes: readonly Lane[],
  kind: LaneKind,
  w: Window,
  concurrency?: number,
): { readonly busy: number; readonly by: ReadonlyMap<Activity, number> } {
  const by = new Map<Activity, number>(),
    mine = lanes.filter((l) => l.kind === kind),
    whole = Math.max(1, (w.to - w.from) * mine.length * (concurrency ?? 1));
  for (const l of mine) {
    // A call that began long before the window may go on in it, whatever began between.
    const [a, b] = concurrency === undefined ? spansIn(l, w) : [0, lowerBound(l.start, w.to)];
    for (let i = a; i < b; i++) {
      const what = l.what[i]!;
      if (what === 'idle' || what === 'sync') continue;
      const within = Math.max(0, Math.min(l.start[i]! + l.ms[i]!, w.to) - Math.max(l.start[i]!, w.from)),
        calls = concurrency === undefined ? 1 : (l.calls?.[i] ?? 1);
      by.set(what, (by.get(what) ?? 0) + (within * calls) / whole);
    }
  }
  return { busy: [...by.values()].reduce((x, y) => x + y, 0), by };
}

/**
 * How full a replica with many calls at a time was: of each of `columns` equal parts of the window the share of its
 * `concurrency` that was under way, 0 to 1.
 */
export function loadOf(l: Lane, w: Window, columns: number, concurrency: number): Float64Array {
  const out = new Float64Array(columns),
    part = (w.to - w.from) / columns;
  for (let i = 0; i < l.start.length && l.start[i]! < w.to; i++) {
    const from = Math.max(w.from, l.start[i]!),
      to = Math.min(w.to, l.start[i]! + l.ms[i]!),
      calls = l.what[i] === 'idle' || l.what[i] === 'sync' ? 0 : (l.calls?.[i] ?? 1);
    if (calls === 0 || to <= from) continue;
    for (let k = Math.floor((from - w.from) / part); k < columns && w.from + k * part < to; k++) {
      const within = Math.min(to, w.from + (k + 1) * part) - Math.max(from, w.from + k * part);
      out[k]! += (within * calls) / (part * concurrency);
    }
  }
  return out.map((x) => Math.min(1, Math.max(0, x)));
}

/** Whether the window shows something that is not known, or known too coarsely. `to` = end of the run so far. */
export function needsFetch(known: Pick<Lanes, 'from' | 'to' | 'merged'> | undefined, w: Window, to: number): boolean {
  if (!known) return true;
  if (w.from < known.from - 1 || Math.min(w.to, to) > known.to + 2000) return true;
  return known.merged && known.to - known.from > 4 * (w.to - w.from);
}
/** The window to fetch: a window's width more on both sides, so that small moves need nothing. */
export const fetchWindow = (w: Window): Window => ({ from: w.from - (w.to - w.from), to: w.to + (w.to - w.from) });

/** The cursor's next place (lane row, span) after a key; vertical moves keep the moment. */
export function moveSpan(
  key: string,
  at: { readonly row: number; readonly span: number } | undefined,
  rows: readonly Lane[],
  w: Window,
): { readonly row: number; readonly span: number } | undefined {
  if (rows.length === 0) return undefined;
  const newest = (l: Lane): number => Math.min(Math.max(0, lowerBound(l.start, w.to) - 1), l.start.length - 1);
  if (!at) {
    // The cursor starts at a desktop, whose spans lead to a trajectory.
    const some = (l: Lane): boolean => l.start.length > 0,
      desktop = rows.findIndex((l) => some(l) && l.kind === 'desktop'),
      row = desktop >= 0 ? desktop : rows.findIndex(some);
    return row < 0 || !key.startsWith('Arrow') ? undefined : { row, span: newest(rows[row]!) };
  }
  const lane = rows[at.row],
    n = lane?.start.length ?? 0;
  if (!lane) return undefined;
  if (key === 'ArrowLeft' || key === 'ArrowRight')
    return { row: at.row, span: Math.max(0, Math.min(n - 1, at.span + (key === 'ArrowLeft' ? -1 : 1))) };
  if (key === 'Home' || key === 'End') return { row: at.row, span: key === 'Home' ? 0 : n - 1 };
  if (key !== 'ArrowUp' && key !== 'ArrowDown') return undefined;
  const moment = (lane.start[at.span] ?? w.from) + (lane.ms[at.span] ?? 0) / 2,
    d = key === 'ArrowUp' ? -1 : 1;
  for (let row = at.row + d; row >= 0 && row < rows.length; row += d) {
    const l = rows[row]!;
    if (l.start.length > 0) return { row, span: Math.max(0, spanAt(l, moment, Infinity)) };
  }
  return at;
}
/** A window as wide as `w`, in ms, with a span in its middle; one that is wider begins near its left edge. */
export function windowOn(w: Window, from: number, to: number): Window {
  const width = w.to - w.from;
  if (to - from > width) return { from: from - width * 0.05, to: from + width * 0.95 };
  const middle = (from + to) / 2;
  return { from: middle - width / 2, to: middle + width / 2 };
}
