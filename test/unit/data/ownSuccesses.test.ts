import { describe, expect, it } from 'vitest';
import { Ages } from '../../../runtime/data/ages.js';
import type { EventSink } from '../../../runtime/data/commits.js';
import type { ClaimedBatch } from '../../../runtime/data/claims.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import type { JournalEvent } from '../../../runtime/data/events.js';
import type { DataState } from '../../../runtime/data/state.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import { id, type Outcome, type RolloutId } from '../../../runtime/domain/index.js';
import { creditOf } from '../../../runtime/run/backends/learner.js';
import { policySteps } from '../../../runtime/run/credit.js';
import { Successes } from '../../../runtime/run/successes.js';
import { dataConfig, failure, familyIds, makeTrajectory, success, taskOf } from '../../helpers/data/manager.js';

/** What a run learns from the policy's own successes: which of them, and until when with what they were sampled by. */

const family = familyIds[0]!,
  cutOff: Outcome = { kind: 'success', reward: 1, truncated: true };

function open(o: { eta?: number; maxAge?: number } = {}): { m: DataManager; events: JournalEvent[] } {
  const events: JournalEvent[] = [],
    sink: EventSink = {
      append: (e) => {
        events.push(e);
        return Promise.resolve();
      },
      close: () => Promise.resolve(),
    };
  const m = DataManager.volatile(
    {
      config: dataConfig({
        dynamicRollouts: { max: 2 },
        dynamicLength: { exploreShare: 0, floor: 2, slack: 1 },
        pool: { maxAge: o.maxAge ?? 0 },
        staleness: { eta: o.eta ?? 2, perUpdate: 100 },
      }),
      families: [{ id: family, seeds: { from: 1, count: 20 } }],
      taskOf,
    },
    sink,
  );
  return { m, events };
}
/** One group from orders to its end. */
async function group(
  m: DataManager,
  version: number,
  outcomes: readonly Outcome[],
  steps = 3,
): Promise<RolloutOrder[]> {
  const orders: RolloutOrder[] = [];
  for (const _ of outcomes) orders.push((await m.nextOrder({ maxConcurrent: 99, version }))!);
  for (const [i, o] of orders.entries()) {
    await m.started(o.rollout, version);
    await m.record(makeTrajectory(o, outcomes[i]!, { version, steps }));
  }
  return orders;
}
async function trained(m: DataManager, version: number): Promise<ClaimedBatch> {
  const b = (await m.claimBatch({ version }))!;
  await m.trained(b.id, version + 1);
  return b;
}

const successesIn = (store: object): Promise<Successes> =>
  Successes.load({ store, rejected: () => false, externalSuccesses: () => [] } as unknown as DataManager, 8);

describe('a success that its step cap ended', () => {
  it('counts as a success, and neither sets a cap nor joins the pool, whatever came after its goal', async () => {
    const { m } = open();
    await group(m, 0, [success, failure], 3);
    const cap = m.stats().families[0]!.cap;
    expect(cap).toBe(4);
    for (let k = 0; k < 5; k++) await group(m, 0, [cutOff, failure], m.stats().families[0]!.cap);
    expect(m.stats().families[0]).toMatchObject({ cap, longest: 3, outcomes: 12, rate: 0.5 });
    expect(m.stats().pool.entries).toBe(1);
  });

  it('needed its step if it has but one: it is imitated, sets a length and joins the pool', async () => {
    const { m } = open(),
      one = makeTrajectory({ rollout: id<RolloutId>('one'), family, task: taskOf(family, 1), cap: 1 }, cutOff, {
        steps: 1,
      }),
      known = await successesIn({ index: { query: () => Promise.resolve([]) } });
    known.add(one);
    expect(known.imitable().map((x) => x.id)).toEqual(['one']);
    await m.record({ ...one, provenance: { kind: 'imported', from: 'there' } });
    expect(m.stats().pool.entries).toBe(1);
    expect(m.stats().families[0]).toMatchObject({ longest: 1 });
  });

  it('is imitated neither now nor after a restart; a person may still add it to the pool', async () => {
    const { m } = open(),
      t = makeTrajectory({ rollout: id<RolloutId>('cut'), family, task: taskOf(family, 1), cap: 9 }, cutOff, {
        steps: 9,
      }),
      clean = { ...t, id: id<RolloutId>('clean'), outcome: success };
    const stored = {
      index: { query: () => Promise.resolve([{ id: 'cut' }, { id: 'clean' }]) },
      readTrajectory: (r: RolloutId) => Promise.resolve(r === t.id ? t : clean),
    };
    const known = await successesIn(stored);
    expect(known.imitable().map((x) => x.id)).toEqual(['clean']);
    known.add({ ...t, id: id<RolloutId>('another') });
    expect(known.imitable().map((x) => x.id)).toEqual(['clean']);
    expect((await m.record({ ...t, provenance: { kind: 'imported', from: 'there' } })).pool).toMatchObject({
      pooled: false,
      why: 'it hit the step limit: it went on after its goal',
    });
    expect(await m.addToPool(t, 'auto')).toEqual({ pooled: true });
  });
});

describe('an injected success of the policy itself', () => {
  it('that is a branch is as old as the beginning that it only acted out: all of it is trained', () => {
    const t = makeTrajectory(
        { rollout: id<RolloutId>('r000002'), family: familyIds[0]!, task: taskOf(familyIds[0]!, 1), cap: 9 },
        success,
        { steps: 4 },
      ),
      branch = {
        ...t,
        steps: t.steps.map((s, i) => ({ ...s, version: i < 2 ? 5 : 7 })),
        branch: { of: id<RolloutId>('r000001'), step: 2 },
      },
      ages = new Ages({} as DataState, {
        staleness: { enabled: true, eta: 2, perUpdate: 1 },
        minSize: 2,
        trajectories: new Map(),
        began: new Map(),
      });
    // In a group of its own its beginning belongs to the rollout it is from.
    expect([ages.lag(branch, 9), ages.overBound(branch, 9)]).toEqual([2, false]);
    expect([ages.poolLag(branch, 9), ages.aged(branch, 9)]).toEqual([4, true]);
  });
  it('is in the staleness figures, and beyond the bound it is trained without behaviour log-probs', async () => {
    const { m, events } = open({ eta: 2 });
    const [won] = await group(m, 0, [success, failure]);
    await trained(m, 0);
    const batches: ClaimedBatch[] = [];
    for (const version of [1, 2, 3, 4]) {
      await group(m, version, [failure, failure]);
      batches.push(await trained(m, version));
    }
    const injected = batches.map((b) => b.groups[0]!.members.find((x) => x.injected)!);
    expect(injected.map((x) => x.trajectory.id)).toEqual(new Array(4).fill(won!.rollout));
    expect(injected.map((x) => x.aged === true)).toEqual([false, false, true, true]);
    expect(m.stats().poolStaleness).toEqual([1, 2, 3, 4].map((lag) => ({ lag, rollouts: 1 })));
    expect(events.flatMap((e) => (e.type === 'batch.claimed' ? (e.poolLags ?? []) : []))).toEqual([1, 2, 3, 4]);
    // What the trainer gets: the last time within the bound, then beyond it.
    const known = batches.map((b) => {
      const g = b.groups[0]!,
        steps = policySteps(
          [
            {
              group: { id: g.id, family: g.family, trajectories: g.members.map((x) => x.trajectory), injected: [] },
              keep: g.members.map((x) => x.keep),
              aged: g.members.map((x) => x.aged === true),
            },
          ],
          { baseline: 'trajectory', norm: 'std', balance: 'trajectory', credit: 'trajectory' },
          () => true,
        );
      return steps
        .filter((s) => s.trajectory.id === won!.rollout)
        .every((s) => creditOf(s).rolloutLogprobs !== undefined);
    });
    expect(known).toEqual([true, true, false, false]);
    // Its own rollouts keep theirs.
    expect(m.stats().staleness).toEqual([{ lag: 0, rollouts: 6 }]);
  });

  it('is not injected at all beyond curation.pool.maxAge', async () => {
    const { m } = open({ maxAge: 1 });
    await group(m, 0, [success, failure]);
    await trained(m, 0);
    await group(m, 1, [failure, failure]);
    await trained(m, 1);
    await group(m, 2, [failure, failure]);
    expect(await m.claimBatch({ version: 2 })).toBeUndefined();
    expect(m.stats().poolStaleness).toEqual([{ lag: 1, rollouts: 1 }]);
  });
});
