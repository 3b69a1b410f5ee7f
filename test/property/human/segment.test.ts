import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyKeysym } from '../../../runtime/domain/keysyms.js';
import type { Action } from '../../../runtime/domain/index.js';
import type { InputEvent } from '../../../runtime/protocol/types.js';
import { Segmenter, type Cut, type SegmentOptions } from '../../../runtime/human/segment.js';
import { Tidy } from '../../../runtime/human/tidy.js';

const screen = { width: 640, height: 400 };
function segment(events: readonly InputEvent[], o: SegmentOptions = {}): Cut[] {
  const tidy = new Tidy(screen),
    s = new Segmenter(o),
    out: Cut[] = [];
  for (const e of tidy.take(events)) out.push(...s.push(e));
  return [...out, ...s.flush((events.at(-1)?.at ?? 0) + 10_000)];
}
const actions = (events: readonly InputEvent[], o?: SegmentOptions): Action[] =>
  segment(events, o).map((c) => c.action);

/** A little language of what a person does, with its time. */
let t = 0;
const at = (): number => (t += 20);
const press = (x: number, y: number, button: 'left' | 'right' = 'left'): InputEvent[] => [
  { type: 'move', at: at(), x, y },
  { type: 'button', at: at(), x, y, button, down: true },
  { type: 'button', at: at(), x, y, button, down: false },
];
const key = (...names: string[]): InputEvent[] => [
  ...names.map((k): InputEvent => ({ type: 'key', at: at(), key: k, down: true })),
  ...[...names].reverse().map((k): InputEvent => ({ type: 'key', at: at(), key: k, down: false })),
];
const text = (s: string): InputEvent[] => [...s].flatMap((c) => key(c === '\n' ? 'Enter' : c === '\t' ? 'Tab' : c));
const pause = (ms = 5000): InputEvent[] => {
  t += ms;
  return [];
};

describe('segmentation', () => {
  it('clicks, double clicks, drags', () => {
    expect(actions([...press(10, 20), ...pause(), ...press(10, 21)])).toEqual([
      { type: 'click', at: { x: 10, y: 20 } },
      { type: 'click', at: { x: 10, y: 21 } },
    ]);
    expect(actions([...press(10, 20), ...press(12, 19)])).toEqual([{ type: 'left_double', at: { x: 10, y: 20 } }]);
    expect(actions([...press(10, 20), ...press(60, 20)])).toEqual([
      { type: 'click', at: { x: 10, y: 20 } },
      { type: 'click', at: { x: 60, y: 20 } },
    ]);
    expect(actions([...press(10, 20), ...press(10, 20), ...press(10, 20)]).map((a) => a.type)).toEqual([
      'left_double',
      'click',
    ]);
    expect(actions(press(10, 20, 'right'))).toEqual([{ type: 'right_single', at: { x: 10, y: 20 } }]);
    expect(
      actions([
        { type: 'button', at: 1, x: 10, y: 10, button: 'left', down: true },
        { type: 'move', at: 2, x: 300, y: 90 },
        { type: 'button', at: 3, x: 301, y: 90, button: 'left', down: false },
      ]),
    ).toEqual([{ type: 'drag', from: { x: 10, y: 10 }, to: { x: 301, y: 90 } }]);
    expect(
      actions([
        { type: 'key', at: 0, key: 'Control', down: true },
        ...press(5, 5),
        { type: 'key', at: at(), key: 'Control', down: false },
      ]),
    ).toEqual([{ type: 'click', at: { x: 5, y: 5 }, modifiers: ['ctrl'] }]);
    // A press that nobody lets go of is let go of at the end.
    expect(actions([{ type: 'button', at: 1, x: 10, y: 10, button: 'left', down: true }])).toEqual([
      { type: 'click', at: { x: 10, y: 10 } },
    ]);
  });

  it('typing is one action until a pause, a click, a chord', () => {
    expect(actions(text('hello, Wörld'))).toEqual([{ type: 'type', text: 'hello, Wörld' }]);
    expect(actions([...text('ab'), ...pause(), ...text('cd'), ...press(1, 1)])).toEqual([
      { type: 'type', text: 'ab' },
      { type: 'type', text: 'cd' },
      { type: 'click', at: { x: 1, y: 1 } },
    ]);
    expect(actions([...text('ab'), ...key('Control', 's')])).toEqual([
      { type: 'type', text: 'ab' },
      { type: 'hotkey', keys: ['ctrl', 's'] },
    ]);
    expect(actions(text('helo').concat(key('Backspace'), text('lo')))).toEqual([{ type: 'type', text: 'hello' }]);
    expect(actions([...text('a'), ...key('Backspace')])).toEqual([]);
    expect(actions([...key('Shift', 'A'), { type: 'text', at: at(), text: '日本\r\nx' }])).toEqual([
      { type: 'type', text: 'A日本\nx' },
    ]);
  });

  it('Enter and Tab are where the policy can have them', () => {
    expect(actions(text('a\tb\nc'))).toEqual([{ type: 'type', text: 'a\tb\nc' }]);
    expect(actions(text('a\tb\nc'), { enter: 'end', tab: 'own' })).toEqual([
      { type: 'type', text: 'a' },
      { type: 'hotkey', keys: ['tab'] },
      { type: 'type', text: 'b\n' },
      { type: 'type', text: 'c' },
    ]);
    expect(actions([...key('Enter'), ...key('Tab'), ...key(' '), ...pause(), ...key('Shift', 'Tab')])).toEqual([
      { type: 'hotkey', keys: ['enter'] },
      { type: 'hotkey', keys: ['tab'] },
      { type: 'hotkey', keys: ['space'] },
      { type: 'hotkey', keys: ['shift', 'tab'] },
    ]);
  });

  it('chords and keys with names', () => {
    expect(actions([...key('Control', 'Shift', 'N'), ...key('ArrowDown'), ...key('F5'), ...key('Alt', 'F4')])).toEqual([
      { type: 'hotkey', keys: ['ctrl', 'shift', 'n'] },
      { type: 'hotkey', keys: ['arrowdown'] },
      { type: 'hotkey', keys: ['f5'] },
      { type: 'hotkey', keys: ['alt', 'f4'] },
    ]);
    expect(actions([...key('Meta'), ...key('Shift'), ...key('Control')])).toEqual([
      { type: 'hotkey', keys: ['super'] },
    ]);
    // AltGr composes; the Control that some systems send with it is none.
    expect(
      actions([
        { type: 'key', at: at(), key: 'Control', down: true },
        { type: 'key', at: at(), key: 'AltGraph', down: true },
        ...text('@'),
      ]),
    ).toEqual([{ type: 'type', text: '@' }]);
  });

  it('a burst of the wheel is one scroll, at most 20 clicks', () => {
    const wheel = (dy: number, dx = 0): InputEvent[] => [{ type: 'wheel', at: at(), x: 50, y: 60, dx, dy }];
    expect(actions([...wheel(1), ...wheel(2), ...wheel(1)])).toEqual([
      { type: 'scroll', at: { x: 50, y: 60 }, direction: 'down', amount: 4 },
    ]);
    expect(
      actions([...wheel(-1), ...wheel(1), ...wheel(0, -1)]).map((a) => (a as { direction: string }).direction),
    ).toEqual(['up', 'down', 'left']);
    expect(actions([...wheel(15), ...wheel(15), ...wheel(15)]).map((a) => (a as { amount: number }).amount)).toEqual([
      20, 20, 5,
    ]);
    expect(actions([...wheel(0.4), ...wheel(0.4), ...wheel(0.4)])).toEqual([
      { type: 'scroll', at: { x: 50, y: 60 }, direction: 'down', amount: 1 },
    ]);
  });

  it('a text that is called like something every object has is typed', () => {
    for (const text of ['toString', 'constructor', '__proto__'])
      expect(actions([{ type: 'text', at: at(), text }])).toEqual([{ type: 'type', text }]);
  });

  const coordinate = fc.oneof(fc.integer({ min: -20, max: 700 }), fc.constantFrom(NaN, Infinity, 5.5)),
    place = { x: coordinate, y: coordinate },
    when = fc.nat({ max: 2500 });
  const any = fc
    .array(
      fc.oneof(
        fc.record({ type: fc.constant('move' as const), at: when, ...place }),
        fc.record({
          type: fc.constant('button' as const),
          at: when,
          ...place,
          button: fc.constantFrom('left', 'middle', 'right'),
          down: fc.boolean(),
        }),
        fc.record({
          type: fc.constant('wheel' as const),
          at: when,
          ...place,
          dx: fc.integer({ min: -30, max: 30 }),
          dy: fc.integer({ min: -30, max: 30 }),
        }),
        fc.record({
          type: fc.constant('key' as const),
          at: when,
          key: fc.oneof(
            fc.constantFrom(
              'Enter',
              'Tab',
              'Backspace',
              'Control',
              'Shift',
              'Alt',
              'Meta',
              'AltGraph',
              'Dead',
              'F3',
              'Escape',
              'ArrowUp',
              'CapsLock',
              'Nonsense',
              ' ',
              '\u0008',
            ),
            fc.string({ minLength: 1, maxLength: 1, unit: 'grapheme' }),
          ),
          down: fc.boolean(),
        }),
        fc.record({ type: fc.constant('text' as const), at: when, text: fc.string({ unit: 'grapheme' }) }),
      ),
      { maxLength: 60 },
    )
    .map((es) => {
      let now = 0;
      return es.map((e) => ({ ...e, at: (now += e.at) })) as InputEvent[];
    });

  it('whatever comes, every action is one the policy could have taken, in the order of time', () => {
    fc.assert(
      fc.property(any, fc.constantFrom<SegmentOptions>({}, { enter: 'end', tab: 'own' }), (events, o) => {
        let last = 0;
        for (const { action: a, began, ended } of segment(events, o)) {
          expect(ended).toBeGreaterThanOrEqual(began);
          expect(ended).toBeGreaterThanOrEqual(last);
          last = ended;
          for (const p of 'at' in a ? [a.at] : a.type === 'drag' ? [a.from, a.to] : [])
            expect(
              Number.isInteger(p.x) && p.x >= 0 && p.x < 640 && Number.isInteger(p.y) && p.y >= 0 && p.y < 400,
            ).toBe(true);
          if (a.type === 'scroll') expect(a.amount! >= 1 && a.amount! <= 20).toBe(true);
          if (a.type === 'hotkey') for (const k of a.keys) keyKeysym(k);
          if (a.type === 'type') {
            expect(a.text).not.toBe('');
            if (o.enter === 'end') expect(a.text.slice(0, -1)).not.toContain('\n');
            if (o.tab === 'own') expect(a.text).not.toContain('\t');
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('no wheel click and no character is lost or made up', () => {
    fc.assert(
      fc.property(any, (events) => {
        const given = new Tidy(screen).take(
          events.filter((e) => !(e.type === 'key' && (e.key === 'Backspace' || e.key === 'AltGraph'))),
        );
        const clicks = given.reduce((n, e) => n + (e.type === 'wheel' ? Math.abs(e.dx + e.dy) : 0), 0);
        const s = new Segmenter(),
          cuts = [...given.flatMap((e) => s.push(e)), ...s.flush(1e9)].map((c) => c.action);
        expect(cuts.reduce((n, a) => n + (a.type === 'scroll' ? a.amount! : 0), 0)).toBe(clicks);
        const chars =
          given.reduce((n, e) => n + (e.type === 'text' ? [...e.text].length : 0), 0) +
          given.filter((e) => e.type === 'key' && e.down && !['Control', 'Shift', 'Alt', 'Meta'].includes(e.key))
            .length;
        expect(
          cuts.reduce(
            (n, a) =>
              n +
              (a.type === 'type'
                ? [...a.text].length
                : a.type === 'hotkey' && !(a.keys.length === 1 && (a.keys[0] === 'alt' || a.keys[0] === 'super'))
                  ? 1
                  : 0),
            0,
          ),
        ).toBe(chars);
      }),
      { numRuns: 300 },
    );
  });
});
