import { flag, section, share } from '../fields.js';

export const highEntropy = section(
  {
    enabled: flag(true, 'Train only on the steps of highest entropy (paper).'),
    keep: share(
      0.8,
      "Share of a group's steps that is kept: those at or above the quantile 1 - `keep` of its step entropies, and all that have none (paper: 0.8).",
    ),
  },
  'High-entropy step selection.',
);
