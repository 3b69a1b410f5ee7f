import { describe, expect, it } from 'vitest';
import { countTrained, type TrainedSteps } from '../../../runtime/data/events.js';
import type { RolloutId } from '../../../runtime/domain/index.js';
import { n3, group } from '../../helpers/data/groups.js';
import { dataConfig, failure, openManager, success, withDir } from '../../helpers/data/manager.js';

const config = dataConfig({ ...n3, staleness: { enabled: false } }),
  rows = 'SELECT id, advantage, weight, trained_version FROM rollouts WHERE id = ?',
  used = (rollout: RolloutId, advantage: number, weights: number[], o: { injected?: true } = {}): TrainedSteps => ({
    rollout,
    ...o,
    advantage,
    steps: Int32Array.from(weights.keys()),
    weights: Float32Array.from(weights),
  });

describe('what training made of a rollout', () => {
  it('stays when it is injected into other groups later, and counts the steps that an update reached', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        first = await group(m, [success, failure, failure], [], 0),
        won = first.orders[0]!.rollout;
      const a = (await m.claimBatch({ version: 0 }))!;
      await m.trained(a.id, 1, [used(won, 0.5, [0.25, 0.75, NaN])]);
      const second = await group(m, [failure, failure, success], [], 1),
        lost = second.orders[0]!.rollout,
        b = (await m.claimBatch({ version: 1 }))!;
      await m.trained(b.id, 2, [used(lost, -1, [1]), used(won, 2.5, [1, 1], { injected: true })]);
      const ask = async (id: string) => (await m.store.index.query(rows, [id]))[0];
      expect(await ask(won)).toEqual({ id: won, advantage: 0.5, weight: 0.5, trained_version: 1 });
      expect(await ask(lost)).toEqual({ id: lost, advantage: -1, weight: 1, trained_version: 2 });
      expect((await m.store.index.query('SELECT steps FROM batches ORDER BY id')).map((r) => r['steps'])).toEqual([
        2, 3,
      ]);
      expect(m.stats().steps.trained).toBe(5);
      await m.close();
    }));

  it('is that of its own group where both are in one batch, in whatever order', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        { orders } = await group(m, [success, failure, failure], [], 0),
        won = orders[0]!.rollout,
        batch = (await m.claimBatch({ version: 0 }))!;
      await m.trained(batch.id, 1, [used(won, 2.5, [1], { injected: true }), used(won, 0.5, [0.5])]);
      expect(await m.store.index.query(rows, [won])).toMatchObject([{ advantage: 0.5, weight: 0.5 }]);
      await m.close();
    }));

  it('counts all steps where a trainer says no weights', () => {
    expect(countTrained([used('a' as RolloutId, 1, [NaN, NaN])])).toBe(2);
    expect(countTrained([])).toBe(0);
  });
});
