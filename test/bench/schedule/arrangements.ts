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

const d = REGIMES[3]!;
const planner = (c: DataConfig, o: Partial<DataConfig['planner']>): DataConfig => ({
  ...c,
  planner: { ...c.planner, ...o },
});

/** Regime `d` with one thing changed: what each adds to the share of rollouts that carry gradient. */
export const VARIANTS: readonly Arrangement[] = [
  {
    ...d,
    name: 'passes',
    label: 'shuffled passes instead of variance-aware dispatch',
    data: (c) => planner(c, { planner: 'shuffle' }),
  },
  { ...d, name: 'power 1', label: 'weights p(1-p)', data: (c) => planner(c, { uncertainty: 1 }) },
  { ...d, name: 'power 2', label: 'weights (p(1-p))^2', data: (c) => planner(c, { uncertainty: 2 }) },
  { ...d, name: 'power 3', label: 'weights (p(1-p))^3: the arrangement above' },
  {
    ...d,
    name: 'probe 4',
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
