import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { random, StudioError, type Point } from '../../../runtime/domain/index.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import { pointIn, scrollTo, Sight, widgetsOf, windowBoxes } from '../../../runtime/tasks/suites/desk/moves.js';
import { cellNames, fillBoth } from '../../../runtime/tasks/suites/desk/templates/sheet.js';

const widget = { app: 'a', window: 'w', role: 'text', name: 'n', states: ['focused'], box: [1, 2, 3, 4] };
const printed = (v: unknown): Buffer => Buffer.from(JSON.stringify(v));

describe('widgets that a desktop lists', () => {
  it('reads role, name, states, box and text of each widget', () => {
    expect(widgetsOf(printed([widget, { ...widget, text: 't' }]))).toEqual([widget, { ...widget, text: 't' }]);
    expect(widgetsOf(printed([]))).toEqual([]);
  });
  it.each([
    ['no list', '{}'],
    ['no JSON', '['],
    ['lists without end', '['.repeat(200_000)],
    ['too many values', `[${'[],'.repeat(1 << 16)}[]]`],
    ['a name that is a number', JSON.stringify([{ ...widget, name: 1 }])],
    ['a box of two', JSON.stringify([{ ...widget, box: [1, 2] }])],
    ['a box of words', JSON.stringify([{ ...widget, box: ['1', '2', '3', '4'] }])],
    ['states that are none', JSON.stringify([{ ...widget, states: [{}] }])],
    ['nothing in it', '[null]'],
  ])('%s: an error', (_what, text) => {
    expect(() => widgetsOf(Buffer.from(text))).toThrow(StudioError);
  });
});

describe('windows as xwininfo prints them', () => {
  const block = (title: string, [x, y, width, height]: number[]): string => `
xwininfo: Window id: 0x1400003 "${title}"

  Absolute upper-left X:  ${x}
  Absolute upper-left Y:  ${y}
  Relative upper-left X:  1
  Relative upper-left Y:  23
  Width: ${width}
  Height: ${height}
  Depth: 24
  Corners:  +8+31  -8+31  -8-33  +8-33
  -geometry 80x24+7+8

`;
  const boxes = (text: string): unknown => windowBoxes(Buffer.from(text));
  it('have their places, but for those that show nothing', () => {
    expect(boxes(block('A', [8, -31, 624, 336]) + block('B', [0, 0, 1, 1]) + block('C', [1, 2, 3, 4]))).toEqual([
      { x: 8, y: -31, width: 624, height: 336 },
      { x: 1, y: 2, width: 3, height: 4 },
    ]);
    expect(boxes('')).toEqual([]);
  });
  it('are found after titles that look like them, and after any number of beginnings', () => {
    const begun = 'Absolute upper-left X:  1\n  Absolute upper-left Y:  2\n  '.repeat(100_000);
    for (const title of [begun, '\n  Width: 7\n  Height: 7\n', ' '.repeat(1 << 20)])
      expect((boxes(block(title, [8, 31, 624, 336])) as unknown[]).at(-1)).toEqual({
        x: 8,
        y: 31,
        width: 624,
        height: 336,
      });
  });
});

describe('a point to click', () => {
  /** From the list of all centres, as it was once chosen. */
  function reference(b: { x: number; y: number; width: number; height: number }, seed: number): Point {
    const first = (from: number): number => Math.ceil((from - 8) / 16) * 16 + 8,
      r = random(seed);
    for (const share of [0.25, 0.12, 0]) {
      const mx = Math.max(2, b.width * share),
        my = Math.max(2, b.height * share),
        inside: Point[] = [];
      for (let y = first(b.y + my); y <= b.y + b.height - my; y += 16)
        for (let x = first(b.x + mx); x <= b.x + b.width - mx; x += 16) inside.push({ x, y });
      if (inside.length > 0) return r.pick(inside);
    }
    return { x: Math.round(b.x + b.width / 2), y: Math.round(b.y + b.height / 2) };
  }
  it('is the one that a list of all centres would give', () => {
    const length = fc.integer({ min: -50, max: 1300 });
    fc.assert(
      fc.property(length, length, length, length, fc.integer(), (x, y, width, height, seed) => {
        expect(pointIn({ x, y, width, height }, random(seed))).toEqual(reference({ x, y, width, height }, seed));
      }),
      { numRuns: 1000 },
    );
  });
  it('is found in a widget that says it is larger than any screen', () => {
    const p = pointIn({ x: 0, y: 0, width: 2 ** 40, height: 2 ** 40 }, random(1));
    expect(p.x).toBeLessThan(2 ** 40);
  });
});

/** A desktop whose programs print this. */
const desktopThat = (prints: () => string): Desktop =>
  ({
    exec: () => Promise.resolve({ code: 0, stdout: Buffer.from(prints()), stderr: Buffer.alloc(0) }),
    settle: () => Promise.resolve(),
  }) as unknown as Desktop;

describe('scrolling to a row', () => {
  const ROW = 25,
    VIEW = { y: 40, height: 125 };
  it('ends with a click on it, wherever it is and whatever part of a page a turn of the wheel is', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 6, max: 40 }),
        fc.nat(39),
        fc.integer({ min: 20, max: 125 }),
        async (n, k, turn) => {
          const wanted = k % n,
            end = n * ROW - VIEW.height;
          let top = 0;
          const top0 = (i: number): number => VIEW.y + i * ROW - top,
            shown = (i: number): boolean => top0(i) + ROW > VIEW.y && top0(i) < VIEW.y + VIEW.height;
          const widgets = (): string =>
            JSON.stringify([
              { ...widget, role: 'scroll pane', name: '', box: [10, VIEW.y, 200, VIEW.height] },
              ...Array.from({ length: n }, (_, i) => i)
                .filter(shown)
                .map((i) => ({ ...widget, role: 'table cell', name: `row ${i}`, box: [10, top0(i), 200, ROW] })),
            ]);
          const sight = new Sight(desktopThat(widgets), random(k)),
            move = scrollTo({ role: 'table cell', name: `row ${wanted}` }, { role: 'scroll pane' });
          for (let step = 0; step < 60; step++) {
            const done = await move(sight);
            if ('again' in done) {
              const { direction } = done.again as { direction: string };
              top = Math.max(0, Math.min(end, top + (direction === 'up' ? -turn : turn)));
              continue;
            }
            const { y } = (done as { at: Point }).at;
            expect(Math.floor((y - VIEW.y + top) / ROW)).toBe(wanted);
            expect(y).toBeGreaterThanOrEqual(VIEW.y);
            expect(y).toBeLessThan(VIEW.y + VIEW.height);
            return;
          }
          expect.unreachable('it is never clicked');
        },
      ),
    );
  });
});

describe('two cells of a sheet', () => {
  it('are filled whichever they are, though Enter in the last row scrolls', async () => {
    const sight = new Sight(
      desktopThat(() => '  Absolute upper-left X:  0\n  Absolute upper-left Y:  0\n  Width: 549\n  Height: 290\n'),
      random(1),
    );
    for (const a of cellNames.slice(1))
      for (const b of cellNames.slice(1).filter((x) => x !== a)) {
        const held: Record<string, string> = {};
        let scrolled = 0,
          at = { col: 0, row: 0 };
        for (const move of fillBoth([a, '12'], [b, 'Fig'])) {
          const action = (await move(sight)) as { type: string; at: Point; text: string };
          if (action.type === 'click')
            at = {
              col: Math.floor((action.at.x - 58) / 80),
              row: Math.floor((action.at.y - 82) / 27) + scrolled,
            };
          else {
            held[`${'ABCDE'[at.col]!}${at.row + 1}`] = action.text.trim();
            at = { ...at, row: at.row + 1 };
            scrolled = Math.max(scrolled, at.row - 4);
          }
        }
        expect(held).toEqual({ [a]: '12', [b]: 'Fig' });
      }
  });
});
