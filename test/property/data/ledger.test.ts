import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { id, type RetireReason } from '../../../runtime/domain/index.js';
import type { BatchId, GroupId, RolloutId } from '../../../runtime/domain/index.js';
import { Ledger } from '../../../runtime/data/ledger.js';
import type { LedgerMove } from '../../../runtime/data/ledger.js';
import type { RolloutState } from '../../../runtime/data/types.js';

const reasons: RetireReason[] = ['error', 'stopped', 'lost', 'no-variance', 'replaced', 'trimmed', 'masked', 'stale'];
const group = id<GroupId>('g1');
const stateArb: fc.Arbitrary<RolloutState> = fc.oneof(
  ...(['queued', 'running', 'recorded'] as const).map((at) => fc.constant({ at })),
  fc.constantFrom('g1', 'g2').map((g) => ({ at: 'grouped' as const, group: id<GroupId>(g) })),
  fc.constantFrom('b1', 'b2').map((b) => ({ at: 'claimed' as const, batch: id<BatchId>(b) })),
  fc.constant({ at: 'trained' as const }),
  fc.constantFrom(...reasons).map((reason) => ({ at: 'retired' as const, reason })),
);
const nexts: Record<string, RolloutState['at']> = {
  none: 'queued',
  queued: 'running',
  running: 'recorded',
  recorded: 'grouped',
  grouped: 'claimed',
  claimed: 'trained',
};
/** Rollouts as a run numbers them, one of another name, one whose number is far from the others'. */
const NAMES = ['r000000', 'r000001', 'r000002', 'r001023', 'r001024', 'r1', 'a/b', 'r999999999999'];
const nameOf = (n: number): RolloutId => id<RolloutId>(NAMES[n]!);
type Wish = { rollout: RolloutId; to: RolloutState; forward: boolean };
/** A wish: any move, or (three times in four) the next one along the way, so that histories get far. */
const moveArb: fc.Arbitrary<Wish> = fc.record({
  rollout: fc.nat(7).map(nameOf),
  to: stateArb,
  forward: fc.nat(3).map((n) => n > 0),
});
function resolve(l: Ledger, w: Wish): LedgerMove {
  const at = nexts[l.state(w.rollout)?.at ?? 'none'];
  if (!w.forward || !at) return { rollout: w.rollout, to: w.to };
  const to =
    at === 'grouped' ? { at, group } : at === 'claimed' ? { at, batch: id<BatchId>('b1') } : ({ at } as RolloutState);
  return { rollout: w.rollout, to };
}

function closes(l: Ledger): void {
  const c = l.counts();
  const retired = Object.values(c.retired).reduce((a, b) => a + b, 0);
  expect(c.generated).toBe(c.trained + c.inFlight + retired);
  expect(c.generated).toBe(Object.values(c.byState).reduce((a, b) => a + b, 0));
  for (const at of Object.keys(c.byState) as (keyof typeof c.byState)[]) {
    expect(c.byState[at]).toBeGreaterThanOrEqual(0);
    expect(l.rollouts(at)).toHaveLength(c.byState[at]);
  }
}

describe('ledger', () => {
  it('closes after any history, refuses without change, and replays to the same state', () => {
    fc.assert(
      fc.property(fc.array(moveArb, { maxLength: 120 }), (moves) => {
        const l = new Ledger(),
          accepted: LedgerMove[] = [];
        for (const w of moves) {
          const m = resolve(l, w);
          const before = JSON.stringify([l.counts(), l.state(m.rollout)]);
          const refused = l.refusal(m);
          if (refused === undefined) {
            l.move(m);
            accepted.push(m);
            expect(l.state(m.rollout)).toEqual(m.to);
          } else {
            expect(() => l.move(m)).toThrow(refused);
            expect(JSON.stringify([l.counts(), l.state(m.rollout)])).toBe(before);
          }
          closes(l);
        }
        const again = new Ledger();
        for (const m of accepted) again.move(m);
        expect(again.counts()).toEqual(l.counts());
        for (let i = 0; i < 8; i++) expect(again.state(nameOf(i))).toEqual(l.state(nameOf(i)));
      }),
      { numRuns: 300 },
    );
  });

  it('walks every rollout only forward: trained and retired are final', () => {
    fc.assert(
      fc.property(fc.array(moveArb, { maxLength: 150 }), (moves) => {
        const l = new Ledger(),
          final = new Map<RolloutId, string>();
        for (const w of moves) {
          const m = resolve(l, w);
          if (l.refusal(m) === undefined) {
            expect(final.has(m.rollout)).toBe(false);
            l.move(m);
            if (m.to.at === 'trained' || m.to.at === 'retired') final.set(m.rollout, JSON.stringify(m.to));
          }
        }
        for (const [r, s] of final) expect(JSON.stringify(l.state(r))).toBe(s);
      }),
      { numRuns: 200 },
    );
  });

  it('claims all or none', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }), (ready) => {
        const l = new Ledger();
        const rollouts = ready.map((_, i) => id<RolloutId>(`r${i}`));
        rollouts.forEach((rollout, i) => {
          for (const to of [
            { at: 'queued' },
            { at: 'running' },
            { at: 'recorded' },
            ...(ready[i] ? [{ at: 'grouped', group }] : []),
          ] as RolloutState[])
            l.move({ rollout, to });
        });
        const claim = (): void =>
          l.moveAll(rollouts.map((rollout) => ({ rollout, to: { at: 'claimed', batch: id<BatchId>('b1') } })));
        if (ready.every(Boolean)) {
          claim();
          expect(l.claimedBy(id<BatchId>('b1'))).toEqual(rollouts);
          expect(claim).toThrow(/cannot go/);
        } else {
          expect(claim).toThrow(/cannot go/);
          expect(l.counts().byState.claimed).toBe(0);
        }
        closes(l);
      }),
    );
  });
});
