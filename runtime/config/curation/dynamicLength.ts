import { count, flag, section, share, whole } from '../fields.js';

export const dynamicLength = section(
  {
    enabled: flag(
      true,
      'Step cap per family from the longest of its latest 64 successes, demonstrations included (paper 3.3).',
    ),
    slack: whole(2, 'Steps above the longest success.'),
    floor: count(4, 'Smallest cap; the global one (`rollout.maxSteps`) still holds.'),
    exploreShare: share(0.1, 'Share of rollouts that run under the global cap, so that caps can loosen.'),
  },
  'Dynamic trajectory length.',
);
