/**
 * A small seeded generator (splitmix32 feeding sfc32): same seed, same sequence, on every machine; its state can be
 * saved.
 */
export interface Random {
  next(): number;
  int(n: number): number;
  pick<T>(xs: readonly T[]): T;
  shuffle<T>(xs: readonly T[]): T[];
  normal(): number;
  fork(label: string): Random;
  state(): readonly [number, number, number, number];
}

export function hash32(s: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < s.length; i++) h = Math.imul(h ^ s.charCodeAt(i), 0x01000193);
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  h ^= h >>> 16;
  return h >>> 0;
}

export function random(seed: number | string | readonly [number, number, number, number]): Random {
  let a: number, b: number, c: number, d: number;
  if (typeof seed === 'object') [a, b, c, d] = seed;
  else {
    let x = (typeof seed === 'string' ? hash32(seed) : seed) >>> 0;
    const mix = (): number => {
      x = (x + 0x9e3779b9) >>> 0;
      let z = x;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return (z ^ (z >>> 15)) >>> 0;
    };
    a = mix();
    b = mix();
    c = mix();
    d = 1;
    for (let i = 0; i < 12; i++) step();
  }
  function step(): number {
    const t = (((a + b) >>> 0) + d) >>> 0;
    d = (d + 1) >>> 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) >>> 0;
    c = ((c << 21) | (c >>> 11)) >>> 0;
    c = (c + t) >>> 0;
    return t;
  }
  const self: Random = {
    next: () => step() / 4294967296,
    int: (n) => Math.floor(self.next() * n),
    pick: (xs) => {
      if (xs.length === 0) throw new RangeError('pick from an empty list');
      return xs[self.int(xs.length)]!;
    },
    shuffle: (xs) => {
      const r = [...xs];
      for (let i = r.length - 1; i > 0; i--) {
        const j = self.int(i + 1);
        [r[i], r[j]] = [r[j]!, r[i]!];
      }
      return r;
    },
    normal: () => Math.sqrt(-2 * Math.log(1 - self.next())) * Math.cos(2 * Math.PI * self.next()),
    fork: (label) => random((hash32(label) ^ step()) >>> 0),
    state: () => [a, b, c, d],
  };
  return self;
}
