import { describe, expect, it } from 'vitest';
import { klMoved, movedTooFar, type Moved } from '../../../runtime/trainer/objective/kl.js';

const logs = (...p: number[]): number[] => p.map(Math.log);
const step = (now: number[], old: number[], rollout: number[] | undefined = old): Moved => ({ now, old, rollout });

describe('how far an update has moved the policy', () => {
  it('is the mean of k3 over tokens', () => {
    // x = log 2: 2 - log 2 - 1; x = -log 2: 1/2 + log 2 - 1.
    expect(klMoved([step(logs(0.5), logs(0.25))])).toBeCloseTo(0.306853, 6);
    expect(klMoved([step(logs(0.25), logs(0.5))])).toBeCloseTo(0.193147, 6);
    expect(klMoved([step(logs(0.5, 0.25), logs(0.25, 0.5)), step(logs(0.3), logs(0.3))])).toBeCloseTo(0.5 / 3, 6);
  });
  it('is the KL from the old policy to the new one, expected over what the old one samples', () => {
    const old = [0.7, 0.2, 0.1],
      now = [0.5, 0.2, 0.3];
    const expected = old.reduce((a, p, i) => a + p * klMoved([step(logs(now[i]!), logs(p))]), 0),
      kl = old.reduce((a, p, i) => a + p * Math.log(p / now[i]!), 0);
    expect(expected).toBeCloseTo(kl, 12);
    // The other direction is another number.
    expect(Math.abs(kl - now.reduce((a, p, i) => a + p * Math.log(p / old[i]!), 0))).toBeGreaterThan(0.01);
  });
  it('counts tokens that a policy sampled and whose log-prob is known, and no demonstrated ones', () => {
    const sampled = step(logs(0.5), logs(0.25)),
      unlikely: Moved = { now: logs(0.2), old: logs(0.001), rollout: undefined };
    expect(klMoved([sampled, unlikely])).toBe(klMoved([sampled]));
    expect(klMoved([step(logs(0.5, 0.2), logs(0.25, 0.001), [-1, NaN])])).toBe(klMoved([sampled]));
    expect(klMoved([unlikely])).toBeNaN();
    expect(klMoved([])).toBeNaN();
  });
  it('is bounded token by token, as the KL term is', () => expect(klMoved([step([0], [-30])])).toBe(10));
});

describe('the target', () => {
  it('counts as exceeded above 1.5 times the target', () => {
    expect([0.0099, 0.015, 0.0151].map((kl) => movedTooFar(kl, 0.01))).toEqual([false, false, true]);
  });
  it('of 0 is none, and what was not measured oversteps none', () => {
    expect([movedTooFar(1e9, 0), movedTooFar(NaN, 0.01)]).toEqual([false, false]);
  });
});
