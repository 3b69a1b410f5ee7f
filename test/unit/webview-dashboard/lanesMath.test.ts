import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lane, Lanes } from '../../../runtime/protocol/types.js';
import {
  appendLanes,
  clampWindow,
  fetchWindow,
  followWindow,
  inSlots,
  layoutRows,
  loadOf,
  minSpanMs,
  moveSpan,
  needsFetch,
  panWindow,
  rowAt,
  shares,
  spanAt,
  spansIn,
  syncBands,
  zoomWindow,
} from '../../../webview/ui/lanesMath.js';
import { underWay } from '../../../webview/ui/lanesLoad.js';

const limits = { from: 0, to: 100_000 };
const laneOf = (id: string, kind: Lane['kind'], spans: readonly (readonly [number, number])[]): Lane => ({
  id,
  kind,
  what: spans.map((_, i) => (i % 2 ? 'settle' : 'act')),
  start: spans.map((s) => s[0]),
  ms: spans.map((s) => s[1]),
  rollout: spans.map((_, i) => `r${i}`),
  version: spans.map(() => 1),
});
const lanesOf = (lanes: readonly Lane[], o: Partial<Lanes> = {}): Lanes => ({
  from: 0,
  to: 1000,
  lanes,
  syncs: [],
  merged: false,
  ...o,
});
const window = fc
  .tuple(fc.integer({ min: -50_000, max: 150_000 }), fc.integer({ min: 1, max: 300_000 }))
  .map(([from, span]) => ({ from, to: from + span }));

describe('the window of time', () => {
  it('always lies in the limits and is never shorter than it may be', () => {
    fc.assert(
      fc.property(
        window,
        fc.double({ min: 0.01, max: 20, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: -3, max: 3, noNaN: true }),
        (w, f, at, share) => {
          for (const x of [
            clampWindow(w, limits),
            zoomWindow(clampWindow(w, limits), f, at, limits),
            panWindow(clampWindow(w, limits), share, limits),
            followWindow(w, limits),
          ]) {
            expect(x.from).toBeGreaterThanOrEqual(limits.from - 1e-6);
            expect(x.to).toBeLessThanOrEqual(limits.to + 1e-6);
            expect(x.to - x.from).toBeGreaterThanOrEqual(minSpanMs - 1e-6);
          }
        },
      ),
    );
  });
  it('zooms around the pointer, pans without changing its width, follows the end', () => {
    const z = zoomWindow({ from: 40_000, to: 60_000 }, 0.5, 0.25, limits);
    expect(z.from + (z.to - z.from) * 0.25).toBeCloseTo(45_000);
    expect(z.to - z.from).toBeCloseTo(10_000);
    expect(panWindow({ from: 0, to: 10_000 }, 0.5, limits)).toEqual({ from: 5000, to: 15_000 });
    expect(followWindow({ from: 0, to: 10_000 }, limits)).toEqual({ from: 90_000, to: 100_000 });
  });
  it('asks for data only where it lacks or is too coarse', () => {
    expect(needsFetch(undefined, { from: 0, to: 1 }, 1)).toBe(true);
    const known = { from: 0, to: 100_000, merged: false };
    expect(needsFetch(known, { from: 10, to: 90_000 }, 100_000)).toBe(false);
    expect(needsFetch(known, { from: -10, to: 90_000 }, 100_000)).toBe(true);
    expect(needsFetch({ ...known, merged: true }, { from: 0, to: 1000 }, 100_000)).toBe(true);
    expect(needsFetch({ ...known, merged: true }, { from: 0, to: 90_000 }, 100_000)).toBe(false);
    expect(needsFetch(known, { from: 95_000, to: 101_000 }, 100_500)).toBe(false);
    expect(fetchWindow({ from: 10, to: 20 })).toEqual({ from: 0, to: 30 });
  });
});

describe('rows and spans', () => {
  const lanes = [
    laneOf('trainer', 'trainer', [[0, 10]]),
    laneOf('desktop-10', 'desktop', []),
    laneOf('desktop-2', 'desktop', [
      [0, 50],
      [60, 40],
    ]),
    laneOf('replica-0', 'replica', [[5, 5]]),
  ];
  const layout = layoutRows(lanes, { row: 16, gap: 4, heading: 22 });
  it('are grouped by kind and numbered as people count', () => {
    expect(layout.rows.map((r) => lanes[r.lane]!.id)).toEqual(['trainer', 'replica-0', 'desktop-2', 'desktop-10']);
    expect(layout.headings.map((h) => h.count)).toEqual([1, 1, 2]);
    for (const [i, r] of layout.rows.entries()) expect(rowAt(layout, r.y + 8)).toBe(i);
    for (let i = 1; i < layout.rows.length; i++)
      expect(layout.rows[i]!.y).toBeGreaterThanOrEqual(layout.rows[i - 1]!.y + 16);
  });
  it('finds the spans that touch a window, and the one at a moment', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 30 })), { maxLength: 30 }),
        fc.integer({ min: -10, max: 900 }),
        fc.integer({ min: 1, max: 300 }),
        (gaps, from, wide) => {
          let t = 0;
          const spans = gaps.map(([gap, ms]) => {
              const s = [t + gap, ms] as const;
              t += gap + ms;
              return s;
            }),
            l = laneOf('x', 'desktop', spans),
            [a, b] = spansIn(l, { from, to: from + wide });
          const touching = spans
            .map((s, i) => ({ s, i }))
            .filter(({ s }) => s[0] < from + wide && s[0] + s[1] > from)
            .map((x) => x.i);
          expect(Array.from({ length: b - a }, (_, i) => a + i)).toEqual(touching);
          for (const [i, s] of spans.entries()) expect([i, i - 1]).toContain(spanAt(l, s[0]));
        },
      ),
    );
    const l = lanes[2]!;
    expect(spanAt(l, 55)).toBe(-1);
    expect(spanAt(l, 52, 3)).toBe(0);
    expect(spanAt(l, 58, 3)).toBe(1);
  });
  it('the keyboard goes along a lane and keeps its moment between lanes', () => {
    const rows = layout.rows.map((r) => lanes[r.lane]!),
      w = { from: 0, to: 100 };
    expect(moveSpan('ArrowLeft', undefined, rows, w)).toEqual({ row: 2, span: 1 });
    expect(moveSpan('ArrowLeft', undefined, rows.slice(0, 2), w)).toEqual({ row: 0, span: 0 });
    expect(moveSpan('ArrowLeft', { row: 2, span: 1 }, rows, w)).toEqual({ row: 2, span: 0 });
    expect(moveSpan('ArrowLeft', { row: 2, span: 0 }, rows, w)).toEqual({ row: 2, span: 0 });
    expect(moveSpan('ArrowUp', { row: 2, span: 1 }, rows, w)).toEqual({ row: 1, span: 0 });
    expect(moveSpan('x', { row: 2, span: 1 }, rows, w)).toBeUndefined();
  });
  it('desktops that replaced one another are one lane, and count as one', () => {
    const six = Array.from({ length: 6 }, (_, slot) =>
        Array.from({ length: 6 }, (_, k) => ({
          ...laneOf(`local-${slot + k * 6}`, 'desktop', [
            [k * 100, 60],
            [k * 100 + 60, 39],
          ]),
          slot,
        })),
      ).flat(),
      named = (n: number): string => `desktop ${n + 1}`,
      slots = inSlots([...six, lanes[3]!], named);
    expect(slots.map((l) => l.id)).toEqual(['replica-0', ...[0, 1, 2, 3, 4, 5].map(named)]);
    expect(slots[1]!.start).toEqual([...slots[1]!.start].sort((a, b) => a - b));
    expect(slots[1]!.names).toEqual(Array.from({ length: 6 }, (_, k) => [`local-${k * 6}`, `local-${k * 6}`]).flat());
    // 36 desktops of which six are there at a time: busy 99 % and not a sixth of it.
    expect(shares(slots, 'desktop', { from: 0, to: 600 }).busy).toBeCloseTo(0.99, 6);
    expect(shares(six, 'desktop', { from: 0, to: 600 }).busy).toBeCloseTo(0.165, 6);
    const fresh = laneOf('local-99', 'desktop', [[600, 50]]),
      more = inSlots([...six, fresh], named);
    expect(more.filter((l) => l.kind === 'desktop').length).toBe(6);
    expect(more.find((l) => l.names?.includes('local-99'))!.id).toBe('desktop 1');
    // Where each place has one desktop they keep their names.
    expect(
      inSlots(
        [
          { ...lanes[2]!, slot: 0 },
          { ...fresh, slot: 1 },
        ],
        named,
      ).map((l) => l.id),
    ).toEqual(['desktop-2', 'local-99']);
  });
  it('adds up shares of a window, idle apart', () => {
    const s = shares(
      [
        laneOf('a', 'desktop', [
          [0, 50],
          [50, 25],
        ]),
        laneOf('b', 'desktop', []),
      ],
      'desktop',
      { from: 0, to: 100 },
    );
    expect(s.busy).toBeCloseTo(0.375);
    expect(s.by.get('act')).toBeCloseTo(0.25);
  });
});

describe('a replica that answers many calls at a time', () => {
  const calls = (spans: readonly (readonly [number, number])[], id = 'server'): Lane => ({
      ...laneOf(id, 'replica', spans),
      what: spans.map(() => 'decide'),
    }),
    overlapping = calls([
      [0, 1000],
      [0, 1000],
      [0, 1000],
      [500, 200],
    ]),
    w = { from: 0, to: 1000 };

  it('is as busy as the share of its calls that is under way', () => {
    expect(shares([overlapping], 'replica', w, 16).busy).toBeCloseTo(3.2 / 16, 9);
    // One of 16 all the time, and a window that begins in the middle of calls.
    expect(shares([calls([[0, 1000]])], 'replica', w, 16).busy).toBeCloseTo(1 / 16, 9);
    expect(shares([overlapping], 'replica', { from: 800, to: 1000 }, 16).busy).toBeCloseTo(3 / 16, 9);
    // Where calls were merged, by how many there were; publishing is no call.
    const merged = { ...calls([[0, 1000]]), calls: [3.2] };
    expect(shares([merged], 'replica', w, 16).busy).toBeCloseTo(0.2, 9);
    expect(shares([{ ...merged, what: ['sync'] }], 'replica', w, 16).busy).toBe(0);
  });
  it('answers nobody while it takes new weights', () => {
    const updated: Lane = {
      ...laneOf('replica-1', 'replica', [
        [0, 300],
        [300, 100],
      ]),
      what: ['decide', 'sync'],
    };
    for (const [concurrency, busy] of [
      [undefined, 0.3],
      [16, 0.3 / 16],
    ] as const)
      expect(shares([updated], 'replica', w, concurrency).busy).toBeCloseTo(busy, 9);
  });
  it('says so in words, of one server and of all', () => {
    expect(underWay([overlapping], w, 16)).toBe('3.2 of 16 calls under way, 20 %');
    expect(underWay([overlapping, calls([])], w, 16)).toBe('1.6 of 16 calls under way, 10 %');
  });
  it('is drawn as full as it was', () => {
    expect([...loadOf(overlapping, w, 2, 16)]).toEqual([3 / 16, 3.4 / 16]);
    expect([...loadOf(calls(Array.from({ length: 40 }, () => [0, 1000])), w, 1, 16)]).toEqual([1]);
    expect(loadOf(calls([[-100, 50]]), w, 4, 16).every((x) => x === 0)).toBe(true);
  });
  it('keeps every call that is told live, though one that began earlier is told later', () => {
    const known = lanesOf(
        [
          calls([
            [0, 100],
            [50, 100],
            [90, 20],
          ]),
        ],
        { concurrency: 16 },
      ),
      later = calls([
        [120, 10],
        [10, 400],
        [90, 20],
      ]);
    const rollout = ['x', 'y', 'r2'],
      next = appendLanes(known, { lanes: [{ ...later, rollout }], syncs: [] });
    expect(next.concurrency).toBe(16);
    expect(next.lanes[0]!.start).toEqual([0, 10, 50, 90, 120]);
    expect(next.lanes[0]!.ms).toEqual([100, 400, 100, 20, 10]);
    // The first that is told of a replica is put in order, too.
    const first = appendLanes(lanesOf([], { concurrency: 16 }), { lanes: [later], syncs: [] });
    expect(first.lanes[0]!.start).toEqual([10, 90, 120]);
  });
});

describe('live spans', () => {
  it('are added behind what is known, never twice, whatever way they are cut into batches', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 40 }),
        fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 5 }),
        (lengths, cuts) => {
          let t = 0;
          const spans = lengths.map((ms) => {
              const s = [t, ms] as const;
              t += ms;
              return s;
            }),
            whole = laneOf('d', 'desktop', spans),
            at = [...new Set(cuts.map((c) => Math.min(c, spans.length)))].sort((a, b) => a - b);
          let known = lanesOf([]);
          for (const [from, to] of [0, ...at].map(
            (a, i, all) => [Math.max(0, a - 2), all[i + 1] ?? spans.length] as const,
          )) {
            const part = {
              ...whole,
              what: whole.what.slice(from, to),
              start: whole.start.slice(from, to),
              ms: whole.ms.slice(from, to),
              rollout: whole.rollout.slice(from, to),
              version: whole.version.slice(from, to),
            };
            known = appendLanes(known, { lanes: [part], syncs: [] });
          }
          expect(known.lanes[0]!.start).toEqual(whole.start);
          expect(known.lanes[0]!.rollout).toEqual(whole.rollout);
          expect(known.to).toBe(Math.max(1000, t));
        },
      ),
    );
  });
  it('told in pieces as they go on are one span', () => {
    const piece = (start: number, ms: number): Lane => ({
      ...laneOf('t', 'trainer', [[start, ms]]),
      what: ['update'],
      rollout: [''],
    });
    let known = lanesOf([]);
    for (const [start, ms] of [
      [0, 4000],
      [4000.4, 3000],
      [7000, 2500],
      [9600, 100],
    ] as const)
      known = appendLanes(known, { lanes: [piece(start, ms)], syncs: [] });
    expect(known.lanes[0]).toMatchObject({ start: [0, 9600], ms: [9500, 100], what: ['update', 'update'] });
  });
  it('forgets what is older than it keeps', () => {
    const known = appendLanes(
      lanesOf([
        laneOf('d', 'desktop', [
          [0, 10],
          [10, 10],
          [500, 10],
        ]),
      ]),
      { lanes: [laneOf('d', 'desktop', [[600, 10]])], syncs: [] },
      400,
    );
    expect(known.lanes[0]!.start).toEqual([500, 600]);
    expect(known.from).toBe(400);
  });
  it('joins the swaps of a version into one band', () => {
    expect(
      syncBands([
        { lane: 'a', start: 10, ms: 5, version: 3 },
        { lane: 'b', start: 20, ms: 5, version: 3 },
        { lane: 'a', start: 1, ms: 1, version: 2 },
      ]),
    ).toEqual([
      { version: 2, from: 1, to: 2, replicas: 1 },
      { version: 3, from: 10, to: 25, replicas: 2 },
    ]);
  });
});
