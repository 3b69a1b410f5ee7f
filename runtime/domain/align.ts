import { BLANK, characterOfClass, EDGE, otherCase, SPACE } from './alphabet.js';

/**
 * Finding a text in what a reader saw. The reader gives each column of each text row a score for every class
 * (alphabet.ts): the logit less the largest one, so 0 for what it takes the column for, and not under `LEAST`. A text is
 * aligned to columns from left to right, its edges included; columns between two characters are blank. No gradient.
 */
export interface Sight {
  readonly rows: number;
  readonly cols: number;
  readonly classes: number;
  /** [rows * cols, classes] */
  readonly scores: Float32Array;
}
export const LEAST = -8;

/** A column can hold a character when one scores more than this. */
const VISIBLE = -4;
/** Columns from one character to the next at most. */
const REACH = 7;
/** Score of a place below which nothing is reported. */
const HOPELESS = -3;

/** Where a text may stand: the mean score of its characters and edges (0 at best), its row, first and last column. */
export interface Hit {
  readonly score: number;
  readonly row: number;
  readonly from: number;
  readonly to: number;
}

/** What aligning needs of a screen, computed once for all texts. */
export class Alignment {
  readonly #sight: Sight;
  /** Of each row the columns that can hold a character, ascending; row r has those in [starts[r], starts[r+1]). */
  readonly #columns: Int16Array;
  readonly #starts: Int32Array;
  /** Sum of the scores of `BLANK` from the row's beginning up to and with a column. */
  readonly #blank: Float32Array;

  constructor(sight: Sight) {
    const { rows, cols, classes, scores } = sight;
    this.#sight = sight;
    this.#columns = new Int16Array(rows * cols);
    this.#starts = new Int32Array(rows + 1);
    this.#blank = new Float32Array(rows * cols);
    let n = 0;
    for (let r = 0; r < rows; r++) {
      let blank = 0;
      for (let c = 0; c < cols; c++) {
        const at = (r * cols + c) * classes;
        blank += Math.max(LEAST, scores[at + BLANK]!);
        this.#blank[r * cols + c] = blank;
        for (let k = BLANK + 1; k < classes; k++)
          if (scores[at + k]! > VISIBLE) {
            this.#columns[n++] = c;
            break;
          }
      }
      this.#starts[r + 1] = n;
    }
  }

  /** Every place where `text` (classes) may end, best first within a row only by chance: all with a score over -3. */
  find(text: ArrayLike<number>): Hit[] {
    const { rows } = this.#sight,
      hits: Hit[] = [];
    if (text.length === 0) return hits;
    const query = [EDGE, ...Array.from(text), EDGE];
    for (let r = 0; r < rows; r++) if (this.#starts[r + 1]! > this.#starts[r]!) this.#findInRow(r, query, hits);
    return hits;
  }

  #findInRow(row: number, query: readonly number[], hits: Hit[]): void {
    const { cols, classes, scores } = this.#sight,
      begin = this.#starts[row]!,
      n = this.#starts[row + 1]! - begin,
      blank = row * cols;
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
        const c = this.#columns[begin + i]!,
          at = (blank + c) * classes,
          own = Math.max(LEAST, scores[at + a]!, scores[at + b]!);
        if (t === 0) {
          now[i] = own;
          startNow[i] = c;
          any = true;
          continue;
        }
        // A character that is missing on the screen; what is aligned stays where it was.
        let best = before[i]! + LEAST,
          start = startBefore[i]!;
        const upTo = this.#blank[blank + c - 1] ?? 0;
        for (let j = i - 1; j >= 0; j--) {
          const d = this.#columns[begin + j]!;
          if (c - d > REACH) break;
          const s = before[j]! + own + upTo - this.#blank[blank + d]!;
          if (s > best) {
            best = s;
            start = startBefore[j]!;
          }
        }
        now[i] = best;
        startNow[i] = start;
        if (best > worst) any = true;
      }
      if (!any) return;
      [before, now] = [now, before];
      [startBefore, startNow] = [startNow, startBefore];
    }
    for (let i = 0; i < n; i++) {
      const score = before[i]! / query.length;
      if (score > HOPELESS) hits.push({ score, row, from: startBefore[i]!, to: this.#columns[begin + i]! });
    }
  }

  /**
   * The text that stands at a place, read without knowing what to look for: between the edges, or wide gaps, around
   * `col`. Rows beside it are tried where the row itself has none. Undefined where nothing stands.
   */
  textAt(row: number, col: number): string | undefined {
    let best: { readonly text: string; readonly away: number } | undefined;
    for (const r of [row, row - 1, row + 1]) {
      if (r < 0 || r >= this.#sight.rows) continue;
      for (const t of this.#textsOf(r)) {
        const away = Math.max(0, t.from - col, col - t.to) + (r === row ? 0 : ROW_AWAY);
        if (away <= NEAR && (!best || away < best.away)) best = { text: t.text, away };
      }
    }
    return best?.text;
  }

  #textsOf(row: number): { readonly text: string; readonly from: number; readonly to: number }[] {
    const out: { text: string; from: number; to: number }[] = [];
    let text = '',
      from = -1,
      to = -1;
    const end = (): void => {
      const trimmed = text.trim();
      if (trimmed !== '') out.push({ text: trimmed, from, to });
      text = '';
    };
    for (const { k, col } of this.#charactersOf(row)) {
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
   * The classes of a row's columns that are not blank. A character whose middle lies between two columns may show in
   * both: of columns beside each other the surer one counts.
   */
  #charactersOf(row: number): { readonly k: number; readonly col: number }[] {
    const { cols, classes, scores } = this.#sight,
      out: { k: number; col: number; sure: number }[] = [];
    for (let col = 0; col < cols; col++) {
      const at = (row * cols + col) * classes;
      let k = BLANK;
      for (let j = 1; j < classes; j++) if (scores[at + j]! > scores[at + k]!) k = j;
      if (k === BLANK) continue;
      const sure = scores[at + k]! - scores[at + BLANK]!,
        before = out.at(-1);
      if (before?.col !== col - 1) out.push({ k, col, sure });
      else if (sure > before.sure) out[out.length - 1] = { k, col, sure };
    }
    return out;
  }
}

/** Columns beside a text that still mean it, and what another row counts as. */
const NEAR = 4,
  ROW_AWAY = 2;

/** How sure a hit is, 0 to 1: one half where on average a character scores -1, which absent words hardly reach. */
export const certainty = (score: number): number => 1 / (1 + Math.exp(-4 * (score + 1)));
