import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { random, StudioError, type Point } from '../../../runtime/domain/index.js';
import { pointIn, widgetsOf, windowBoxes } from '../../../runtime/tasks/suites/desk/moves.js';

const widget = { app: 'a', window: 'w', role: 'text', name: 'n', states: ['focused'], box: [1, 2, 3, 4] };
const printed = (v: unknown): Buffer => Buffer.from(JSON.stringify(v));

describe('widgets that a desktop lists', () => {
  it('are read', () => {
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
