import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Head } from '../../../runtime/domain/index.js';
import {
  GLYPH_SPEC,
  HEADS,
  HEADS_OF_TYPE,
  READER_SPEC,
  choiceOf,
  headOffsets,
  headSizes,
  random,
  seenText,
} from '../../../runtime/domain/index.js';
import type { Logits } from '../../../runtime/policy/embedded/sampling.js';
import { makeSampler } from '../../../runtime/policy/embedded/sampling.js';

const spec = GLYPH_SPEC,
  sizes = headSizes(spec),
  sample = makeSampler(spec);
const noise = (seed: number, scale: number): Logits => {
  const rng = random(seed);
  return Object.fromEntries(
    HEADS.map((h) => [h, Float32Array.from({ length: sizes[h] }, () => scale * rng.normal())]),
  ) as Record<Head, Float32Array>;
};
const o = { greedy: false, temperature: 1, seed: 1, copyable: 5, top: 3 };

describe('sampling', () => {
  it('chooses a place for a text that is read, and for no other text', () => {
    const read = makeSampler(READER_SPEC),
      off = headOffsets(READER_SPEC),
      logits = noise(3, 1);
    logits.type[READER_SPEC.types.indexOf('type')] = 30;
    let asked = 0;
    for (let seed = 0; seed < 200; seed++) {
      const { choices, logprobs } = read(logits, { ...o, seed }),
        seen = choices[1] === off.text + seenText(READER_SPEC);
      expect(Array.from(choices.slice(1), (c) => choiceOf(READER_SPEC, c).head)).toEqual(
        seen ? ['text', 'cell2'] : ['text'],
      );
      expect(logprobs).toHaveLength(choices.length);
      asked += seen ? 1 : 0;
    }
    expect(asked).toBeGreaterThan(10);
    expect(asked).toBeLessThan(190);
  });
  it('is a decision of the spec with finite numbers that fit together, also for huge logits', () => {
    fc.assert(
      fc.property(
        fc.nat(1e6),
        fc.constantFrom(0.01, 1, 10, 500, 1e6),
        fc.constantFrom(0.1, 1, 3),
        fc.nat(24),
        fc.boolean(),
        fc.nat(),
        (s, scale, temperature, copyable, greedy, seed) => {
          const r = sample(noise(s, scale), { greedy, temperature, seed, copyable, top: 3 });
          const type = choiceOf(spec, r.choices[0]!);
          expect(type.head).toBe('type');
          const heads = HEADS_OF_TYPE[spec.types[type.index]!];
          expect(Array.from(r.choices.slice(1), (c) => choiceOf(spec, c).head)).toEqual(heads);
          r.choices.forEach((c, i) => {
            const { head, index } = choiceOf(spec, c);
            if (head === 'text') expect(index < copyable || index >= 24).toBe(true);
            expect(r.logprobs[i]).toBeLessThanOrEqual(0);
            expect(Number.isFinite(r.logprobs[i])).toBe(true);
            expect(r.entropies[i]).toBeGreaterThanOrEqual(0);
            expect(r.entropies[i]).toBeLessThanOrEqual(Math.log(sizes[head]) + 1e-6);
            const alt = r.alternatives[i]!;
            expect(alt.length).toBeLessThanOrEqual(3);
            for (let k = 1; k < alt.length; k++)
              expect(alt[k]!.probability).toBeLessThanOrEqual(alt[k - 1]!.probability);
            if (greedy) {
              expect(alt[0]!.choice).toBe(c);
              expect(r.logprobs[i]).toBeCloseTo(Math.log(alt[0]!.probability), 4);
            }
          });
        },
      ),
    );
  });

  it('draws each type as often as its probability says', () => {
    const logits = noise(3, 1.5),
      n = 20_000;
    const p = Array.from(logits.type, Math.exp),
      z = p.reduce((a, x) => a + x, 0);
    const count = new Array<number>(sizes.type).fill(0);
    for (let seed = 0; seed < n; seed++) {
      const t = sample(logits, { ...o, seed }).choices[0]!;
      count[t] = count[t]! + 1;
    }
    // Chi-square with 11 degrees of freedom; seeds are fixed, so this is one number: above 31.3 has probability 0.001.
    const chi2 = count.reduce((s, c, i) => s + (c - (n * p[i]!) / z) ** 2 / ((n * p[i]!) / z), 0);
    expect(chi2).toBeLessThan(31.3);
  });

  it("reports a uniform head's entropy and log-prob exactly", () => {
    const r = sample({ ...noise(1, 0), type: Float32Array.from(spec.types, (t) => (t === 'click' ? 50 : 0)) }, o);
    expect(r.choices[0]).toBe(0);
    expect(r.entropies[1]).toBeCloseTo(Math.log(1000), 5);
    expect(r.logprobs[1]).toBeCloseTo(-Math.log(1000), 5);
  });

  it('divides logits by the temperature before anything else', () => {
    const base = noise(4, 2),
      half = Object.fromEntries(HEADS.map((h) => [h, base[h].map((x) => x / 0.5)])) as unknown as Logits;
    const a = sample(base, { ...o, temperature: 0.5, seed: 9 }),
      b = sample(half, { ...o, seed: 9 });
    expect(a.choices).toEqual(b.choices);
    a.logprobs.forEach((l, i) => {
      expect(l).toBeCloseTo(b.logprobs[i]!, 5);
      expect(a.entropies[i]).toBeCloseTo(b.entropies[i]!, 5);
    });
    expect(sample(base, { ...o, seed: 9 }).entropies[0]).toBeGreaterThan(a.entropies[0]! + 0.1);
    // A temperature of 0 is the greedy choice.
    expect(sample(base, { ...o, temperature: 0 }).choices).toEqual(sample(base, { ...o, greedy: true }).choices);
  });

  it('never draws what the graph made impossible', () => {
    const type = new Float32Array(sizes.type).fill(-Infinity);
    type[4] = 0;
    for (let seed = 0; seed < 50; seed++) expect(sample({ ...noise(2, 1), type }, { ...o, seed }).choices[0]).toBe(4);
  });

  it('refuses logits that are not numbers', () => {
    for (const bad of [NaN, Infinity]) {
      const logits = noise(1, 1);
      logits.type[3] = bad;
      expect(() => sample(logits, o)).toThrow(/not finite/);
    }
  });
});
