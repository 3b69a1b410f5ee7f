import { flag, section, whole } from '../fields.js';

export const staleness = section(
  {
    enabled: flag(
      true,
      'Admit rollouts only so far ahead of the trainer that none is older than `eta` updates. Without a trainer (a remote policy) it does nothing.',
    ),
    eta: whole(
      2,
      "Maximum updates between a step's policy version and the update that trains on it. The paper's window of 2 versions is 1.",
    ),
  },
  'Staleness bound.',
);
