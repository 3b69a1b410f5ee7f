import { count, flag, section, share } from '../fields.js';

export const dynamicRollouts = section(
  {
    enabled: flag(true, 'Fewer rollouts for families that succeed often (paper).'),
    max: count(
      8,
      'N: rollouts of a group while its family rarely succeeds, or always if the mechanism is off (paper: 8). A group in a batch has no more trajectories than this.',
    ),
    threshold: share(0.6, 'Success rate of the family from which N falls (paper: 0.6); N is never under 2.'),
    window: count(
      16,
      'Latest rollouts of a family over which the rate is computed. N stays at `max` until 8 of them ended, or as many as the window holds if that is fewer.',
    ),
  },
  'Dynamic rollout number.',
);
