import { traitsOf, type RunConfig } from '../config/index.js';
import type { DataConfig } from './config.js';

/**
 * The run file's options as the data manager takes them: under the same names, with the values that follow from other
 * options.
 */
export function dataConfig(c: RunConfig): DataConfig {
  const { curation: k, rollout, trainer } = c;
  return {
    ...k,
    deterministic: c.run.deterministic,
    dynamicLength: { ...k.dynamicLength, global: rollout.maxSteps, window: 64 },
    groupFilter: { ...k.groupFilter, maxSize: k.dynamicRollouts.max, minSize: 2 },
    // Where nothing is trained, a bound that waits for updates would stop the rollouts.
    staleness: {
      enabled: k.staleness.enabled && traitsOf(c.policy.kind).trained,
      eta: k.staleness.eta,
      perUpdate: trainer.batchGroups * k.dynamicRollouts.max,
      groupsPerUpdate: trainer.batchGroups,
    },
    planner: {
      seed: c.seed,
      planner: k.planner,
      uncertainty: k.uncertainty,
      pilot: k.pilot,
      retries: rollout.retries,
    },
  };
}
