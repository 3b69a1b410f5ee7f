import type { DataConfig } from '../../../runtime/data/config.js';
import type { Arrangement } from './simulate.js';

/**
 * The four regimes of test/bench/README.md#scheduling. `a` takes its batch from the paper (8 tasks x 8) and publishes
 * in place,
 * all replicas at once; nothing in it waits that need not.
 */
export const REGIMES: readonly Arrangement[] = [
  { name: 'a', label: 'batch-wise coupled', regime: 'batch', sync: 'global' },
  { name: 'b', label: 'task-wise, global sync', regime: 'task', sync: 'global' },
  { name: 'c', label: 'rollout-wise, global sync', regime: 'rollout', sync: 'global' },
  { name: 'd', label: 'rollout-wise, per-worker sync', regime: 'rollout', sync: 'replica' },
];

/**
 * A coupled loop whose batch fills the desktops: the best that can be made of `a` when the size of its batches is free.
 */
export const FILLED: Arrangement = {
  name: 'a+',
  label: 'coupled, batch fills the desktops',
  regime: 'batch',
  sync: 'global',
  fill: true,
};
/** The coupled loop with the published sync. */
export const RELAUNCHED: Arrangement = {
  name: 'a-',
  label: 'coupled, engines relaunched 2 of 4',
  regime: 'batch',
  sync: 'relaunch',
};
/** The published decoupled system as its code works (runtime/rollout/README.md#published-figures). */
export const PUBLISHED: Arrangement = {
  name: 'p',
  label: 'published code: relaunch, 2 newest versions',
  regime: 'rollout',
  sync: 'relaunch',
  published: true,
};

const [a, , , d] = REGIMES as readonly [Arrangement, Arrangement, Arrangement, Arrangement];
const planner = (c: DataConfig, o: Partial<DataConfig['planner']>): DataConfig => ({
  ...c,
  planner: { ...c.planner, ...o },
});
const byUncertainty =
  (uncertainty: number) =>
  (c: DataConfig): DataConfig =>
    planner(c, { planner: 'variance', uncertainty });

/** The coupled and the decoupled loop with dispatch by uncertainty: what dispatch brings, apart from scheduling. */
export const DISPATCHED: readonly Arrangement[] = [
  { ...a, name: 'a*', label: 'batch-wise coupled, dispatch by (p(1-p))^3', data: byUncertainty(3) },
  { ...d, name: 'd*', label: 'rollout-wise, per-worker sync, dispatch by (p(1-p))^3', data: byUncertainty(3) },
];

/** Regime `d` with one thing changed from the shipped defaults. */
export const VARIANTS: readonly Arrangement[] = [
  { ...d, name: 'as shipped', label: 'shuffled passes, the pool, dynamic N' },
  { ...d, name: 'power 1', label: 'dispatch by p(1-p)', data: byUncertainty(1) },
  { ...d, name: 'power 2', label: 'dispatch by (p(1-p))^2', data: byUncertainty(2) },
  { ...d, name: 'power 3', label: 'dispatch by (p(1-p))^3', data: byUncertainty(3) },
  {
    ...d,
    name: 'pilot 4',
    label: 'half of a group first, the rest unless its outcome is decided',
    data: (c) => planner(c, { pilot: 4 }),
  },
  {
    ...d,
    name: 'no pool',
    label: 'without the experience pool',
    data: (c) => ({ ...c, pool: { ...c.pool, enabled: false } }),
  },
  {
    ...d,
    name: 'fixed N',
    label: 'without dynamic rollout numbers',
    data: (c) => ({ ...c, dynamicRollouts: { ...c.dynamicRollouts, enabled: false } }),
  },
];
