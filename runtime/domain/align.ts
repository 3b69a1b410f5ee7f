import { BLANK, characterOfClass, EDGE, otherCase, SPACE } from './alphabet.js';

/**
 * Finding a text in what a reader saw. The reader gives each column of each text row a logit for every class
 * (alphabet.ts). What counts is its score: the logit less the column's largest one, so 0 for what it takes the column
 * for, and not under `LEAST`. A text is aligned to columns from left to right, its edges included; columns between two
 * characters are blank. No gradient.
 */
export interface Sight {
  readonly rows: number;
  readonly cols: number;
  readonly classes: number;
  /** [rows * cols, classes] */
  readonly logits: Float32Array;
}
export const LEAST = -8;

/** A column can hold a character when one scores more than this. */
const VISIBLE = -4;
/** Columns from one character to the next at most. */
const REACH = 7;
/** Score of a place below which nothing is reported. */
const HOPELESS = -3;

/** A place of a text in a row: the mean score of its characters and edges (0 at best), its first and last column. */
interface RowHit {
  readonly score: number;
  readonly from: number;
  readonly to: number;
}
export interface Hit extends RowHit {
  readonly row: number;
}

/** Texts whose places a row remembers: those of an instruction or two. */
const REMEMBERED = 64;

/**
 * One text row with what aligning needs, computed once for all texts, and only for columns that can hold a character.
 * It remembers where texts stand in it, because a screen shows most of its rows again.
 */
export class TextRow {
  /** Columns that can hold a character, ascending. */
  readonly #columns: Int16Array;
  /** Scores of these columns, [columns, classes]. */
  readonly #scores: Float32Array;
  /** Largest score of each class; found when the first text is looked for. */
  #best: Float32Array | undefined;
  readonly #classes: number;
  /** Per column: the sum of the scores of `BLANK` from the row's beginning up to and with it. */
  readonly #blank: Float32Array;
  readonly #known = new Map<string, readonly RowHit[]>();

  /** `logits` [columns, classes] of the row; of what counts its scores are kept. */
  constructor(logits: Float32Array, classes: number) {
    const cols = logits.length / classes,
      visible: number[] = [],
      largest = new Float32Array(cols);
    this.#classes = classes;
    this.#blank = new Float32Array(cols);
    let blank = 0;
    for (let c = 0; c < cols; c++) {
      const at = c * classes;
      let most = -Infinity;
      for (let k = at + BLANK + 1; k < at + classes; k++) {
        const x = logits[k]!;
        if (x > most) most = x;
      }
      largest[c] = Math.max(most, logits[at + BLANK]!);
      blank += Math.max(LEAST, logits[at + BLANK]! - largest[c]!);
      this.#blank[c] = blank;
      if (most - largest[c]! > VISIBLE) visible.push(c);
    }
    this.#columns = Int16Array.from(visible);
    this.#scores = new Float32Array(visible.length * classes);
    const scores = this.#scores;
    let to = 0;
    for (const c of visible) {
      const from = c * classes,
        most = largest[c]!;
      // A comparison, since Math.max takes three times as long here.
      for (let k = 0; k < classes; k++) {
        const score = logits[from + k]! - most;
        scores[to++] = score > LEAST ? score : LEAST;
      }
    }
  }

  /** Every place where `query` (classes, edges included; named `key`) may end: all with a score over -3. */
  find(query: readonly number[], key: string): readonly RowHit[] {
    if (this.#columns.length === 0) return [];
    let hits = this.#known.get(key);
    if (!hits) {
      hits = this.#find(query);
      if (this.#known.size >= REMEMBERED) this.#known.clear();
      this.#known.set(key, hits);
    }
    return hits;
  }

  #find(query: readonly number[]): RowHit[] {
    if (!this.#mayHold(query)) return [];
    const columns = this.#columns,
      classes = this.#classes,
      scores = this.#scores,
      blank = this.#blank,
      n = columns.length;
    let before = new Float64Array(n),
      now = new Float64Array(n),
      startBefore = new Int16Array(n),
      startNow = new Int16Array(n);
    const worst = HOPELESS * query.length + LEAST;
    for (let t = 0; t < query.length; t++) {
      const a = query[t]!,
        b = otherCase(a);
      let any = false;
      for (let i = 0; i < n; i++) {
        const c = columns[i]!,
          one = scores[i * classes + a]!,
          other = scores[i * classes + b]!,
          own = one > other ? one : other;
        if (t === 0) {
          now[i] = own;
          startNow[i] = c;
          any = true;
          continue;
        }
        // A character that is missing on the screen; what is aligned stays where it was.
        let best = before[i]! + LEAST,
          start = startBefore[i]!;
        const upTo = c === 0 ? 0 : blank[c - 1]!;
        for (let j = i - 1; j >= 0; j--) {
          const d = columns[j]!;
          if (c - d > REACH) break;
          const s = before[j]! + own + upTo - blank[d]!;
          if (s > best) {
            best = s;
            start = startBefore[j]!;
          }
        }
        now[i] = best;
        startNow[i] = start;
        if (best > worst) any = true;
      }
      if (!any) return [];
      [before, now] = [now, before];
      [startBefore, startNow] = [startNow, startBefore];
    }
    const hits: RowHit[] = [];
    for (let i = 0; i < n; i++) {
      const score = before[i]! / query.length;
      if (score > HOPELESS) hits.push({ score, from: startBefore[i]!, to: columns[i]! });
    }
    return hits;
  }

  /** Whether the characters of a text, each where it stands most surely, are sure enough: in any order. */
  #mayHold(query: readonly number[]): boolean {
    const best = (this.#best ??= bestOf(this.#scores, this.#classes));
    let most = 0;
    for (const a of query) most += Math.max(best[a]!, best[otherCase(a)]!);
    // Sums of the same numbers in another order.
    return most / query.length > HOPELESS - 1e-6;
  }

  /** Every text that stands in the row, read without knowing what to look for: between edges, or wide gaps. */
  texts(): { readonly text: string; readonly from: number; readonly to: number }[] {
    const out: { text: string; from: number; to: number }[] = [];
    let text = '',
      from = -1,
      to = -1;
    const end = (): void => {
      const trimmed = text.trim();
      if (trimmed !== '') out.push({ text: trimmed, from, to });
      text = '';
    };
    for (const { k, col } of this.#characters()) {
      if (k === EDGE || (text !== '' && col - to > REACH)) end();
      if (k === EDGE || (k === SPACE && text === '')) continue;
      if (text === '') from = col;
      text += characterOfClass(k);
      to = col;
    }
    end();
    return out;
  }

  /**
   * The classes of columns that are not blank. A character whose middle lies between two columns may show in both: of
   * columns beside each other the surer one counts.
   */
  #characters(): { readonly k: number; readonly col: number }[] {
    const scores = this.#scores,
      out: { k: number; col: number; sure: number }[] = [];
    for (const [i, col] of this.#columns.entries()) {
      const at = i * this.#classes;
      let k = BLANK;
      for (let j = 1; j < this.#classes; j++) if (scores[at + j]! > scores[at + k]!) k = j;
      if (k === BLANK) continue;
      const sure = scores[at + k]! - scores[at + BLANK]!,
        before = out.at(-1);
      if (before?.col !== col - 1) out.push({ k, col, sure });
      else if (sure > before.sure) out[out.length - 1] = { k, col, sure };
    }
    return out;
  }
}

/** Largest score of each class in scores [columns, classes]. */
function bestOf(scores: Float32Array, classes: number): Float32Array {
  const best = scores.slice(0, classes);
  for (let at = classes; at < scores.length; at += classes)
    for (let k = 0; k < classes; k++) if (scores[at + k]! > best[k]!) best[k] = scores[at + k]!;
  return best;
}

/** The text rows of a screen, from the top. */
export class Alignment {
  readonly #rows: readonly TextRow[];

  constructor(rows: readonly TextRow[]) {
    this.#rows = rows;
  }
  static of({ rows, cols, classes, logits }: Sight): Alignment {
    const per = cols * classes;
    return new Alignment(
      Array.from({ length: rows }, (_, r) => new TextRow(logits.subarray(r * per, (r + 1) * per), classes)),
    );
  }

  /** Every place where `text` (classes) may end, unordered: all with a score over -3. */
  find(text: ArrayLike<number>): Hit[] {
    if (text.length === 0) return [];
    const query = [EDGE, ...Array.from(text), EDGE],
      key = query.join();
    return this.#rows.flatMap((r, row) => r.find(query, key).map((hit) => ({ ...hit, row })));
  }

  /**
   * The text that stands at a place, read without knowing what to look for: the nearest to `col`. Rows beside it are
   * tried where the row itself has none. Undefined where nothing stands.
   */
  textAt(row: number, col: number): string | undefined {
    let best: { readonly text: string; readonly away: number } | undefined;
    for (const r of [row, row - 1, row + 1])
      for (const t of this.#rows[r]?.texts() ?? []) {
        const away = Math.max(0, t.from - col, col - t.to) + (r === row ? 0 : ROW_AWAY);
        if (away <= NEAR && (!best || away < best.away)) best = { text: t.text, away };
      }
    return best?.text;
  }
}

/** Columns beside a text that still mean it, and what another row counts as. */
const NEAR = 4,
  ROW_AWAY = 2;

/** How sure a hit is, 0 to 1: one half where on average a character scores -1, which absent words hardly reach. */
export const certainty = (score: number): number => 1 / (1 + Math.exp(-4 * (score + 1)));
