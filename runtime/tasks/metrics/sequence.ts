/**
 * Python difflib.SequenceMatcher(a=, b=).ratio(): 2 * matched / (len a + len b), the matches found by taking the
 * longest common block first, then left and right of it; elements of b in more than 1 % of 200 or more are "popular"
 * and start no block.
 */
export async function sequenceRatio(a: readonly string[], b: readonly string[]): Promise<number> {
  const total = a.length + b.length;
  if (total === 0) return 1;
  const at = new Map<string, number[]>();
  b.forEach((x, j) => {
    const l = at.get(x);
    if (l) l.push(j);
    else at.set(x, [j]);
  });
  if (b.length >= 200) {
    const most = Math.floor(b.length / 100) + 1;
    for (const [x, l] of at) if (l.length > most) at.delete(x);
  }
  let matched = 0;
  const queue: [number, number, number, number][] = [[0, a.length, 0, b.length]];
  while (queue.length > 0) {
    const [alo, ahi, blo, bhi] = queue.pop()!;
    const [i, j, n] = await longest(a, b, at, alo, ahi, blo, bhi);
    if (n === 0) continue;
    matched += n;
    if (alo < i && blo < j) queue.push([alo, i, blo, j]);
    if (i + n < ahi && j + n < bhi) queue.push([i + n, ahi, j + n, bhi]);
  }
  return (2 * matched) / total;
}

/** Inner steps between two looks at the clock's turn: keeps one slice well under 20 ms. */
const SLICE = 200_000;

async function longest(
  a: readonly string[],
  b: readonly string[],
  at: ReadonlyMap<string, readonly number[]>,
  alo: number,
  ahi: number,
  blo: number,
  bhi: number,
): Promise<[number, number, number]> {
  let bi = alo,
    bj = blo,
    n = 0,
    work = 0;
  let before = new Map<number, number>();
  for (let i = alo; i < ahi; i++) {
    const now = new Map<number, number>();
    for (const j of at.get(a[i]!) ?? []) {
      work++;
      if (j < blo) continue;
      if (j >= bhi) break;
      const k = (before.get(j - 1) ?? 0) + 1;
      now.set(j, k);
      if (k > n) {
        bi = i - k + 1;
        bj = j - k + 1;
        n = k;
      }
    }
    before = now;
    if (++work > SLICE) {
      work = 0;
      await new Promise((r) => setImmediate(r));
    }
  }
  // Popular elements start no block but may stretch one.
  while (bi > alo && bj > blo && a[bi - 1] === b[bj - 1]) {
    bi--;
    bj--;
    n++;
  }
  while (bi + n < ahi && bj + n < bhi && a[bi + n] === b[bj + n]) n++;
  return [bi, bj, n];
}

/** rapidfuzz.fuzz.ratio / 100: 2 * longest common subsequence / total length of two strings, by code point. */
export async function fuzzRatio(s: string, t: string): Promise<number> {
  const a = [...s],
    b = [...t];
  if (a.length + b.length === 0) return 1;
  let row = new Uint32Array(b.length + 1),
    work = 0;
  for (const x of a) {
    const next = new Uint32Array(b.length + 1);
    for (let j = 1; j <= b.length; j++) next[j] = x === b[j - 1] ? row[j - 1]! + 1 : Math.max(row[j]!, next[j - 1]!);
    row = next;
    if ((work += b.length) > SLICE) {
      work = 0;
      await new Promise((r) => setImmediate(r));
    }
  }
  return (2 * row[b.length]!) / (a.length + b.length);
}
