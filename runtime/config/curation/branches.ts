import { z } from 'zod';
import { count, flag, section } from '../fields.js';

export const branches = section(
  {
    enabled: flag(
      false,
      'Some rollouts of a group begin in the middle of another one: at a step where the policy hesitated, on a desktop that acted out again what came before. They show what that one decision is worth. They take the place of whole rollouts. Needs policy.kind "embedded".',
    ),
    count: count(2, 'Rollouts of a group that begin so, all at the same step. At least two others come first.'),
    choose: z
      .enum(['entropy', 'uniform'])
      .default('entropy')
      .describe('Which step: the one of highest entropy in the group, or any (a control for experiments).'),
  },
  'Branches at high-entropy steps.',
);
