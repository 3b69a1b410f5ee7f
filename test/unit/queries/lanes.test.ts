import { describe, expect, it } from 'vitest';
import type { EventOf } from '../../../runtime/data/events.js';
import { id, type DesktopId, type ReplicaId, type RolloutId } from '../../../runtime/domain/index.js';
import { checkRecord } from '../../../runtime/data/store/recordChecks.js';
import { SpanRecorder } from '../../../runtime/run/spanRecorder.js';
import { coarse, concurrencyOf, joinSpans, mergeSpans, placesOf, spansIn } from '../../../runtime/queries/lanes.js';

const rollout = (s: string): RolloutId => id<RolloutId>(s);

describe('lanes', () => {
  const span = (what: 'act' | 'decide' | 'update', start: number, ms: number, of = 'r1', version = -1) => ({
    what,
    start,
    ms,
    rollout: of,
    version,
  });
  it('merges what is thinner than a pixel into what took most of it, and nothing else', () => {
    expect(
      mergeSpans(
        [span('act', 0, 1), span('decide', 1, 3), span('act', 4, 1), span('act', 30, 20), span('decide', 60, 2)],
        10,
      ),
    ).toEqual([span('decide', 0, 5), span('act', 30, 20), span('decide', 60, 2)]);
    // What was idle between them is not counted as busy.
    expect(mergeSpans([span('act', 0, 1, 'a'), span('act', 2, 1, 'b')], 10)).toEqual([span('act', 0, 2, '')]);
  });
  it('a clock that is set leaves nothing in the journal that a reader refuses', () => {
    const written: EventOf<'spans'>[] = [],
      r = new SpanRecorder((e) => written.push(e)),
      decided = (start: number, ms: number) =>
        r.onModels({
          type: 'decided',
          replica: id<ReplicaId>('r'),
          session: 's',
          start,
          ms,
          version: 1,
        } as unknown as Parameters<SpanRecorder['onModels']>[0]);
    decided(0, 5);
    decided(Date.UTC(2026, 0, 1), 5);
    decided(Date.UTC(2026, 0, 1), -20);
    r.flush(Date.UTC(2026, 0, 1), true);
    for (const e of written) checkRecord(e);
    expect(written.map((e) => [e.t0, [...e.ms]])).toEqual([[Date.UTC(2026, 0, 1), [5, 0]]]);
  });
  it('comes to an end where a pixel is less than one time differs from the next', () => {
    const far = [span('act', 8e15, 0), span('act', 8e15, 0), span('decide', 8e15 + 1, 0)];
    expect(mergeSpans(far, 1e-3)).toEqual(far);
  });
  it('the lowest free place is given, as by looking at all of them', () => {
    const looked = (lives: Parameters<typeof placesOf>[0]): Map<string, number> => {
      const until: number[] = [],
        out = new Map<string, number>();
      for (const l of lives) {
        const free = until.findIndex((end) => end <= l.from),
          place = free < 0 ? until.length : free;
        until[place] = l.to;
        out.set(l.id, place);
      }
      return out;
    };
    let n = 1;
    const next = (below: number): number => (n = (n * 16_807) % 2_147_483_647) % below,
      lives = Array.from({ length: 500 }, (_, i) => ({ id: `d${i}`, from: 3 * i, to: 3 * i + next(200) }));
    expect(placesOf([...lives].reverse())).toEqual(looked(lives));
  });
  it('a replica that answers now and then is as busy at any width', () => {
    const spans = Array.from({ length: 2000 }, (_, i) => span('decide', i * 100, 16)),
      busy = (xs: readonly { readonly ms: number }[]): number => xs.reduce((a, x) => a + x.ms, 0);
    for (const pixel of [1, 20, 150, 999, 5000]) expect(busy(mergeSpans(spans, pixel))).toBeCloseTo(busy(spans), 6);
  });
  it('calls of a replica that overlap are as many at any width', () => {
    // Sixteen at a time, each of 3.2 s.
    const spans = Array.from({ length: 2000 }, (_, i) => span('decide', i * 200, 3200)),
      work = (xs: readonly { readonly ms: number; readonly calls?: number }[]): number =>
        xs.reduce((a, x) => a + x.ms * (x.calls ?? 1), 0);
    for (const pixel of [1000, 5000, 20_000]) {
      const drawn = mergeSpans(spans, pixel);
      expect(work(drawn)).toBeCloseTo(work(spans), 3);
      // Nothing is drawn for longer than it lasted.
      for (const s of drawn) expect(s.ms).toBeLessThanOrEqual(pixel + 3200);
    }
    expect(mergeSpans(spans, 20_000)[1]!.calls).toBeGreaterThan(10);
  });
  it('of a minute of such calls so many were under way; of desktops no minute is longer than it is', () => {
    expect(coarse('replica', 16 * 60_000, 60_000)).toEqual({ ms: 60_000, calls: 16 });
    expect(coarse('replica', 30_000, 60_000)).toEqual({ ms: 30_000 });
    expect(coarse('desktop', 61_000, 60_000)).toEqual({ ms: 60_000 });
  });
  it('how many calls a replica takes is said of those on model servers alone, whatever a stranger wrote', () => {
    expect(concurrencyOf({ policy: { kind: 'vlm', vlm: { concurrency: 16 } } })).toBe(16);
    expect(concurrencyOf({ policy: { kind: 'embedded', vlm: { concurrency: 16 } } })).toBeUndefined();
    for (const odd of [undefined, 7, {}, { policy: 3 }, { policy: { kind: 'vlm', vlm: { concurrency: 'x' } } }])
      expect(concurrencyOf(odd)).toBeUndefined();
  });
  it('desktops that replace one another share a place', () => {
    const lives = Array.from({ length: 36 }, (_, i) => ({
      id: `local-${i}`,
      from: Math.floor(i / 6) * 1000 + (i % 6),
      to: Math.floor(i / 6) * 1000 + 990,
    }));
    const places = placesOf([...lives].reverse());
    expect(new Set(places.values())).toEqual(new Set([0, 1, 2, 3, 4, 5]));
    for (const [place] of new Set([...places.values()]).entries()) {
      const mine = lives.filter((l) => places.get(l.id) === place).sort((a, b) => a.from - b.from);
      for (let i = 1; i < mine.length; i++) expect(mine[i]!.from).toBeGreaterThanOrEqual(mine[i - 1]!.to);
    }
  });

  it('what takes minutes is written as it goes on, and read as one span', () => {
    const out: EventOf<'spans'>[] = [],
      r = new SpanRecorder((e) => out.push(e)),
      desktop = id<DesktopId>('d1'),
      drawn = (lane: string): ReturnType<typeof spansIn> =>
        joinSpans(out.filter((e) => e.lane === lane).flatMap(spansIn));
    r.onScheduler({ type: 'lane', desktop, phase: 'perform', rollout: rollout('r1'), at: 500 });
    r.trainerBegins('update', 1000);
    for (let now = 2000; now < 120_000; now += 2000) {
      r.flush(now);
      // No more than a few seconds are missing from what is drawn.
      const until = drawn('trainer').at(-1);
      expect(now - (until ? until.start + until.ms : 1000)).toBeLessThanOrEqual(4000);
    }
    r.trainerEnds(120_000, 7);
    r.onScheduler({ type: 'lane', desktop, phase: 'released', at: 120_000 });
    r.flush(120_000, true);
    expect(drawn('trainer')).toEqual([span('update', 1000, 119_000, '', 7)]);
    expect(drawn('d1')).toEqual([span('act', 500, 119_500)]);
    // One that failed is as long as it was, and the next one begins anew.
    r.trainerBegins('update', 130_000);
    r.trainerEnds(130_500, undefined);
    r.trainerBegins('update', 140_000);
    r.trainerEnds(140_100, 8);
    expect(drawn('trainer').slice(1)).toEqual([
      span('update', 130_000, 500, '', -1),
      span('update', 140_000, 100, '', 8),
    ]);
  });

  it('records what desktops do a few seconds at once, and decisions and syncs of a replica by version', () => {
    const out: EventOf<'spans'>[] = [],
      r = new SpanRecorder((e) => out.push(e)),
      desktop = id<DesktopId>('d1'),
      replica = id<ReplicaId>('replica-1');
    const lane = (phase: 'setup' | 'observe' | 'perform' | 'released', at: number) => {
      r.onScheduler({ type: 'lane', desktop, phase, ...(phase === 'released' ? {} : { rollout: rollout('r1') }), at });
    };
    r.onPool({ type: 'state', desktop, state: 'resetting', at: 900 });
    r.onPool({ type: 'state', desktop, state: 'ready', at: 950 });
    lane('setup', 1000);
    lane('observe', 1100);
    lane('perform', 1103);
    lane('released', 1110);
    r.onPool({ type: 'state', desktop, state: 'resetting', at: 1110 });
    r.onPool({ type: 'state', desktop, state: 'ready', at: 1200 });
    r.flush(1500);
    expect(out).toEqual([]);
    r.flush(4000);
    expect(out).toHaveLength(1);
    expect({
      ...out[0],
      what: [...out[0]!.what],
      start: [...out[0]!.start],
      ms: [...out[0]!.ms],
      of: [...out[0]!.of],
    }).toEqual({
      type: 'spans',
      lane: 'd1',
      kind: 'desktop',
      t0: 900,
      rollouts: ['r1'],
      what: [0, 1, 2, 4, 0],
      start: [0, 100, 200, 203, 210],
      ms: [50, 100, 3, 7, 90],
      of: [255, 0, 0, 0, 255],
    });
    r.onModels({ type: 'decided', replica, session: 'r1', version: 1, start: 2000, ms: 5 });
    r.onModels({ type: 'phase', replica, phase: 'draining', version: 1, at: 2010 });
    r.onModels({ type: 'phase', replica, phase: 'swapping', version: 1, at: 2015 });
    r.onModels({ type: 'phase', replica, phase: 'admitting', version: 2, at: 2030 });
    r.flush(2040);
    expect(out).toHaveLength(2);
    r.flush(9000);
    expect(out.slice(1).map((e) => [e.lane, e.version, [...e.what], [...e.ms]])).toEqual([
      ['replica-1', 1, [3], [5]],
      ['replica-1', 2, [9], [20]],
    ]);
    r.trainerBegins('update', 3000);
    r.trainerEnds(3500, 3);
    expect(out.at(-1)).toMatchObject({ lane: 'trainer', kind: 'trainer', version: 3 });
  });
});
