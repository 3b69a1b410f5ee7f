import type { RolloutOrder } from '../data/types.js';
import { hash32 } from '../domain/index.js';
import type { Sampling } from '../policy/types.js';

/**
 * Sampling of a training rollout: its own random stream, so that the rollouts of a group differ although they share the
 * task's seed.
 */
export const trainingSampling =
  (runSeed: number, temperature: number) =>
  (o: RolloutOrder): Sampling => ({ greedy: false, temperature, seed: hash32(`${runSeed}/${o.rollout}`) });

/** Sampling of an evaluation's rollout; without a temperature the most probable choice always. */
export const probeSampling = (o: RolloutOrder, temperature?: number): Sampling => ({
  greedy: temperature === undefined,
  temperature: temperature ?? 1,
  seed: hash32(`probe/${o.rollout}`),
});
