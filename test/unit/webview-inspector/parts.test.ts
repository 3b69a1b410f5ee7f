import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { StepView } from '../../../runtime/protocol/types.js';
import { formatAction } from '../../../runtime/policy/actions/uiTars.js';
import {
  actionCall,
  actionIcon,
  actionName,
  actionsWords,
  actionWords,
  keycap,
  screenshotAlt,
  type Action,
} from '../../../webview/ui/actions.js';
import { markSteps, nextHigh, stepAt, timeline, xOf, type StepMark } from '../../../webview/ui/entropy.js';
import { duration, num, percent, signed } from '../../../webview/ui/format.js';
import { arrow, heatCells, marksOf } from '../../../webview/ui/overlay.js';
import { versionColour, versionSpans, versionWords } from '../../../webview/ui/versions.js';
import { centre, fit, keepInside, maxScale, minScale, pan, zoomAt, zoomStep } from '../../../webview/ui/viewMath.js';
import { clampScroll, move, pageOf, scrollTo, windowOf } from '../../../webview/ui/virtual.js';

const at = { x: 340, y: 220 };
const every: readonly Action[] = [
  { type: 'click', at, modifiers: ['ctrl'] },
  { type: 'left_double', at },
  { type: 'right_single', at },
  { type: 'drag', from: at, to: { x: 10, y: 20 } },
  { type: 'scroll', at, direction: 'left', amount: 4 },
  { type: 'scroll', at, direction: 'down' },
  { type: 'hotkey', keys: ['ctrl', 'shift', 's'] },
  { type: 'type', text: "it's\ta \\ line\n" },
  { type: 'wait' },
  { type: 'wait', ms: 500 },
  { type: 'finished' },
  { type: 'finished', answer: '42' },
  { type: 'fail' },
  { type: 'fail', reason: 'no such menu' },
];
const makeStep = (index: number, more: Partial<StepView> = {}): StepView => ({
  index,
  at: 0,
  frame: { hash: 'a'.repeat(64), width: 640, height: 400 },
  actions: [every[0]!],
  origin: 'policy',
  settled: true,
  timings: { observe: 0, queue: 0, decide: 0, perform: 0, settle: 0 },
  ...more,
});

describe('actions in words', () => {
  it('the screenshot of step 12 says what was done', () => {
    expect(screenshotAlt(makeStep(11, { actions: [{ type: 'click', at }] }), 'before')).toBe(
      'Step 12 screenshot: click at 340,220',
    );
    expect(screenshotAlt(makeStep(11, { actions: [] }), 'after')).toBe(
      'Step 12 screenshot after the action: no action',
    );
  });
  it('every action has words, a name, an icon, and the call that the runtime would write', () => {
    for (const a of every) {
      expect(actionWords(a)).not.toBe('');
      expect(actionName(a)).not.toBe('');
      expect(actionIcon(a)).toMatch(/^[a-z-]+$/);
      expect(actionCall(a)).toBe(formatAction(a, { mode: 'absolute', screen: { width: 640, height: 400 } }));
    }
    expect(actionsWords([every[1]!, every[6]!])).toBe('double click at 340,220, then press ctrl+shift+s');
    expect(actionWords(every[7]!)).toBe("type “it's⇥a \\ line⏎”");
    expect(['ctrl', 'pageup', 'f5', 's', 'Return', 'print', 'constructor'].map(keycap)).toEqual([
      'Ctrl',
      'PgUp',
      'F5',
      'S',
      'Enter',
      'Print',
      'Constructor',
    ]);
  });
});

it('numbers as people read them', () => {
  expect([num(1), num(0.5), num(-0.004), num(-1.256), num(Number.NaN)]).toEqual([
    '1',
    '0.5',
    '0',
    '−1.26',
    'not a number',
  ]);
  expect([signed(0.866), signed(-0.866), signed(0)]).toEqual(['+0.87', '−0.87', '0']);
  expect([percent(0.62), percent(0.0123), percent(0.00001), percent(0), percent(1)]).toEqual([
    '62 %',
    '1.2 %',
    '< 0.1 %',
    '0 %',
    '100 %',
  ]);
  expect([0, 0.4, 840, 999.6, 12_400, 59_960, 61_000, 3_600_000, 5_400_000].map(duration)).toEqual([
    '0 ms',
    '0.4 ms',
    '840 ms',
    '1 s',
    '12.4 s',
    '1 min',
    '1 min 1 s',
    '1 h',
    '1 h 30 min',
  ]);
});

describe('virtual strip', () => {
  const strip = fc.record({
    count: fc.nat(10_000),
    item: fc.integer({ min: 1, max: 300 }),
    viewport: fc.integer({ min: 1, max: 4000 }),
    scroll: fc.double({ min: -500, max: 4e6, noNaN: true }),
  });
  it('the window holds every item in sight and few others', () => {
    fc.assert(
      fc.property(strip, fc.nat(8), (s, over) => {
        const { from, to } = windowOf(s, over),
          scroll = clampScroll(s, s.scroll);
        expect(from).toBeGreaterThanOrEqual(0);
        expect(to).toBeLessThanOrEqual(s.count);
        for (let i = Math.floor(scroll / s.item); i * s.item < scroll + s.viewport && i < s.count; i++) {
          expect(i).toBeGreaterThanOrEqual(from);
          expect(i).toBeLessThan(to);
        }
        expect(to - from).toBeLessThanOrEqual(Math.ceil(s.viewport / s.item) + 2 + 2 * over);
      }),
    );
  });
  it('scrolling to an item shows it whole when it fits, and is settled after once', () => {
    fc.assert(
      fc.property(strip, fc.nat(9999), (s, n) => {
        fc.pre(s.count > 0);
        const i = n % s.count,
          to = scrollTo(s, i);
        if (s.viewport >= s.item) {
          expect(i * s.item).toBeGreaterThanOrEqual(to - 1e-6);
          expect((i + 1) * s.item).toBeLessThanOrEqual(to + s.viewport + 1e-6);
        }
        expect(scrollTo({ ...s, scroll: to }, i)).toBeCloseTo(to, 6);
      }),
    );
  });
  it('keys stay inside, and a page is less than what is seen', () => {
    fc.assert(
      fc.property(
        strip,
        fc.nat(9999),
        fc.constantFrom('previous', 'next', 'first', 'last', 'pageBack', 'pageOn' as const),
        (s, n, m) => {
          fc.pre(s.count > 0);
          const to = move(s, n % s.count, m);
          expect(to).toBeGreaterThanOrEqual(0);
          expect(to).toBeLessThan(s.count);
          expect(pageOf(s)).toBeGreaterThanOrEqual(1);
        },
      ),
    );
  });
});

describe('zoom and pan', () => {
  const size = fc.record({ width: fc.integer({ min: 1, max: 4000 }), height: fc.integer({ min: 1, max: 4000 }) });
  it('fit shows the whole picture, centred', () => {
    fc.assert(
      fc.property(size, size, (picture, box) => {
        const v = fit(picture, box);
        if (v.scale > minScale) {
          expect(picture.width * v.scale).toBeLessThanOrEqual(box.width + 1e-6);
          expect(picture.height * v.scale).toBeLessThanOrEqual(box.height + 1e-6);
        }
        expect(v.x).toBeCloseTo((box.width - picture.width * v.scale) / 2, 6);
      }),
    );
    expect(fit({ width: 640, height: 400 }, { width: 0, height: 0 }).scale).toBe(1);
  });
  it('what is under the pointer stays there unless an edge forbids it', () => {
    const picture = { width: 640, height: 400 },
      box = { width: 320, height: 200 },
      v = zoomAt(centre(picture, box, 1), 2, { x: 160, y: 100 }, picture, box);
    expect((160 - v.x) / v.scale).toBeCloseTo(320);
    expect((100 - v.y) / v.scale).toBeCloseTo(200);
  });
  it('a large picture never leaves a gap, a small one is centred, whatever was done', () => {
    const act = fc.oneof(
      fc.tuple(fc.constant('zoom'), fc.double({ min: 0.05, max: 20, noNaN: true }), fc.nat(500)),
      fc.tuple(fc.constant('pan'), fc.double({ min: -3000, max: 3000, noNaN: true }), fc.nat(500)),
    );
    fc.assert(
      fc.property(size, size, fc.array(act, { maxLength: 12 }), (picture, box, acts) => {
        let v = fit(picture, box);
        for (const [what, x, y] of acts)
          v = what === 'zoom' ? zoomAt(v, x, { x: y, y }, picture, box) : pan(v, x, y, picture, box);
        expect(v.scale).toBeGreaterThanOrEqual(minScale);
        expect(v.scale).toBeLessThanOrEqual(maxScale);
        const w = picture.width * v.scale;
        if (w <= box.width) expect(v.x).toBeCloseTo((box.width - w) / 2, 6);
        else {
          expect(v.x).toBeLessThanOrEqual(1e-6);
          expect(v.x + w).toBeGreaterThanOrEqual(box.width - 1e-6);
        }
        expect(keepInside(v, picture, box)).toEqual(v);
      }),
    );
  });
  it('the ladder goes up and down by round numbers and ends', () => {
    expect([
      zoomStep(1, 1),
      zoomStep(1, -1),
      zoomStep(1.4, 1),
      zoomStep(1.4, -1),
      zoomStep(16, 1),
      zoomStep(0.1, -1),
    ]).toEqual([1.25, 0.75, 1.5, 1.25, 16, 0.1]);
  });
});

describe('entropy', () => {
  const withEntropy = (es: readonly (number | undefined)[]): StepView[] =>
    es.map((entropy, i) => makeStep(i, entropy === undefined ? {} : { entropy }));
  it('the fifth with the highest entropy is high, never below the threshold, never where nothing was sampled', () => {
    expect(markSteps(withEntropy([0.1, 0.9, 0.2, 0.3, 0.8, 0.1, 0.2, 0.1, 0.1, 0.1]), 0.2).map((m) => m.high)).toEqual([
      false,
      true,
      false,
      false,
      true,
      false,
      false,
      false,
      false,
      false,
    ]);
    expect(markSteps(withEntropy([0.1, 0.2]), 0.5).some((m) => m.high)).toBe(false);
    expect(markSteps(withEntropy([undefined, undefined]), undefined).some((m) => m.high)).toBe(false);
    expect(markSteps(withEntropy([0, 0, 0]), undefined).some((m) => m.high)).toBe(false);
    expect(markSteps(withEntropy([0.4]), undefined)[0]!.high).toBe(true);
  });
  it('jumps find the nearest on each side', () => {
    const marks: StepMark[] = [0, 1, 0, 0, 1, 0].map((x) => ({ high: x === 1 }));
    expect([
      nextHigh(marks, 0, 1),
      nextHigh(marks, 1, 1),
      nextHigh(marks, 4, 1),
      nextHigh(marks, 4, -1),
      nextHigh(marks, 1, -1),
      nextHigh(marks, -1, 1),
    ]).toEqual([1, 4, undefined, 1, undefined, 1]);
  });
  const marksArb = fc
    .array(
      fc.record({
        entropy: fc.option(fc.double({ min: 0, max: 5, noNaN: true }), { nil: undefined }),
        high: fc.boolean(),
        kept: fc.option(fc.boolean(), { nil: undefined }),
      }),
      { maxLength: 400 },
    )
    .map((a) =>
      a.map((m): StepMark => ({
        high: m.high,
        ...(m.entropy === undefined ? {} : { entropy: m.entropy }),
        ...(m.kept === undefined ? {} : { kept: m.kept }),
      })),
    );
  it('bars cover every step once, stay inside, and a pixel leads back to its step', () => {
    fc.assert(
      fc.property(
        marksArb,
        fc.integer({ min: 30, max: 2000 }),
        fc.option(fc.double({ min: 0, max: 5, noNaN: true }), { nil: undefined }),
        (marks, width, threshold) => {
          const t = timeline(marks, {
            width,
            height: 50,
            maxSlot: 136,
            ...(threshold === undefined ? {} : { threshold }),
          });
          expect(t.bars.flatMap((b) => Array.from({ length: b.to - b.from }, (_, i) => b.from + i))).toEqual(
            marks.map((_, i) => i),
          );
          for (const b of t.bars) {
            expect(b.x + b.width).toBeLessThanOrEqual(width + 1e-6);
            expect(b.y).toBeGreaterThanOrEqual(-1e-6);
            expect(b.y + b.height).toBeCloseTo(50, 6);
            const part = marks.slice(b.from, b.to);
            expect(b.entropy).toBe(
              part.some((m) => m.entropy !== undefined) ? Math.max(...part.map((m) => m.entropy ?? -1)) : undefined,
            );
            expect(b.high).toBe(part.some((m) => m.high));
          }
          if (t.thresholdY !== undefined) expect(t.thresholdY).toBeGreaterThanOrEqual(-1e-6);
          marks.forEach((_, i) => expect(stepAt(t, xOf(t, i))).toBe(i));
        },
      ),
    );
  });
  it('bars stand under their pictures while these fit, and share when there is less than 3 px for one', () => {
    const few = timeline(
      [
        { high: false, entropy: 1 },
        { high: false, entropy: 2 },
      ],
      { width: 1000, height: 50, maxSlot: 136 },
    );
    expect([few.slot, few.perBar, xOf(few, 1)]).toEqual([136, 1, 204]);
    const many = timeline(
      Array.from({ length: 10_000 }, (): StepMark => ({ high: false, entropy: 1 })),
      { width: 900, height: 50, maxSlot: 136 },
    );
    expect(many.perBar).toBeGreaterThan(1);
    expect(many.bars.length).toBeLessThanOrEqual(300);
    expect(stepAt(many, -1)).toBeUndefined();
    expect(stepAt(many, 901)).toBeUndefined();
  });
});

describe('overlay', () => {
  it('every action is drawn or said', () => {
    for (const a of every) {
      const { marks, notes } = marksOf([a]);
      expect(marks.length + notes.length).toBeGreaterThan(0);
    }
    expect(marksOf([every[0]!]).notes).toEqual([{ order: 0, kind: 'keys', caps: ['Ctrl'] }]);
    expect(marksOf([every[1]!, every[6]!]).marks[0]!.order).toBe(1);
    expect(marksOf([every[1]!, every[6]!]).notes[0]).toEqual({ order: 2, kind: 'keys', caps: ['Ctrl', 'Shift', 'S'] });
  });
  it('places: the same one keeps its highest probability; heat grows with it and ends at 1', () => {
    const place = (x: number, probability: number) => ({
      label: `${x}`,
      probability,
      at: { x, y: 0, width: 16, height: 16 },
    });
    const cells = heatCells([
      {
        label: 'a',
        logprob: 0,
        entropy: 0,
        alternatives: [place(0, 0.2), place(16, 0.1), { label: 'no place', probability: 0.5 }],
      },
      { label: 'b', logprob: 0, entropy: 0, alternatives: [place(0, 0.4), place(32, 0)] },
    ]);
    expect(cells.map((c) => [c.x, c.probability, Number(c.heat.toFixed(3))])).toEqual([
      [16, 0.1, 0.5],
      [0, 0.4, 1],
    ]);
    expect(heatCells(undefined)).toEqual([]);
  });
  it('an arrow ends at its target, however short', () => {
    fc.assert(
      fc.property(fc.tuple(fc.integer(), fc.integer(), fc.integer(), fc.integer()), ([a, b, c, d]) => {
        const w = arrow({ x: a, y: b }, { x: c, y: d }, 16);
        expect(w.tip).toEqual({ x: c, y: d });
        for (const p of [w.neck, ...w.wings]) expect(Number.isFinite(p.x) && Number.isFinite(p.y)).toBe(true);
      }),
    );
  });
});

it('version spans follow each other without a gap and neighbours differ', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(4), { nil: undefined }), { maxLength: 60 }), (versions) => {
      const spans = versionSpans(versions.map((version, i) => makeStep(i, version === undefined ? {} : { version })));
      expect(spans.flatMap((x) => Array.from({ length: x.to - x.from }, () => x.version))).toEqual(versions);
      spans.forEach((x, i) => {
        if (i) {
          expect(x.version).not.toBe(spans[i - 1]!.version);
          expect(x.from).toBe(spans[i - 1]!.to);
        }
      });
    }),
  );
  expect(versionWords(versionSpans([makeStep(0, { version: 12 }), makeStep(1), makeStep(2, { version: 14 })]))).toBe(
    'v12 to v14',
  );
  expect(versionWords([])).toBe('no policy');
  expect(versionColour(3)).not.toBe(versionColour(4));
});
