import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { Keyboard } from '../../../runtime/cluster/drivers/keyboard.js';
import { charKeysym, keyKeysym, SHIFT, typedChars } from '../../../runtime/domain/keysyms.js';

describe('keysyms', () => {
  it('are Latin-1 code points or Unicode plus 0x01000000', () => {
    expect([...'aZ ~ÿ'].map(charKeysym)).toEqual([0x61, 0x5a, 0x20, 0x7e, 0xff]);
    expect(['Ā', '日', '😀'].map(charKeysym)).toEqual([0x01000100, 0x010065e5, 0x0101f600]);
  });
  it('map the control characters that have keys, and refuse the others', () => {
    expect(['\n', '\t', '\b', '\x1b', '\x7f'].map(charKeysym)).toEqual([0xff0d, 0xff09, 0xff08, 0xff1b, 0xffff]);
    for (const c of ['\0', '\x01', '\x85', '\ud800']) expect(() => charKeysym(c)).toThrow(/cannot be typed/);
  });
  it.each([
    ['ctrl', 0xffe3],
    ['Control_L', 0xffe3],
    ['ENTER', 0xff0d],
    ['Return', 0xff0d],
    ['f1', 0xffbe],
    ['F12', 0xffc9],
    ['PageUp', 0xff55],
    ['a', 0x61],
    ['A', 0x61],
    ['+', 0x2b],
    ['win', 0xffeb],
    ['space', 0x20],
    ['é', 0xe9],
    ['num7', 0xffb7],
    [' ', 0x20],
  ])('key %s', (k, sym) => {
    expect(keyKeysym(k)).toBe(sym);
  });
  it('refuse unknown names, and names that objects have by nature', () => {
    for (const k of ['hyper', 'f0', 'f36', '', 'constructor', '__proto__'])
      expect(() => keyKeysym(k)).toThrow(/no key called/);
  });
  it('count CR LF as one Enter', () => {
    expect(typedChars('a\r\nb\rc😀')).toEqual(['a', '\n', 'b', '\n', 'c', '😀']);
  });
});

/** Keycodes 8..: shift, a/A, b (lower case only), 1/!, then n spares. */
const board = (spares: number): Keyboard =>
  new Keyboard(
    8,
    2,
    new Uint32Array([SHIFT, 0, 0x61, 0x41, 0x62, 0, 0x31, 0x21, ...Array<number>(spares * 2).fill(0)]),
  );

describe('Keyboard', () => {
  it('finds keys and shift levels', () => {
    const [part] = board(2).plan([0x61, 0x41, 0x62, 0x42, 0x21]);
    expect(part).toEqual({
      remap: { codes: [], keysyms: [] },
      keys: [
        { code: 9, shift: false },
        { code: 9, shift: true },
        { code: 10, shift: false },
        { code: 10, shift: true },
        { code: 11, shift: true },
      ],
    });
  });
  it('puts other characters on spare keycodes once, and remembers them', () => {
    const k = board(2);
    expect(k.plan([0x1000100, 0x61, 0x1000100])).toEqual([
      {
        remap: { codes: [12], keysyms: [0x1000100] },
        keys: [
          { code: 12, shift: false },
          { code: 9, shift: false },
          { code: 12, shift: false },
        ],
      },
    ]);
    expect(k.plan([0x1000100])[0]!.remap.codes).toEqual([]);
  });
  it('needs a spare for what has no key', () => {
    expect(() => board(0).plan([0x1000100])).toThrow(RangeError);
  });

  it('types any text right: simulating the server, each key has the wanted keysym when it is pressed', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(
          fc.array(
            fc.constantFrom(0x61, 0x41, 0x31, 0x1000100, 0x1000101, 0x1000102, 0x1000103, 0x1000104, 0x1000105),
            { maxLength: 20 },
          ),
          { maxLength: 5 },
        ),
        (spares, texts) => {
          const k = board(spares),
            map = new Map<string, number>([
              ['9', 0x61],
              ['9s', 0x41],
              ['11', 0x31],
              ['10', 0x62],
              ['11s', 0x21],
            ]);
          for (const text of texts) {
            const got: number[] = [];
            for (const part of k.plan(text)) {
              part.remap.codes.forEach((c, i) => map.set(String(c), part.remap.keysyms[i]!));
              expect(new Set(part.remap.codes).size).toBe(part.remap.codes.length);
              for (const p of part.keys) got.push(map.get(`${p.code}${p.shift ? 's' : ''}`)!);
            }
            expect(got).toEqual(text);
          }
        },
      ),
    );
  });
});
