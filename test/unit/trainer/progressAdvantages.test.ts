import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupAdvantages } from '../../../runtime/trainer/objective/advantages.js';
import { progressAdvantages } from '../../../runtime/trainer/objective/progressAdvantages.js';

const heard = fc.option(fc.constantFrom(0, 0.5, 1), { nil: undefined });
const member = fc.record({
  reward: fc.constantFrom(0, 0.5, 1),
  held: fc.array(heard, { minLength: 1, maxLength: 6 }),
});
const group = fc.array(member, { minLength: 2, maxLength: 8 });
const round = (rows: readonly (readonly number[])[]): number[][] =>
  rows.map((r) => r.map((x) => Math.round(1000 * x) / 1000));

describe('advantages by progress', () => {
  it('credit what brought a failure on, and blame what spoilt it', () => {
    // Of four that got half of it done two succeed: half done is worth 0.5, and so much less is nothing done (0.4).
    const through = { reward: 1, held: [0.5, 1, undefined] },
      spoilt = { reward: 0, held: [0.5, 0, undefined] },
      nothing = { reward: 0, held: [0, 0, undefined] };
    const [a, , b, , c] = round(progressAdvantages([through, through, spoilt, spoilt, nothing], 'none'));
    expect(a).toEqual([0.55, 0.5, 0]);
    // 0.1 for half of it, -0.1 for losing that, -0.4 for the end.
    expect(b).toEqual([-0.314, -0.46, -0.4]);
    expect(c).toEqual([-0.324, -0.36, -0.4]);
    // The step that got half of it done is better than one that did nothing, though both failed.
    expect(b![0]!).toBeGreaterThan(c![0]!);
  });

  it('are those of the group where the verifier was never asked, and nothing where all outcomes are alike', () => {
    fc.assert(
      fc.property(group, fc.constantFrom('std' as const, 'none' as const), (members, norm) => {
        const silent = members.map((m) => ({ ...m, held: m.held.map(() => undefined) })),
          plain = groupAdvantages(
            members.map((m) => m.reward),
            members.map(() => 1),
            { baseline: 'trajectory', norm },
          );
        expect(progressAdvantages(silent, norm)).toEqual(members.map((m, i) => m.held.map(() => plain[i]!)));
        const alike = members.map((m) => ({ ...m, reward: 0.5 }));
        for (const row of progressAdvantages(alike, norm)) for (const x of row) expect(Math.abs(x)).toBeLessThan(1e-6);
      }),
    );
  });

  it('add up, undiscounted, to what the outcome is above the beginning: each step has its own part of it', () => {
    fc.assert(
      fc.property(group, (members) => {
        const rows = progressAdvantages(members, 'none');
        for (const [i, row] of rows.entries()) {
          expect(row).toHaveLength(members[i]!.held.length);
          expect(row.every(Number.isFinite)).toBe(true);
          // delta = A(k) - 0.9 A(k + 1)
          if (!members[i]!.held.some((h) => h !== undefined)) continue;
          const sum = row.reduce((n, x, k) => n + x - 0.9 * (row[k + 1] ?? 0), 0),
            best = Math.max(...members.map((m) => m.reward)),
            least = Math.min(...members.map((m) => m.reward));
          expect(sum).toBeGreaterThanOrEqual(members[i]!.reward - best - 1e-9);
          expect(sum).toBeLessThanOrEqual(members[i]!.reward - least + 1e-9);
        }
      }),
    );
  });
});
