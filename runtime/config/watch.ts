import { z } from 'zod';
import { positive, section } from './fields.js';

/** What a run is watched for, and what of it ends the run. */
export const watchOptions = section(
  {
    stalledMinutes: positive(10, 'Tell when no rollout ended and nothing was trained for so long.'),
    entropyBelow: z
      .number()
      .nonnegative()
      .default(0.01)
      .describe("Tell when the policy's mean entropy is below this for three updates, in nats."),
    klAbove: positive(
      1,
      'Tell when the KL divergence from the acting policy (k3) is above this for three updates, in nats per token.',
    ),
    diskBelowGb: z.number().nonnegative().default(2).describe('Tell when less is left on the disk of the run, in GB.'),
    target: z.number().min(0).max(1).optional().describe('Tell when an evaluation reaches this success.'),
    stop: z
      .array(z.enum(['stalled', 'entropy', 'kl', 'target']))
      .default([])
      .describe('Early stopping: which of these end the run, as its budget would; the last evaluation follows.'),
  },
  'What the run is watched for.',
);
