import { describe, expect, it } from 'vitest';
import { GLYPH_SPEC as spec, headOffsets, random } from '../../../runtime/domain/index.js';
import {
  augment,
  neighbourChoices,
  retone,
  shiftPixels,
  shiftSample,
} from '../../../runtime/trainer/native/augment.js';

const off = headOffsets(spec),
  at = (row: number, col: number): number => off.cell + row * 40 + col;
function state(): { obs: Uint8Array; instruction: Int32Array; history: Int32Array } {
  const rng = random('augment');
  const history = new Int32Array(17);
  history.set([1, 6, 11, 2], 12);
  return { obs: Uint8Array.from({ length: 64_000 }, () => rng.int(256)), instruction: new Int32Array(48), history };
}

describe('shifting a demonstration', () => {
  it.each([
    [3, -2],
    [-5, 7],
    [0, 4],
    [16, 0],
  ])('moves pixels by %i, %i and repeats the edge', (dx, dy) => {
    const { obs } = state(),
      out = shiftPixels(obs, 320, 200, dx, dy);
    const clamp = (v: number, hi: number): number => Math.min(hi, Math.max(0, v));
    for (let y = 0; y < 200; y++)
      for (let x = 0; x < 320; x++)
        if (out[y * 320 + x] !== obs[clamp(y - dy, 199) * 320 + clamp(x - dx, 319)])
          throw new Error(`pixel ${x}, ${y}`);
    expect(out.length).toBe(obs.length);
  });
  it('moves targets and remembered clicks with the picture, and nothing else', () => {
    const s = state(),
      moved = shiftSample(spec, s, Int32Array.of(3, at(4, 5), off.cell2 + 7 * 40 + 8), 16, -8)!;
    expect([...moved.choices]).toEqual([3, at(3, 7), off.cell2 + 6 * 40 + 10]);
    expect([...moved.state.history.slice(12, 16)]).toEqual([1, 5, 13, 2]);
    expect([...moved.state.history.slice(0, 12)]).toEqual(new Array<number>(12).fill(0));
  });
  it('takes the nearest cell for parts of a cell', () => {
    const s = state(),
      to = (dx: number): number => shiftSample(spec, s, Int32Array.of(0, at(4, 5)), dx, 0)!.choices[1]!;
    expect([3, 4, -4, -5].map(to)).toEqual([at(4, 5), at(4, 6), at(4, 5), at(4, 4)]);
  });
  it('does not move a sample whose target would leave the screen', () => {
    expect(shiftSample(spec, state(), Int32Array.of(0, at(0, 0)), -8, 0)).toBeUndefined();
    const s = state(),
      kept = augment(
        spec,
        s,
        Int32Array.of(3, at(0, 0), off.cell2 + 999),
        { shift: 8 },
        { ...random(1), int: () => 0 },
      );
    expect(kept.state).toBe(s);
  });
  it('shifts key presses freely and keeps their choice', () => {
    expect([...shiftSample(spec, state(), Int32Array.of(6, off.key + 3), 24, 24)!.choices]).toEqual([6, off.key + 3]);
  });
});

describe('other tones', () => {
  const grey = Uint8Array.from({ length: 256 }, (_, i) => i);
  it('are a curve over the whole screen that rises or falls and keeps at least half the contrast', () => {
    const kinds = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      const curve = retone(grey, 1, random(seed)),
        ends = curve[255]! - curve[0]!,
        sign = Math.sign(ends);
      expect(Math.abs(ends)).toBeGreaterThanOrEqual(127);
      for (let i = 1; i < 256; i++) expect(sign * (curve[i]! - curve[i - 1]!)).toBeGreaterThanOrEqual(0);
      kinds.add(sign > 0 ? 'rising' : 'falling');
    }
    expect([...kinds].sort()).toEqual(['falling', 'rising']);
  });
  it('come to the share of screens that was asked for, without a draw when that is none', () => {
    const rng = random('share'),
      toned = Array.from({ length: 1000 }, () => retone(grey, 0.3, rng)).filter((x) => x !== grey).length;
    expect(toned).toBeGreaterThan(250);
    expect(toned).toBeLessThan(350);
    expect(retone(grey, 0, { ...random(1), next: () => expect.unreachable('drew') })).toBe(grey);
  });
  it('change what a demonstration shows and nothing that was chosen', () => {
    const s = state(),
      choices = Int32Array.of(3, at(4, 5)),
      toned = augment(spec, s, choices, { shift: 0, tones: 1 }, random('tones'));
    expect(toned.choices).toBe(choices);
    expect(toned.state.history).toBe(s.history);
    expect(toned.state.obs).not.toEqual(s.obs);
  });
});

describe('neighbouring cells', () => {
  it('are the four around, fewer at the edge, none for other heads', () => {
    expect(neighbourChoices(spec, at(5, 5)).sort()).toEqual([at(4, 5), at(5, 4), at(5, 6), at(6, 5)].sort());
    expect(neighbourChoices(spec, at(0, 39)).sort()).toEqual([at(0, 38), at(1, 39)].sort());
    expect(neighbourChoices(spec, off.key)).toEqual([]);
  });
});
