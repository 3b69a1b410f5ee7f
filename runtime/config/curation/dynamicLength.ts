import { count, flag, section, share, whole } from '../fields.js';

export const dynamicLength = section(
  {
    enabled: flag(
      true,
      'Max steps per family, from the longest of its latest 64 successes, demonstrations included (paper).',
    ),
    slack: whole(2, 'Steps above the longest success.'),
    floor: count(4, 'Lowest max steps of a family; the overall limit (`rollout.maxSteps`) still applies.'),
    exploreShare: share(
      0.1,
      'Share of rollouts that run under `rollout.maxSteps` alone, so that the limits of families can loosen.',
    ),
  },
  'Dynamic trajectory length.',
);
