/**
 * Python difflib.SequenceMatcher(a=, b=).ratio(): 2 * matched / (len a + len b), the matches found by taking the
 * longest common block first, then left and right of it; elements of b in more than 1 % of 200 or more are "popular"
 * and start no block.
 *
 * A block left or right of another is never longer than that, and of equals the first is taken: so a search ends where
 * it meets one as long. Each element of a is then looked at about as often as blocks have different lengths (at most
 * the square root of 2 * b.length), not as often as there are blocks.
 */
export function sequenceRatio(a: readonly string[], b: readonly string[]): number {
  const total = a.length + b.length;
  if (total === 0) return 1;
  const blocks = new Blocks(a, b),
    queue: Range[] = [{ alo: 0, ahi: a.length, blo: 0, bhi: b.length, most: Math.min(a.length, b.length) }];
  let matched = 0;
  for (let r = queue.pop(); r !== undefined; r = queue.pop()) {
    const { alo, ahi, blo, bhi } = r,
      { i, j, n, run } = blocks.longest(r);
    if (n === 0) continue;
    matched += n;
    if (alo < i && blo < j) queue.push({ alo, ahi: i, blo, bhi: j, most: run });
    if (i + n < ahi && j + n < bhi) queue.push({ alo: i + n, ahi, blo: j + n, bhi, most: run });
  }
  return (2 * matched) / total;
}

/** Part of both lists; `most`: no block in it is longer, popular elements not counted. */
interface Range {
  readonly alo: number;
  readonly ahi: number;
  readonly blo: number;
  readonly bhi: number;
  readonly most: number;
}
/** a[i, i + n) equals b[j, j + n); `run` of them start no block with a popular element. */
interface Block {
  readonly i: number;
  readonly j: number;
  readonly n: number;
  readonly run: number;
}

class Blocks {
  readonly #a: readonly string[];
  readonly #b: readonly string[];
  /** Places in b of each element of a, popular ones left out, ascending. */
  readonly #places: readonly (readonly number[] | undefined)[];
  /** Length of the run that ends at a place of b, and the row (one for each element of a looked at) it is of. */
  readonly #run: Int32Array;
  readonly #rowOf: Float64Array;
  #row = 0;
  constructor(a: readonly string[], b: readonly string[]) {
    this.#a = a;
    this.#b = b;
    const at = new Map<string, number[]>();
    b.forEach((x, j) => {
      const l = at.get(x);
      if (l) l.push(j);
      else at.set(x, [j]);
    });
    const most = b.length >= 200 ? Math.floor(b.length / 100) + 1 : b.length;
    this.#places = a.map((x) => {
      const places = at.get(x);
      return places && places.length <= most ? places : undefined;
    });
    this.#run = new Int32Array(b.length + 1);
    this.#rowOf = new Float64Array(b.length + 1);
  }

  /** The longest block of a range, the first of equals; popular elements start no block but may stretch one. */
  longest({ alo, ahi, blo, bhi, most }: Range): Block {
    let i = alo,
      j = blo,
      n = 0;
    this.#row++;
    for (let x = alo; x < ahi && n < most; x++) {
      const row = ++this.#row,
        places = this.#places[x];
      if (!places) continue;
      // Walked from the right: the run that ends one place before is still that of the row before.
      let best = -1;
      for (let p = before(places, bhi); p >= 0; p--) {
        const y = places[p]!;
        if (y < blo) break;
        const k = y > blo && this.#rowOf[y - 1] === row - 1 ? this.#run[y - 1]! + 1 : 1;
        this.#run[y] = k;
        this.#rowOf[y] = row;
        if (k > n || (k === n && best >= 0)) {
          n = k;
          best = y;
        }
      }
      if (best >= 0) {
        i = x - n + 1;
        j = best - n + 1;
      }
    }
    const run = n;
    while (i > alo && j > blo && this.#a[i - 1] === this.#b[j - 1]) {
      i--;
      j--;
      n++;
    }
    while (i + n < ahi && j + n < bhi && this.#a[i + n] === this.#b[j + n]) n++;
    return { i, j, n, run };
  }
}

/** Index of the last place below `end`; -1 when there is none. */
function before(places: readonly number[], end: number): number {
  let low = 0,
    high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle]! < end) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * rapidfuzz.fuzz.ratio / 100: 2 * longest common subsequence / total length of two strings, by code point. Works on 32
 * characters of the shorter one at a time (Hyyrö 2004).
 */
export function fuzzRatio(s: string, t: string): number {
  const a = [...s],
    b = [...t],
    total = a.length + b.length;
  return total === 0 ? 1 : (2 * (a.length < b.length ? commonLength(b, a) : commonLength(a, b))) / total;
}

function commonLength(text: readonly string[], pattern: readonly string[]): number {
  const words = Math.ceil(pattern.length / 32),
    masks = new Map<string, Uint32Array>();
  pattern.forEach((c, k) => {
    let m = masks.get(c);
    if (!m) masks.set(c, (m = new Uint32Array(words)));
    m[k >>> 5]! |= 1 << (k & 31);
  });
  // A zero bit: the common subsequence grows by one with this character of the pattern.
  const open = new Uint32Array(words).fill(0xffffffff);
  for (const c of text) {
    const mask = masks.get(c);
    if (!mask) continue;
    let carry = 0;
    for (let w = 0; w < words; w++) {
      const v = open[w]!,
        u = (v & mask[w]!) >>> 0,
        sum = v + u + carry;
      carry = sum > 0xffffffff ? 1 : 0;
      open[w] = (sum >>> 0) | (v - u);
    }
  }
  let n = 0;
  for (let k = 0; k < pattern.length; k++) n += ((open[k >>> 5]! >>> (k & 31)) & 1) ^ 1;
  return n;
}
