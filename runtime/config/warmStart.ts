import { z } from 'zod';
import { nonNegative, positive, section, share, whole } from './fields.js';

/** Options of the lessons before a policy learns from its own rollouts. */
export const warmStartOptions = section(
  {
    from: z
      .string()
      .optional()
      .describe(
        'Start from the policy of another run instead of an untrained one: its run folder (newest checkpoint) or one of its checkpoint folders. Reading lessons are then only mixed into later steps, not given again.',
      ),
    reading: section(
      {
        screens: whole(
          0,
          'Screens full of random strings and known words, drawn before anything is demonstrated, from which the policy learns to read; 0 = it cannot read.',
        ),
        steps: whole(0, 'Optimizer steps of reading lessons.'),
        lr: positive(3e-3, 'Learning rate of the lessons.'),
        fonts: z
          .array(z.string().min(1).max(80))
          .max(64)
          .default([])
          .describe(
            'Fonts of the texts, each as often as it is named ("DejaVu Sans Bold"); none: those of the desktop\'s applications.',
          ),
        sizes: z
          .array(z.number().min(6).max(40))
          .max(64)
          .default([])
          .describe("Sizes of the texts in points, each as often as it is named; none: the applications' own."),
        coef: nonNegative(
          0,
          'Weight of the lesson mixed into every later step; 0 leaves the reader as it was after the lessons.',
        ),
      },
      'Base policy: reading lessons on synthetic screens (no task is shown).',
    ),
    demonstrations: whole(
      0,
      'Oracle demonstrations per family collected before training as the pre-collected pool (suite `desk` only).',
    ),
    steps: whole(0, 'Optimizer steps of imitation on the pool before reinforcement learning.'),
    lr: positive(1e-3, 'Learning rate of the imitation steps.'),
    shift: whole(12, 'Random shift of screenshots during imitation, in observation pixels.'),
    tones: share(
      0,
      'Share of screens that reading lessons and imitation show in other tones: light on dark, less contrast, darker or brighter.',
    ),
  },
  'Imitation warm start.',
);
