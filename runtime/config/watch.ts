import { z } from 'zod';
import { positive, section } from './fields.js';

/** Options of the alerts of a run, and of those that end it. */
export const watchOptions = section(
  {
    stalledMinutes: positive(10, 'Alert when no rollout ended and nothing was trained for this long.'),
    entropyBelow: z
      .number()
      .nonnegative()
      .default(0.01)
      .describe("Alert when the policy's mean entropy is below this for three updates, in nats."),
    klAbove: positive(
      1,
      'Alert when the KL divergence from the acting policy (k3) is above this for three updates, in nats per token.',
    ),
    diskBelowGb: z
      .number()
      .nonnegative()
      .default(2)
      .describe('Alert when less than this is free on the disk of the run, in GB.'),
    target: z.number().min(0).max(1).optional().describe('Alert when an evaluation reaches this success rate.'),
    stop: z
      .array(z.enum(['stalled', 'entropy', 'kl', 'target']))
      .default([])
      .describe('Early stopping: which of these end the run, as its budget would; the final evaluation follows.'),
  },
  'Conditions that raise an alert.',
);
