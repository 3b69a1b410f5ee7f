import { describe, expect, it } from 'vitest';
import {
  BANDS,
  BLANK,
  CLASSES,
  classOfCharacter,
  gridOf,
  LEAST,
  random,
  READER_SPEC,
  READING,
} from '../../../runtime/domain/index.js';
import { ScreenReader, WINDOW, type ReaderGraphs } from '../../../runtime/policy/embedded/screenReader.js';

const { width, height, cell } = READER_SPEC.obs,
  { band, column, edge } = READING,
  { rows } = gridOf(READER_SPEC),
  COLUMNS = width / column,
  [LINES, WIDE] = [band + 2 * edge, column + 2 * edge],
  BANDS_AT_ONCE = [3, 8],
  ROWS_AT_ONCE = [2, 4];

/** Tells whatever differs in what a column was read from, and where. */
const mixed = (values: Iterable<number>): number => {
  let sum = 7;
  for (const v of values) sum = (sum * 31 + Math.round((v + 2) * 1000)) % 65521;
  return sum;
};

/**
 * A reader whose strokes are a sum over what each column was shown, and whose features are one over the strokes of its
 * four bands. Its letters are told by the grey of a row's second line.
 */
class Reader {
  bands = 0;
  rows = 0;
  readonly reader = new ScreenReader(
    READER_SPEC,
    {
      bands: BANDS_AT_ONCE.map((k) => this.#readsBands(k)),
      rows: ROWS_AT_ONCE.map((k) => this.#readsRows(k)),
    },
    { bands: 8 * rows, rows: 4 * rows },
  );

  #readsBands(atOnce: number): ReaderGraphs['bands'][number] {
    const places = atOnce * COLUMNS,
      input = new Float32Array(WINDOW * places);
    return {
      atOnce,
      input,
      run: () => {
        this.bands += atOnce;
        return Promise.resolve({
          strokes: Float32Array.from({ length: places }, (_, c) =>
            mixed(Array.from({ length: WINDOW }, (_, w) => input[w * places + c]!)),
          ),
        });
      },
    };
  }
  #readsRows(atOnce: number): ReaderGraphs['rows'][number] {
    const input = new Float32Array(atOnce * BANDS * COLUMNS);
    return {
      atOnce,
      input,
      run: () => {
        this.rows += atOnce;
        const features = new Float32Array(atOnce * COLUMNS),
          logits = new Float32Array(atOnce * COLUMNS * CLASSES).fill(LEAST);
        for (let n = 0; n < atOnce * COLUMNS; n++) {
          const [row, c] = [Math.floor(n / COLUMNS), n % COLUMNS],
            four = Array.from({ length: BANDS }, (_, k) => input[(row * BANDS + k) * COLUMNS + c]!);
          features[n] = mixed(four);
          logits[n * CLASSES + BLANK] = c === 10 ? LEAST : 0;
          if (c === 10) logits[n * CLASSES + classOfCharacter(letterOf(four[1]!))!] = 0;
        }
        return Promise.resolve({ features, logits });
      },
    };
  }
  /** Bands and rows that graphs were run for since the last time, those that a graph had no use for among them. */
  take(): readonly [bands: number, rows: number] {
    const asked = [this.bands, this.rows] as const;
    this.bands = this.rows = 0;
    return asked;
  }
}
const letterOf = (stroke: number): string => String.fromCharCode('A'.charCodeAt(0) + (stroke % 26));
/** What reading so many bands and rows takes. */
const calls = (bands: number, ofRows: number): readonly [number, number] => [
  taken(bands, BANDS_AT_ONCE),
  taken(ofRows, ROWS_AT_ONCE),
];
function taken(parts: number, [few, many]: readonly number[]): number {
  const whole = many! * Math.floor(parts / many!),
    left = parts - whole;
  return whole + (left === 0 ? 0 : left <= few! ? few! : many!);
}

/** What `Reader` is to say, from the pixels. */
function strokesOf(obs: Uint8Array, n: number, c: number): number {
  if (n < 0 || n >= height / band) return 0;
  const seen: number[] = [];
  for (let y = n * band - edge; y < n * band - edge + LINES; y++)
    for (let x = c * column - edge; x < c * column - edge + WIDE; x++) {
      const inside = y >= 0 && y < height && x >= 0 && x < width;
      seen.push(inside ? obs[y * width + x]! / 127.5 - 1 : 0);
    }
  return mixed(seen);
}
const featureOf = (obs: Uint8Array, row: number, c: number): number =>
  mixed(Array.from({ length: BANDS }, (_, k) => strokesOf(obs, 2 * row - 1 + k, c)));

/** A screen on which no two lines are the same. */
function screen(): Uint8Array {
  const rng = random('screen');
  return Uint8Array.from({ length: width * height }, () => rng.int(256));
}
async function look(r: Reader, obs: Uint8Array): Promise<readonly [number, number]> {
  const features = new Float32Array(rows * COLUMNS),
    seen = await r.reader.look(obs, features);
  for (const row of [0, 1, 7, rows - 2, rows - 1]) {
    for (const c of [0, 1, 77, COLUMNS - 1]) expect(features[row * COLUMNS + c]).toBe(featureOf(obs, row, c));
    expect(seen.textAt(row, 10)).toBe(letterOf(strokesOf(obs, 2 * row, 10)));
  }
  return r.take();
}

describe('reading a screen in parts', () => {
  it('reads every band and row once, and none again on a screen that is the same', async () => {
    const r = new Reader();
    expect(await look(r, screen())).toEqual(calls(2 * rows, rows));
    expect(await look(r, screen())).toEqual([0, 0]);
  });
  it('reads again what sees a changed line', async () => {
    const r = new Reader(),
      obs = screen();
    await look(r, obs);
    const changed = (line: number): ReturnType<typeof look> => {
      obs[line * width + 50]! ^= 1;
      return look(r, obs);
    };
    // The first line of a row: its band and the one above, which two rows are read from.
    expect(await changed(10 * cell)).toEqual(calls(2, 2));
    // The last line of its first band: both of its bands, the second of which the row below sees, too.
    expect(await changed(10 * cell + band - 1)).toEqual(calls(2, 3));
    expect(await changed(10 * cell + 1)).toEqual(calls(1, 2));
    expect(await changed(0)).toEqual(calls(1, 1));
    expect(await changed(height - 1)).toEqual(calls(1, 1));
  });
  it('reads what looks alike once, but not the first as the last, nor as one between', async () => {
    const r = new Reader(),
      features = new Float32Array(rows * COLUMNS),
      obs = new Uint8Array(width * height).fill(90);
    await r.reader.look(obs, features);
    expect(r.take()).toEqual(calls(3, 3));
    const of = (row: number): number => features[row * COLUMNS + 20]!;
    for (let row = 0; row < rows; row++) expect(of(row)).toBe(featureOf(obs, row, 20));
    expect(new Set([of(0), of(1), of(rows - 1)]).size).toBe(3);
  });
  it('knows rows again wherever they stand, and after other screens', async () => {
    const r = new Reader(),
      obs = screen();
    await look(r, obs);
    await look(r, new Uint8Array(width * height).fill(200));
    expect(await look(r, obs)).toEqual([0, 0]);
    // Three rows further down: what is new is at the top, and at the bottom.
    const moved = new Uint8Array(width * height).fill(200);
    moved.set(obs.subarray(0, width * (height - 3 * cell)), 3 * cell * width);
    const [bands, ofRows] = await look(r, moved);
    expect(bands).toBeLessThanOrEqual(calls(4, 0)[0]);
    expect(ofRows).toBeLessThanOrEqual(calls(0, 4)[1]);
  });
  it('forgets all when the reader has changed, and the oldest when there are many', async () => {
    const r = new Reader(),
      obs = screen();
    await look(r, obs);
    r.reader.forget();
    expect(await look(r, obs)).toEqual(calls(2 * rows, rows));
    const rng = random('others');
    for (let n = 0; n < 4; n++)
      await look(
        r,
        Uint8Array.from({ length: width * height }, () => rng.int(256)),
      );
    expect(await look(r, obs)).toEqual(calls(2 * rows, rows));
  });
});
