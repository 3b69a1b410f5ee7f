import { flag, section } from '../fields.js';

export const groupFilter = section(
  {
    enabled: flag(
      true,
      'Groups whose rewards are all equal, or that have a single trajectory, teach nothing and are retired.',
    ),
  },
  'Group filter.',
);
