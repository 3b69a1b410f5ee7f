import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupAdvantages } from '../../../runtime/trainer/objective/advantages.js';
import { forkAdvantages } from '../../../runtime/trainer/objective/forkAdvantages.js';

const member = fc.record({
  reward: fc.constantFrom(0, 0.5, 1),
  states: fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1, maxLength: 6 }),
});
const group = fc.array(member, { minLength: 2, maxLength: 8 });

describe('fork advantages', () => {
  it('give the credit to the step at which trajectories part', () => {
    // All press the menu; two then choose right and succeed, two choose wrong.
    const right = { reward: 1, states: ['start', 'menu', 'done'] },
      wrong = { reward: 0, states: ['start', 'menu', 'other'] };
    const [a, , c] = forkAdvantages([right, right, wrong, wrong], 'none');
    expect(a).toEqual([0.5, 0.5, 0]);
    expect(c).toEqual([-0.5, -0.5, 0]);
    // Where one already stood in the wrong place, what it did there is judged by what others reached from there.
    const [, slip] = forkAdvantages(
      [
        { reward: 1, states: ['start', 'menu'] },
        { reward: 1, states: ['start', 'slip', 'menu'] },
        { reward: 0, states: ['start', 'slip', 'lost'] },
      ],
      'none',
    );
    expect(slip!.map((x) => Math.round(x * 1000) / 1000)).toEqual([0.333, 0.5, 0]);
  });

  it('are those of the group where nothing but the start is shared', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(0, 1), { minLength: 2, maxLength: 8 }),
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom('std' as const, 'none' as const),
        (rewards, steps, norm) => {
          const got = forkAdvantages(
            rewards.map((reward, i) => ({
              reward,
              states: ['start', ...Array.from({ length: steps }, (_, k) => `${i}/${k}`)],
            })),
            norm,
          );
          const want = groupAdvantages(
            rewards,
            rewards.map(() => 1),
            { baseline: 'trajectory', norm },
          );
          got.forEach((row, i) => {
            row.forEach((x) => {
              expect(x).toBeCloseTo(want[i]!, 9);
            });
          });
        },
      ),
    );
  });

  it('sum to nothing over the trajectories that came through a shared state, and vanish without variance', () => {
    fc.assert(
      fc.property(group, (members) => {
        const a = forkAdvantages(members, 'none');
        for (const s of new Set(members.flatMap((m) => m.states))) {
          const through = members.flatMap((m, i) => {
            const k = m.states.indexOf(s);
            return k < 0 ? [] : [a[i]![k]!];
          });
          if (through.length > 1) expect(through.reduce((x, y) => x + y, 0)).toBeCloseTo(0, 9);
        }
        for (const row of forkAdvantages(
          members.map((m) => ({ ...m, reward: 1 })),
          'std',
        ))
          for (const x of row) expect(x).toBe(0);
      }),
    );
  });
});
