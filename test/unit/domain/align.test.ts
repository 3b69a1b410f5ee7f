import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Alignment,
  BLANK,
  CLASSES,
  cellOfText,
  certainty,
  classOfCharacter,
  EDGE,
  findWords,
  GLYPH_SPEC,
  gridOf,
  instructionLength,
  LEAST,
  otherCase,
  random,
  READER_2_SPEC,
  READER_SPEC,
  spell,
  textAtCell,
  type Sight,
} from '../../../runtime/domain/index.js';

const ROWS = 25,
  COLS = 160;

/** A screen on which the reader is sure: texts at (row, column), their characters three columns apart. */
type Text = readonly [text: string, row: number, col: number];
function screen(...texts: readonly Text[]): Sight {
  const logits = new Float32Array(ROWS * COLS * CLASSES).fill(LEAST);
  for (let c = 0; c < ROWS * COLS; c++) logits[c * CLASSES + BLANK] = 0;
  const put = (row: number, col: number, k: number): void => {
    const at = (row * COLS + col) * CLASSES;
    logits[at + BLANK] = LEAST;
    logits[at + k] = 0;
  };
  for (const [text, row, col] of texts) {
    put(row, col, EDGE);
    [...text].forEach((c, i) => put(row, col + 3 * (i + 1), classOfCharacter(c)!));
    put(row, col + 3 * (text.length + 1), EDGE);
  }
  return { rows: ROWS, cols: COLS, classes: CLASSES, logits };
}
const alignment = (...texts: readonly Text[]): Alignment => Alignment.of(screen(...texts));
/** One row, of whose columns half may hold a character, each of them one of a dozen. */
function uncertain(seed: number): Sight {
  const cols = 24,
    rng = random(seed),
    logits = new Float32Array(cols * CLASSES).fill(LEAST),
    some = [EDGE, ...spell('abcxyzABCXYZ1290 ', 40)].filter(() => rng.next() < 0.6);
  for (let c = 0; c < cols; c++) {
    logits[c * CLASSES + BLANK] = -3 * rng.next();
    if (rng.next() < 0.5) for (const k of some) logits[c * CLASSES + k] = -6 * rng.next() ** 2;
  }
  return { rows: 1, cols, classes: CLASSES, logits };
}
/** Last column and score of all that may be `query`: domain/align.ts, the slow way. */
function plainly({ cols, classes, logits }: Sight, query: readonly number[]): [column: number, score: number][] {
  const columns = Array.from({ length: cols }, (_, c) => logits.subarray(c * classes, (c + 1) * classes)),
    scores = columns.map((all) => {
      const largest = Math.max(...all);
      return Array.from(all, (x) => Math.max(LEAST, Math.fround(x - largest)));
    }),
    visible = scores.flatMap((all, c) => (all.some((x, k) => k !== BLANK && x > -4) ? [c] : [])),
    blanks = (after: number, before: number): number =>
      scores.slice(after + 1, before).reduce((sum, all) => sum + all[BLANK]!, 0);
  let ends = new Map<number, number>();
  for (const [t, a] of query.entries())
    ends = new Map(
      visible.map((c) => {
        const own = Math.max(scores[c]![a]!, scores[c]![otherCase(a)]!),
          near = visible.filter((d) => d < c && c - d <= 7);
        if (t === 0) return [c, own];
        return [c, Math.max(ends.get(c)! + LEAST, ...near.map((d) => ends.get(d)! + own + blanks(d, c)))];
      }),
    );
  return [...ends].flatMap(([c, sum]) => (sum / query.length > -3 ? [[c, sum / query.length]] : []));
}
const best = (a: Alignment, text: string): number =>
  Math.max(-Infinity, ...a.find(spell(text, 40)).map((h) => h.score));

describe('finding a text in what the reader saw', () => {
  it('finds it where it stands, in either case, and nowhere else', () => {
    const a = alignment(['Lemon', 3, 10], ['Mango', 7, 90]),
      [hit, ...more] = a.find(spell('lemon', 40)).filter((h) => h.score > -0.5);
    expect(hit).toEqual({ score: 0, row: 3, from: 10, to: 28 });
    expect(more).toEqual([]);
    expect(best(a, 'Melon')).toBeLessThan(-1);
    expect(best(a, '')).toBe(-Infinity);
  });
  it('tells a word from a longer one that begins, or ends, with it', () => {
    const a = alignment(['Lemons', 3, 10], ['Unlemon', 9, 20]);
    expect(best(a, 'Lemons')).toBe(0);
    expect(best(a, 'Lemon')).toBeLessThan(-0.9);
    expect(certainty(best(a, 'Lemon'))).toBeLessThan(0.6);
    expect(certainty(best(a, 'Lemons'))).toBeGreaterThan(0.95);
  });
  it('forgives one character of a long word', () => {
    expect(best(alignment(['Pantrv', 3, 10]), 'Pantry')).toBeGreaterThan(-1.1);
    expect(best(alignment(['Pntry', 3, 10]), 'Pantry')).toBe(LEAST / 8);
  });
  it('does not jump over a gap, or to another row', () => {
    expect(best(alignment(['Le', 3, 10], ['mon', 3, 40]), 'Lemon')).toBeLessThan(-2);
    expect(best(alignment(['Le', 3, 10], ['mon', 4, 16]), 'Lemon')).toBeLessThan(-2);
  });
  it('finds what aligning every column by itself finds, also where the reader is hardly sure of anything', () => {
    let found = 0;
    fc.assert(
      fc.property(
        fc.integer(),
        fc.string({ minLength: 1, maxLength: 6, unit: fc.constantFrom(...'abcXYZ19 ') }),
        (seed, text) => {
          const sight = uncertain(seed),
            query = spell(text, 40),
            hits = Alignment.of(sight).find(query);
          found += hits.length;
          const expected = plainly(sight, [EDGE, ...query, EDGE]);
          expect(hits.map((h) => h.to)).toEqual(expected.map(([to]) => to));
          expected.forEach(([, score], n) => {
            expect(hits[n]!.score).toBeCloseTo(score, 5);
          });
        },
      ),
      { numRuns: 300 },
    );
    expect(found).toBeGreaterThan(100);
  });
  it('reads a text without knowing it, from a place on it or in the row beside', () => {
    const a = alignment(['Kenji Laura', 3, 10], ['42', 3, 60]);
    expect(a.textAt(3, 20)).toBe('Kenji Laura');
    expect(a.textAt(4, 63)).toBe('42');
    expect(a.textAt(3, 120)).toBeUndefined();
    expect(a.textAt(12, 20)).toBeUndefined();
  });
});

describe('the words of an instruction on the screen', () => {
  const { cols, rows } = gridOf(READER_SPEC),
    { maxTokens, spelling } = READER_SPEC.instruction,
    instruction = new Int32Array(instructionLength(READER_SPEC));
  ['Click', 'Lemon', 'a', 'Lemon'].forEach((w, i) => {
    instruction.set([7, 1], 2 * i);
    instruction.set(spell(w, spelling!), 2 * maxTokens + i * spelling!);
  });

  it('are marked in the cell of their middle; how sure, how sure elsewhere, and where, is told beside', () => {
    const into = {
      found: new Float32Array(maxTokens * rows * cols).fill(9),
      facts: new Float32Array(maxTokens * 4).fill(9),
    };
    const a = alignment(['Lemon', 3, 10], ['Lemon', 20, 100], ['Lamp', 8, 40]);
    findWords(READER_2_SPEC, instruction, a, into);
    const of = (t: number): Float32Array => into.found.subarray(t * rows * cols, (t + 1) * rows * cols),
      // Columns 10 to 28 are pixels 20 to 58 of the observation.
      first = 3 * cols + Math.floor(39 / 8),
      second = 20 * cols + Math.floor(219 / 8);
    expect([...of(1)].flatMap((x, c) => (x > 0.9 ? [c] : []))).toEqual([first, second]);
    expect(of(3)).toEqual(of(1));
    // "Click" is not there; one letter was never looked for until reader-3.
    expect(Math.max(...of(0))).toBeLessThan(0.2);
    expect(Math.max(...of(2))).toBe(0);
    expect(Math.max(...of(4))).toBe(0);
    expect(into.facts[4]).toBeGreaterThan(0.95);
    expect(into.facts[5]).toBeGreaterThan(0.95);
    expect([...into.facts.subarray(6, 8)]).toEqual([4 / rows, 5 / cols].map(Math.fround));
  });
  it('of one character are found where they stand alone', () => {
    const parts = new Int32Array(instruction.length),
      into = { found: new Float32Array(maxTokens * rows * cols), facts: new Float32Array(maxTokens * 4) },
      a = alignment(['B', 3, 10], ['Boxes', 5, 10], ['13', 8, 40], ['3', 9, 40], ['33', 11, 40]);
    ['B', '3'].forEach((w, i) => parts.set(spell(w, spelling!), 2 * maxTokens + i * spelling!));
    findWords(READER_SPEC, parts, a, into);
    const surely = (t: number): number[] =>
        [...into.found.subarray(t * rows * cols, (t + 1) * rows * cols)].flatMap((x, c) => (x > 0.2 ? [c] : [])),
      // The middle column of a character that stands after its edge.
      cellAt = (row: number, col: number): number => row * cols + Math.floor(((col + 3 + 0.5) * 2) / 8);
    expect(surely(0)).toEqual([cellAt(3, 10)]);
    expect(surely(1)).toEqual([cellAt(9, 40)]);
  });
  it('texts to be read have their cell, and cells their text', () => {
    const a = alignment(['Kenji', 3, 10]),
      cell = cellOfText(READER_SPEC, a, 'Kenji')!;
    expect(textAtCell(READER_SPEC, a, cell)).toBe('Kenji');
    expect(cellOfText(READER_SPEC, a, 'Laura')).toBeUndefined();
  });
});

describe('the alphabet', () => {
  it('has a class for every character that tasks show, and the other case of letters alone', () => {
    expect(CLASSES).toBe(83);
    expect(spell('aé B', 9)).toEqual([...'a B'].map((c) => classOfCharacter(c)));
    expect(otherCase(classOfCharacter('q')!)).toBe(classOfCharacter('Q'));
    expect(otherCase(classOfCharacter('7')!)).toBe(classOfCharacter('7'));
  });
  it('does not change what instructions of version 0.1 are encoded as', () => {
    expect(instructionLength(GLYPH_SPEC)).toBe(48);
  });
});
