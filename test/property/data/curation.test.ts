import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { id, quantile, random } from '../../../runtime/domain/index.js';
import type { FamilyId, RolloutId, TaskId, Trajectory } from '../../../runtime/domain/index.js';
import { curateGroup } from '../../../runtime/data/curation/curateGroup.js';
import { selectHighEntropy } from '../../../runtime/data/curation/highEntropy.js';
import { stepCap } from '../../../runtime/data/curation/dynamicLength.js';
import { groupSize } from '../../../runtime/data/curation/dynamicRollouts.js';
import { distance } from '../../../runtime/data/curation/poolInjection.js';
import { admissionCapacity } from '../../../runtime/data/curation/staleness.js';
import { dataConfig, failure, makeTrajectory, success } from '../../helpers/data/manager.js';

const base = { family: id<FamilyId>('f'), task: id<TaskId>('f#1'), cap: 30 };
const member = (i: number, ok: boolean, entropies: number[], endedAt = i): Trajectory =>
  makeTrajectory({ ...base, rollout: id<RolloutId>(`r${i}`) }, ok ? success : failure, { entropies, endedAt });
const groupArb = fc
  .array(
    fc.record({
      ok: fc.boolean(),
      h: fc.array(fc.float({ min: 0, max: 5, noNaN: true }), { minLength: 0, maxLength: 6 }),
    }),
    { maxLength: 12 },
  )
  .map((xs) => xs.map((x, i) => member(i, x.ok, x.h)));

describe('curation', () => {
  it('accounts for every rollout of a group once: kept, or retired with a reason', () => {
    fc.assert(
      fc.property(groupArb, fc.boolean(), fc.integer(), (own, withPool, seed) => {
        const demo = makeTrajectory({ ...base, rollout: id<RolloutId>('demo') }, success, {
          provenance: { kind: 'oracle' },
          steps: 2,
        });
        let asked = 0;
        const c = curateGroup(
          own,
          () => {
            asked++;
            return withPool ? demo : undefined;
          },
          dataConfig({ groupFilter: { maxSize: 5 } }),
          random(seed),
        );
        const solved = own.some((t) => t.outcome.kind === 'success');
        expect(asked).toBe(own.length > 0 && !solved ? 1 : 0);
        const retired = c.retired.map((r) => r.rollout),
          kept =
            c.kind === 'formed'
              ? c.members.filter((m) => !m.injected && m.keep.includes(true)).map((m) => m.trajectory.id)
              : [];
        expect([...retired, ...kept].sort()).toEqual(own.map((t) => t.id).sort());
        if (c.kind === 'dropped') return;
        const rewards = c.members.map((m) => m.reward);
        expect(new Set(rewards).size).toBe(2);
        expect(c.members.length).toBeLessThanOrEqual(5);
        expect(c.members.filter((m) => m.injected).length).toBe(solved ? 0 : 1);
        for (const m of c.members) expect(m.keep).toHaveLength(m.trajectory.steps.length);
        expect(c.members.some((m) => m.keep.includes(true))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('keeps at least 1 - q of the steps, exactly those at or over the quantile, in any order of the trajectories', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.float({ min: 0, max: 5, noNaN: true }), { maxLength: 8 }), { maxLength: 8 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (hs, q) => {
          const ts = hs.map((h, i) => ({ trajectory: member(i, true, h), injected: false })),
            { keep, threshold } = selectHighEntropy(ts, { enabled: true, keep: 1 - q });
          const all = hs.flat().map(Math.fround),
            flags = keep.flat();
          if (all.length === 0) {
            expect(threshold).toBeUndefined();
            return;
          }
          expect(flags.filter(Boolean).length).toBeGreaterThanOrEqual(
            Math.max(1, Math.floor((1 - q) * (all.length - 1))),
          );
          expect(flags).toEqual(all.map((h) => h >= threshold! - 1e-9 * Math.max(1, threshold!)));
          const back = selectHighEntropy([...ts].reverse(), { enabled: true, keep: 1 - q });
          expect([...back.keep].reverse()).toEqual(keep);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('a quantile lies between the extremes and grows with q', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 1 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (xs, a, b) => {
          const [lo, hi] = [quantile(xs, Math.min(a, b))!, quantile(xs, Math.max(a, b))!];
          expect(lo).toBeLessThanOrEqual(hi + 1e-12);
          expect(lo).toBeGreaterThanOrEqual(Math.min(...xs) - 1e-12);
          expect(hi).toBeLessThanOrEqual(Math.max(...xs) + 1e-12);
        },
      ),
    );
  });

  it('N never grows with the success rate, and a cap never leaves its bounds', () => {
    const { dynamicRollouts: n, dynamicLength: l } = dataConfig();
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 1, max: 32 }),
        (a, b, max) => {
          const size = (rate: number): number => groupSize({ rate, n: 99 }, { ...n, max });
          expect(size(Math.max(a, b))).toBeLessThanOrEqual(size(Math.min(a, b)));
          expect(size(a)).toBeGreaterThanOrEqual(1);
          expect(size(a)).toBeLessThanOrEqual(max);
        },
      ),
    );
    fc.assert(
      fc.property(
        fc.option(fc.nat(100), { nil: undefined }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
        (longest, u, limit) => {
          const cap = stepCap(longest, u, l, limit),
            top = Math.min(l.global, limit ?? l.global);
          expect(cap).toBeLessThanOrEqual(top);
          expect(cap).toBeGreaterThanOrEqual(Math.min(l.floor, top));
          if (longest !== undefined && u >= l.exploreShare) expect(cap).toBeGreaterThanOrEqual(Math.min(longest, top));
        },
      ),
    );
  });

  it('whoever is admitted is trained within eta updates, whatever starts, ends and is trained when', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.constantFrom('start', 'end', 'train'), { maxLength: 400 }),
        (eta, B, maxConcurrent, events) => {
          // A run in small: rollouts carry the version they began with, and are trained oldest first, B at a time.
          const running: number[] = [],
            waiting: number[] = [];
          let version = 0,
            trained = 0,
            lag = 0;
          for (const e of events) {
            const capacity = admissionCapacity({
              maxConcurrent,
              running: running.length,
              accepted: trained + waiting.length,
              version,
              eta,
              perUpdate: B,
            });
            expect(running.length + Math.max(0, capacity)).toBeLessThanOrEqual(maxConcurrent);
            if (e === 'start' && capacity > 0) running.push(version);
            else if (e === 'end' && running.length > 0) waiting.push(running.shift()!);
            else if (e === 'train' && waiting.length >= B) {
              waiting.sort((x, y) => x - y);
              for (const v of waiting.splice(0, B)) lag = Math.max(lag, version - v);
              trained += B;
              version++;
            }
            // It never stops for good: with nothing running and too little for an update, one more may start.
            if (running.length === 0 && waiting.length < B)
              expect(
                admissionCapacity({
                  maxConcurrent,
                  running: 0,
                  accepted: trained + waiting.length,
                  version,
                  eta,
                  perUpdate: B,
                }),
              ).toBeGreaterThan(0);
          }
          expect(lag).toBeLessThanOrEqual(eta);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('novelty is a distance', () => {
    const sig = fc.array(fc.constantFrom('click', 'type', 'drag'), { maxLength: 6 });
    fc.assert(
      fc.property(sig, sig, (a, b) => {
        expect(distance(a, b)).toBeCloseTo(distance(b, a));
        expect(distance(a, a)).toBe(0);
        expect(distance(a, b)).toBeLessThanOrEqual(1);
        if (a.join() !== b.join()) expect(distance(a, b)).toBeGreaterThan(0);
      }),
    );
  });
});
