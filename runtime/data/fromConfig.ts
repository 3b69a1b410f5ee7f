import type { RunConfig } from '../config/index.js';
import type { DataConfig } from './config.js';

/** The run file's options in the data manager's own words. */
export function dataConfig(c: RunConfig): DataConfig {
  const { curation: k, rollout, trainer } = c;
  return {
    dynamicRollouts: {
      enabled: k.dynamicRollouts.enabled,
      max: k.dynamicRollouts.max,
      min: 2,
      threshold: k.dynamicRollouts.threshold,
      window: k.dynamicRollouts.window,
      minRollouts: Math.min(8, k.dynamicRollouts.window),
    },
    dynamicLength: {
      enabled: k.dynamicLength.enabled,
      global: rollout.maxSteps,
      floor: k.dynamicLength.floor,
      slack: k.dynamicLength.slack,
      exploreShare: k.dynamicLength.exploreShare,
      window: 64,
    },
    highEntropy: { enabled: k.highEntropy.enabled, quantile: 1 - k.highEntropy.keep },
    groupFilter: { enabled: k.groupFilter.enabled, maxSize: k.dynamicRollouts.max, minSize: 2 },
    pool: {
      enabled: k.pool.enabled,
      addSuccesses: k.pool.addSuccesses,
      select: k.pool.selection,
      maxUses: k.pool.reuseCap === 0 ? Number.MAX_SAFE_INTEGER : k.pool.reuseCap,
      maxAge: k.pool.maxAge,
      perFamily: k.pool.maxPerFamily,
    },
    // Nothing trains a remote policy: a bound that waits for updates would stop its rollouts.
    staleness: {
      enabled: k.staleness.enabled && c.policy.kind === 'embedded',
      eta: k.staleness.eta,
      perUpdate: trainer.batchGroups * k.dynamicRollouts.max,
      groupsPerUpdate: trainer.batchGroups,
    },
    planner: {
      seed: c.seed,
      order: k.planner === 'variance' ? 'variance' : 'passes',
      floor: 0.05,
      power: k.uncertainty,
      maxRetries: rollout.retries,
      ...(k.probe > 0 ? { probe: k.probe } : {}),
    },
  };
}
