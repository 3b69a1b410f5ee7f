const most = 100;

/** "1, 2, 5-8" as numbers, each once; none of an empty text; undefined where it is something else. */
export function parseSeeds(words: string): number[] | undefined {
  const out = new Set<number>();
  for (const part of words.split(/[,\s]+/).filter((p) => p !== '')) {
    const m = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part);
    if (!m) return undefined;
    const from = Number(m[1]),
      to = Number(m[2] ?? m[1]);
    if (to < from || to - from >= most) return undefined;
    for (let seed = from; seed <= to; seed++) out.add(seed);
    if (out.size > most) return undefined;
  }
  return [...out];
}
