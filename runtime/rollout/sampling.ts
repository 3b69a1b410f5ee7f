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

/**
 * Sampling of an evaluation's rollout; greedy without a temperature. With one, the seed of the run is part of the
 * random stream: evaluations have the same names in every run, and the same draws would make them dependent.
 */
export const probeSampling =
  (runSeed: number) =>
  (o: RolloutOrder, temperature?: number): Sampling =>
    temperature === undefined
      ? { greedy: true, temperature: 1, seed: hash32(`probe/${o.rollout}`) }
      : { greedy: false, temperature, seed: hash32(`probe/${runSeed}/${o.rollout}`) };
