import type { Outcome } from '../../../runtime/domain/index.js';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import { makeTrajectory } from './manager.js';

export const n3 = { dynamicRollouts: { max: 3 }, dynamicLength: { exploreShare: 0 } };
export const info = { maxConcurrent: 100, version: 0 };

export async function order(m: DataManager, o = info): Promise<RolloutOrder> {
  const x = await m.nextOrder(o);
  if (!x) throw new Error('no order');
  return x;
}
export type Extra = Parameters<typeof makeTrajectory>[2];
/** Runs one group to its end with given outcomes. */
export async function group(
  m: DataManager,
  outcomes: Outcome[],
  extra: Extra[] = [],
  version = 0,
): Promise<{ orders: RolloutOrder[]; ready: boolean }> {
  const orders: RolloutOrder[] = [];
  for (const _ of outcomes) orders.push(await order(m, { ...info, version }));
  let ready = false;
  for (const [i, o] of orders.entries()) {
    await m.started(o.rollout, version);
    const r = await m.record(makeTrajectory(o, outcomes[i]!, { version, endedAt: 100 + i, ...extra[i] }));
    ready ||= r.group !== undefined;
  }
  return { orders, ready };
}
