/**
 * Reads a screen in parts, and a part again only where its pixels are new: most of a desktop is what it was a step
 * before, or on another desktop. First bands of pixels, then the text rows that are made of them
 * (trainer/native/model/rowReader.ts). A part depends on nothing beside it, so what is remembered is what would be read.
 */
import {
  Alignment,
  BANDS,
  CLASSES,
  gridOf,
  partOf,
  READING,
  TextRow,
  type EmbeddedPolicySpec,
} from '../../domain/index.js';

/** A graph that takes this many parts at once; its outputs are overwritten by the next call. */
export interface ReaderGraph<Out> {
  readonly atOnce: number;
  readonly input: Float32Array;
  run(): Promise<Out>;
}
/** The reader's graphs, those that take fewer parts first. */
export interface ReaderGraphs {
  /** f32[WINDOW, k*columns] -> strokes f32[k, columns, stem]. */
  readonly bands: readonly ReaderGraph<{ readonly strokes: Float32Array }>[];
  /** f32[k, BANDS, columns, stem] -> features f32[k, columns, width], logits f32[k, columns, classes]. */
  readonly rows: readonly ReaderGraph<{ readonly features: Float32Array; readonly logits: Float32Array }>[];
}

/** Lines and pixels of what a column of a band is read from. */
const { band, column, edge } = READING,
  LINES = band + 2 * edge,
  WIDE = column + 2 * edge;
export const WINDOW = LINES * WIDE;

/** Light of a byte, -1 to 1. */
const LIGHT = Float32Array.from({ length: 256 }, (_, b) => Math.fround(b * Math.fround(1 / 127.5)) - 1);

interface Band {
  /** Number by which rows know the band; 0 is the band outside the screen. */
  readonly id: number;
  readonly strokes: Float32Array;
}
interface Row {
  readonly features: Float32Array;
  readonly texts: TextRow;
}
/**
 * Rows that are remembered, about 40 KB each, and bands, about 10 KB. With all there ever were, a twelfth less would be
 * read over 1,100 steps of six templates.
 */
const KEPT = { rows: 256, bands: 512 };

export class ScreenReader {
  readonly #spec: EmbeddedPolicySpec;
  readonly #graphs: ReaderGraphs;
  readonly #cols: number;
  /** Bands by the bytes they were read from, and rows by their bands. */
  readonly #bands: Recent<Band>;
  readonly #rows: Recent<Row>;
  #nextBand = 1;
  /** The screen that was looked at last, and its bands' keys: making one costs more than comparing what it is made of. */
  readonly #last: { readonly obs: Buffer; keys: readonly string[] };

  constructor(spec: EmbeddedPolicySpec, graphs: ReaderGraphs, kept = KEPT) {
    this.#spec = spec;
    this.#graphs = graphs;
    this.#bands = new Recent(kept.bands);
    this.#rows = new Recent(kept.rows);
    this.#cols = spec.obs.width / column;
    this.#last = { obs: Buffer.alloc(spec.obs.width * spec.obs.height), keys: [] };
  }

  /** Reads `obs` (u8[height, width]); writes its features (f32[rows, columns, width]) into `features`. */
  async look(obs: Uint8Array, features: Float32Array): Promise<Alignment> {
    const bands = await this.#lookAtBands(obs),
      rows = await this.#lookAtRows(bands),
      per = features.length / rows.length;
    rows.forEach((row, r) => features.set(row.features, r * per));
    return new Alignment(rows.map((row) => row.texts));
  }

  /** The reader's weights have changed: everything that is remembered was read with others. */
  forget(): void {
    this.#bands.clear();
    this.#rows.clear();
  }

  async #lookAtBands(obs: Uint8Array): Promise<readonly Band[]> {
    const keys = this.#bandKeys(obs);
    for (const { graph, parts } of passes(this.#graphs.bands, missing(this.#bands, keys))) {
      parts.forEach(({ n }, i) => this.#putPatches(obs, n, graph, i));
      const { strokes } = await graph.run();
      parts.forEach(({ key }, i) =>
        this.#bands.set(key, { id: this.#nextBand++, strokes: partOf(strokes, i, graph.atOnce).slice() }),
      );
    }
    return this.#bands.take(keys);
  }

  async #lookAtRows(bands: readonly Band[]): Promise<readonly Row[]> {
    const { rows } = gridOf(this.#spec),
      of = Array.from({ length: rows }, (_, r) => Array.from({ length: BANDS }, (_, k) => bands[2 * r - 1 + k])),
      keys = of.map((row) => row.map((b) => b?.id ?? 0).join()),
      perBand = bands[0]!.strokes.length;
    for (const { graph, parts } of passes(this.#graphs.rows, missing(this.#rows, keys))) {
      graph.input.fill(0);
      parts.forEach(({ n }, i) => of[n]!.forEach((b, k) => b && graph.input.set(b.strokes, (i * BANDS + k) * perBand)));
      const { features, logits } = await graph.run();
      parts.forEach(({ key }, i) =>
        this.#rows.set(key, {
          features: partOf(features, i, graph.atOnce).slice(),
          texts: new TextRow(partOf(logits, i, graph.atOnce), CLASSES),
        }),
      );
    }
    return this.#rows.take(keys);
  }

  /**
   * The bytes of each band with the lines above and below it. Bands at the top, at the bottom and in between have
   * different keys.
   */
  #bandKeys(obs: Uint8Array): readonly string[] {
    const { width, height } = this.#spec.obs,
      now = Buffer.from(obs.buffer, obs.byteOffset, obs.length),
      last = this.#last;
    last.keys = Array.from({ length: height / band }, (_, n) => {
      const from = Math.max(0, n * band - edge) * width,
        to = Math.min(height, (n + 1) * band + edge) * width,
        before = last.keys[n];
      if (before !== undefined && now.compare(last.obs, from, to, from, to) === 0) return before;
      return (n === 0 ? 't' : '') + now.toString('latin1', from, to);
    });
    last.obs.set(obs);
    return last.keys;
  }

  /** Band `n` of the screen as the `i`-th of those that a graph reads at once: rowReader.ts, `patches`. */
  #putPatches(obs: Uint8Array, n: number, { input: patches }: ReaderGraph<unknown>, i: number): void {
    const { width, height } = this.#spec.obs,
      places = patches.length / WINDOW;
    for (let y = 0; y < LINES; y++) {
      const line = n * band - edge + y,
        inside = line >= 0 && line < height;
      for (let x = 0; x < WIDE; x++) {
        const to = (y * WIDE + x) * places + i * this.#cols;
        for (let c = 0; c < this.#cols; c++) {
          const at = c * column - edge + x;
          patches[to + c] = inside && at >= 0 && at < width ? LIGHT[obs[line * width + at]!]! : 0;
        }
      }
    }
  }
}

interface Missing {
  readonly key: string;
  /** Index of the key's first occurrence. */
  readonly n: number;
}
/** The keys that are not known yet, each once. */
function missing<T>(known: Recent<T>, keys: readonly string[]): Missing[] {
  const first = new Map<string, number>();
  for (const [n, key] of keys.entries()) if (!known.has(key) && !first.has(key)) first.set(key, n);
  return Array.from(first, ([key, n]) => ({ key, n }));
}
/** Which graph reads which parts: the smallest graph that takes all that are left, else the largest. */
function* passes<G extends { readonly atOnce: number }>(
  graphs: readonly G[],
  all: readonly Missing[],
): Generator<{ readonly graph: G; readonly parts: readonly Missing[] }> {
  for (let done = 0; done < all.length;) {
    const graph = graphs.find((g) => g.atOnce >= all.length - done) ?? graphs.at(-1)!;
    yield { graph, parts: all.slice(done, done + graph.atOnce) };
    done += graph.atOnce;
  }
}
/** Remembers what was used last. */
class Recent<T> {
  readonly #most: number;
  readonly #entries = new Map<string, T>();

  constructor(most: number) {
    this.#most = most;
  }
  has(key: string): boolean {
    return this.#entries.has(key);
  }
  set(key: string, value: T): void {
    this.#entries.set(key, value);
  }
  clear(): void {
    this.#entries.clear();
  }
  /** Values of keys that are all there; forgets the oldest beyond the most that are kept. */
  take(keys: readonly string[]): T[] {
    const values = keys.map((key) => {
      const value = this.#entries.get(key)!;
      this.#entries.delete(key);
      this.#entries.set(key, value);
      return value;
    });
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) break;
      this.#entries.delete(key);
    }
    return values;
  }
}
