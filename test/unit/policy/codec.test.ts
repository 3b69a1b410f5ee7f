import { describe, expect, it } from 'vitest';
import type { Action, Frame } from '../../../runtime/domain/index.js';
import {
  GLYPH_SPEC,
  READER_2_SPEC,
  READER_SPEC,
  choiceOf,
  gridOf,
  headOffsets,
  headSizes,
  seenText,
} from '../../../runtime/domain/index.js';
import {
  choiceLabel,
  decodeChoices,
  encodeAction,
  encodeActions,
  encodeHistory,
  placeOfText,
  stateKey,
  textToFind,
} from '../../../runtime/policy/embedded/codec.js';
import { TOKEN_CLASS, encodeInstruction, tokenizeInstruction } from '../../../runtime/policy/embedded/instruction.js';
import { cellAt, cellCentre, encodeObservation, viewOf } from '../../../runtime/policy/embedded/observation.js';
import { frameOf } from '../../helpers/policy/frames.js';
import { encodeFrame } from '../../helpers/policy/encodeFrame.js';

const spec = GLYPH_SPEC;
const screen = { width: 640, height: 400 };
const words = (s: string): string[] => tokenizeInstruction(spec, s).map((t) => `${t.text}:${t.kind}`);

describe('observation', () => {
  it('is the mean luminance of each 2x2 block of a 640x400 screen', () => {
    const f = frameOf(640, 400, (x, y) => [x % 256, y % 256, (x * y) % 256]);
    const obs = encodeObservation(spec, f);
    expect(obs.length).toBe(320 * 200);
    for (const [x, y] of [
      [0, 0],
      [319, 199],
      [17, 101],
      [200, 3],
    ] as const) {
      let sum = 0;
      for (const [dx, dy] of [
        [0, 0],
        [1, 0],
        [0, 1],
        [1, 1],
      ] as const) {
        const px = 2 * x + dx,
          py = 2 * y + dy;
        sum += 77 * (px % 256) + 150 * (py % 256) + 29 * ((px * py) % 256);
      }
      expect(obs[y * 320 + x]).toBe(Math.floor(sum / 1024 + 0.5));
    }
  });
  it('gives white, black and the primary colours their BT.601 luminance at any size', () => {
    for (const [w, h] of [
      [640, 400],
      [1280, 800],
      [333, 208],
      [160, 100],
    ] as const) {
      for (const [rgb, lum] of [
        [[255, 255, 255], 255],
        [[0, 0, 0], 0],
        [[255, 0, 0], 77],
        [[0, 255, 0], 149],
        [[0, 0, 255], 29],
      ] as const) {
        const obs = encodeObservation(
          spec,
          frameOf(w, h, () => [...rgb]),
        );
        expect(obs[100 * 320 + 160]).toBe(lum);
      }
    }
  });
  it('letterboxes a wider screen in black above and below', () => {
    const view = viewOf(spec, { width: 1280, height: 720 });
    expect(view).toMatchObject({ x: 0, y: 10, width: 320, height: 180 });
    const obs = encodeObservation(
      spec,
      frameOf(1280, 720, () => [200, 200, 200]),
    );
    expect([obs[9 * 320], obs[10 * 320], obs[189 * 320], obs[190 * 320]]).toEqual([0, 200, 200, 0]);
  });
  it('letterboxes a taller screen left and right', () => {
    expect(viewOf(spec, { width: 1024, height: 768 })).toMatchObject({ x: 26, y: 0, width: 267, height: 200 });
  });
  it('takes an unaligned buffer and a reused output', () => {
    const f = frameOf(640, 400, (x, y) => [x & 255, y & 255, 9]);
    const odd = Buffer.alloc(f.data.length + 1);
    f.data.copy(odd, 1);
    const into = new Uint8Array(64000).fill(7);
    expect(encodeObservation(spec, { ...f, data: odd.subarray(1) }, into)).toBe(into);
    expect(Buffer.from(into).equals(Buffer.from(encodeObservation(spec, f)))).toBe(true);
  });
  it('refuses a frame with too few bytes', () => {
    expect(() => encodeObservation(spec, { width: 640, height: 400, data: Buffer.alloc(10), capturedAt: 0 })).toThrow(
      RangeError,
    );
  });
  it('maps every cell of a 640x400 screen to its 16-pixel centre and back', () => {
    const view = viewOf(spec, screen);
    const { cols, rows } = gridOf(spec);
    expect([cols, rows]).toEqual([40, 25]);
    for (let c = 0; c < cols * rows; c++) {
      const p = cellCentre(spec, view, c);
      expect(p).toEqual({ x: 16 * (c % cols) + 8, y: 16 * Math.floor(c / cols) + 8 });
      expect(cellAt(spec, view, p)).toBe(c);
    }
    expect(cellAt(spec, view, { x: 640, y: 10 })).toBeUndefined();
    expect(cellAt(spec, view, { x: 10, y: -1 })).toBeUndefined();
    expect(cellAt(spec, view, { x: 639, y: 399 })).toBe(999);
  });
});

describe('instruction', () => {
  it('splits words, keeps quoted spans whole and drops punctuation around words', () => {
    expect(words('Open "My Report.txt", then type \'hello world\' (and save it).')).toEqual([
      'Open:word',
      'My Report.txt:quoted',
      'then:word',
      'type:word',
      'hello world:quoted',
      'and:word',
      'save:word',
      'it:word',
    ]);
  });
  it('tells numbers, paths, expressions and names', () => {
    expect(
      words(
        'Compute 12*7 and (3+4)*2, write 84 or 3.5 to ~/Documents/out.csv in Notes as =SUM(A1:A3), cell B2, .bashrc',
      ),
    ).toEqual([
      'Compute:word',
      '12*7:expression',
      'and:word',
      '(3+4)*2:expression',
      'write:word',
      '84:number',
      'or:word',
      '3.5:number',
      'to:word',
      '~/Documents/out.csv:path',
      'in:word',
      'Notes:name',
      'as:word',
      '=SUM(A1:A3):expression',
      'cell:word',
      'B2:other',
      '.bashrc:path',
    ]);
  });
  it('takes an apostrophe for what it is', () => {
    expect(words("don't close the user's 'it's fine' window")).toEqual([
      "don't:word",
      'close:word',
      'the:word',
      "user's:word",
      "it's fine:quoted",
      'window:word',
    ]);
  });
  it('treats a lone quote as punctuation and typographic quotes as quotes', () => {
    expect(words('say "hi and \u201cbye now\u201d')).toEqual(['say:word', 'hi:word', 'and:word', 'bye now:quoted']);
  });
  it('keeps what may have to be typed when there are too many words', () => {
    const long = `Please open the file and then in the window that is on the left of the screen select the second of the rows in the table and type "last words" into it and press 7`;
    const t = tokenizeInstruction(spec, long);
    expect(t.length).toBe(24);
    expect(t.map((x) => x.text)).toContain('last words');
    expect(t.at(-1)!.text).toBe('7');
  });
  it('takes the name of a cell and a sum apart, after all tokens and as far as there is room', () => {
    const texts = (s: string): string[] => tokenizeInstruction(READER_SPEC, s).map((t) => t.text),
      before = (s: string): string[] => tokenizeInstruction(READER_2_SPEC, s).map((t) => t.text);
    for (const [said, parts] of [
      ['Put "42" into "B4" and "Lemon" into "AB12", then save.', ['B', '4', 'AB', '12']],
      ['Work out "3+45".', ['3', '+', '4', '5']],
      ['Enter "=sum(A1:A3)" and press "F2x".', []],
      ['Work out "12345+6789" on 12/05/24.', []],
    ] as const)
      expect(texts(said), said).toEqual([...before(said), ...parts]);
    const long = `${'word '.repeat(20)} "B4" and "C5"`;
    expect(texts(long)).toEqual([...before(long), 'B']);
    expect(before(long)).not.toContain('B');
  });
  it('spells one character that is asked for, and no article', () => {
    const { maxTokens, spelling } = READER_SPEC.instruction,
      encoded = encodeInstruction(READER_SPEC, tokenizeInstruction(READER_SPEC, 'click a "x" or 7')),
      spelled = (t: number): number => encoded[2 * maxTokens + t * spelling!]!;
    expect([0, 1, 2, 4].map((t) => spelled(t) > 0)).toEqual([true, false, true, true]);
  });
  it('is frozen: bucket and class of each token', () => {
    const t = tokenizeInstruction(spec, 'Type "alpha beta" into notes.txt');
    expect(Array.from(encodeInstruction(spec, t)).slice(0, 10)).toEqual(FROZEN);
    expect(t.every((x) => x.bucket >= 1 && x.bucket <= 1023)).toBe(true);
    expect(tokenizeInstruction(spec, 'SAVE')[0]!.bucket).toBe(tokenizeInstruction(spec, 'save')[0]!.bucket);
    expect(TOKEN_CLASS).toEqual({ word: 1, number: 2, quoted: 3, path: 4, expression: 5, name: 6, other: 7 });
  });
});
const FROZEN = [938, 1, 784, 3, 442, 1, 2, 4, 0, 0];

describe('actions', () => {
  const instruction = 'Type "hello" and save as a.txt';
  const enc = (a: Action): Int32Array | null => encodeActions(spec, screen, instruction, [a]);
  const view = viewOf(spec, screen);
  const tokens = tokenizeInstruction(spec, instruction);
  const off = headOffsets(spec);

  it('puts a click into the cell that contains the point', () => {
    expect(Array.from(enc({ type: 'click', at: { x: 17, y: 33 } })!)).toEqual([0, off.cell + 2 * 40 + 1]);
  });
  it('turns a text that ends with a line break into type_enter', () => {
    const hello = tokens.findIndex((t) => t.text === 'hello');
    expect(Array.from(enc({ type: 'type', text: 'hello' })!)).toEqual([spec.types.indexOf('type'), off.text + hello]);
    expect(Array.from(enc({ type: 'type', text: 'hello\n' })!)).toEqual([
      spec.types.indexOf('type_enter'),
      off.text + hello,
    ]);
    expect(Array.from(enc({ type: 'type', text: 'yes' })!)).toEqual([spec.types.indexOf('type'), off.text + 24]);
    expect(Array.from(enc({ type: 'type', text: '\n' })!)).toEqual([spec.types.indexOf('key'), off.key]);
  });
  it('knows chords by any spelling', () => {
    const ctrlS = [spec.types.indexOf('key'), off.key + spec.keys.indexOf('ctrl+s')];
    expect(Array.from(enc({ type: 'hotkey', keys: ['s', 'Control'] })!)).toEqual(ctrlS);
    expect(Array.from(enc({ type: 'hotkey', keys: ['ctrl', 's'] })!)).toEqual(ctrlS);
    expect(Array.from(enc({ type: 'hotkey', keys: ['Return'] })!)).toEqual([spec.types.indexOf('key'), off.key]);
    expect(Array.from(enc({ type: 'hotkey', keys: ['shift', 'ctrl', 'n'] })!)[1]).toBe(
      off.key + spec.keys.indexOf('ctrl+shift+n'),
    );
  });
  it('says null for what it cannot express', () => {
    const no: Action[] = [
      { type: 'click', at: { x: 1, y: 1 }, modifiers: ['ctrl'] },
      { type: 'click', at: { x: 640, y: 1 } },
      { type: 'type', text: 'not there' },
      { type: 'type', text: '' },
      { type: 'hotkey', keys: ['ctrl', 'alt', 'f12'] },
      { type: 'scroll', at: { x: 1, y: 1 }, direction: 'left' },
    ];
    for (const a of no) expect(enc(a), JSON.stringify(a)).toBeNull();
    expect(encodeActions(spec, screen, instruction, [])).toBeNull();
    expect(encodeActions(spec, screen, instruction, [{ type: 'wait' }, { type: 'wait' }])).toBeNull();
  });
  it('decodes what it encodes, for every type', () => {
    const all: Action[] = [
      { type: 'click', at: { x: 8, y: 8 } },
      { type: 'left_double', at: { x: 24, y: 40 } },
      { type: 'right_single', at: { x: 632, y: 392 } },
      { type: 'drag', from: { x: 8, y: 8 }, to: { x: 632, y: 392 } },
      { type: 'scroll', at: { x: 8, y: 8 }, direction: 'up', amount: 5 },
      { type: 'scroll', at: { x: 8, y: 8 }, direction: 'down', amount: 5 },
      { type: 'hotkey', keys: ['ctrl', 's'] },
      { type: 'type', text: 'a.txt' },
      { type: 'type', text: 'hello\n' },
      { type: 'wait', ms: 500 },
      { type: 'finished' },
      { type: 'fail' },
    ];
    for (const a of all) expect(decodeChoices(spec, view, tokens, encodeAction(spec, view, tokens, a)!)).toEqual(a);
  });
  it('refuses choice ids that are not a decision', () => {
    for (const bad of [
      [],
      [off.cell],
      [0],
      [0, off.key],
      [0, off.cell, off.cell],
      [spec.types.indexOf('type'), off.text + tokens.length],
      [-1],
    ])
      expect(() => decodeChoices(spec, view, tokens, bad), String(bad)).toThrow(RangeError);
  });
});

describe('history', () => {
  const frame: Frame = frameOf(640, 400, () => [1, 2, 3]);
  const step = (...actions: Action[]): { actions: Action[] } => ({ actions });
  it('is the last four actions, newest last, then the step number', () => {
    const h = encodeFrame(spec, frame, 'Type "x"', [
      step({ type: 'click', at: { x: 17, y: 33 } }),
      step({ type: 'type', text: 'x' }),
      step({ type: 'hotkey', keys: ['tab'] }),
    ]).history;
    expect(Array.from(h)).toEqual([
      0,
      0,
      0,
      0,
      1,
      3,
      2,
      0,
      spec.types.indexOf('type') + 1,
      0,
      0,
      2,
      spec.types.indexOf('key') + 1,
      0,
      0,
      2,
      3,
    ]);
  });
  it('shows an action it cannot express as a row of zeros and caps the step number', () => {
    const h = encodeFrame(
      spec,
      frame,
      'x',
      Array.from({ length: 40 }, () => step({ type: 'type', text: 'by hand' })),
    ).history;
    expect(Array.from(h)).toEqual([...Array<number>(16).fill(0), 16]);
  });
  it('gives equal keys to equal states only', () => {
    const a = encodeFrame(spec, frame, 'open it', []);
    expect(stateKey(a)).toBe(
      stateKey(
        encodeFrame(
          spec,
          frameOf(640, 400, () => [1, 2, 3]),
          'open it',
          [],
        ),
      ),
    );
    expect(stateKey(a)).not.toBe(stateKey(encodeFrame(spec, frame, 'open that', [])));
    expect(stateKey(a)).not.toBe(stateKey(encodeFrame(spec, frame, 'open it', [step({ type: 'wait' })])));
    expect(stateKey(a)).not.toBe(
      stateKey(
        encodeFrame(
          spec,
          frameOf(640, 400, (x) => [x & 255, 2, 3]),
          'open it',
          [],
        ),
      ),
    );
  });
  it('gives the first choice id of a state the meaning it has in the spec', () => {
    expect(choiceOf(spec, headOffsets(spec).key)).toEqual({ head: 'key', index: 0 });
  });
});

describe('typing what is read', () => {
  const tokens = tokenizeInstruction(READER_SPEC, 'Copy the number of "Lemon" into the last field and press OK.'),
    view = viewOf(READER_SPEC, screen),
    off = headOffsets(READER_SPEC),
    seen = off.text + seenText(READER_SPEC),
    typed = (type: 'type' | 'type_enter'): number => READER_SPEC.types.indexOf(type);

  it('is two choices of an action alone, since it does not say where the text stood', () => {
    for (const [text, type] of [
      ['47', 'type'],
      ['47\n', 'type_enter'],
    ] as const) {
      const ids = encodeActions(READER_SPEC, screen, 'Copy the number of "Lemon".', [{ type: 'type', text }])!;
      expect([...ids]).toEqual([typed(type), seen]);
      expect(textToFind(READER_SPEC, ids, [{ type: 'type', text }])).toBe('47');
    }
    const copied = encodeAction(READER_SPEC, view, tokens, { type: 'type', text: 'Lemon' })!;
    expect(textToFind(READER_SPEC, copied, [{ type: 'type', text: 'Lemon' }])).toBeUndefined();
    // The policy of version 0.1 has no way to say it.
    expect(encodeAction(GLYPH_SPEC, viewOf(GLYPH_SPEC, screen), tokens, { type: 'type', text: '47' })).toBeNull();
    expect(encodeAction(READER_SPEC, view, tokens, { type: 'type', text: '' })).toBeNull();
  });
  it('is three choices when decided, and what stands there; a wait where nothing does', () => {
    const choices = [typed('type_enter'), seen, off.cell2 + 123];
    expect(placeOfText(READER_SPEC, choices)).toBe(123);
    expect(decodeChoices(READER_SPEC, view, tokens, choices, '47')).toEqual({ type: 'type', text: '47\n' });
    expect(decodeChoices(READER_SPEC, view, tokens, choices)).toMatchObject({ type: 'wait' });
    expect(() => decodeChoices(READER_SPEC, view, tokens, choices.slice(0, 2), '47')).toThrow(/further choices/);
    expect(choiceLabel(READER_SPEC, view, tokens, seen)).toBe('what it reads');
    expect(placeOfText(READER_SPEC, [typed('type'), off.text + 1])).toBeUndefined();
  });
  it('is the same in the history of the rollout and of the sample made from it', () => {
    const rows = encodeHistory(READER_SPEC, view, tokens, [[{ type: 'type', text: '47' }]]);
    expect([...rows.subarray(-5, -1)]).toEqual([typed('type') + 1, 0, 0, seenText(READER_SPEC) + 1]);
  });
  it('leaves every choice of version 0.1 its id', () => {
    expect(headSizes(READER_SPEC)).toEqual(headSizes(GLYPH_SPEC));
    expect(headOffsets(READER_SPEC)).toEqual(headOffsets(GLYPH_SPEC));
  });
});
