import { z } from 'zod';
import { count, flag, section, whole } from '../fields.js';

export const pool = section(
  {
    enabled: flag(true, 'One pre-collected success joins a group whose rollouts all failed (paper 3.3).'),
    from: z
      .array(z.string().min(1))
      .default([])
      .describe(
        "Run folders or collections whose pool joins this run's when it begins, before the warm start: demonstrations, imports, successes of other runs. Paths are absolute, or relative to the folder of runs. Entries that are switched off stay behind.",
      ),
    selection: z
      .enum(['shortest', 'newest', 'novelty'])
      .default('novelty')
      .describe(
        "Which success of the task, else of its family: the shortest, the newest, or the one whose actions are least like those of the family's latest four injections.",
      ),
    reuseCap: whole(40, 'Most times one success is injected; 0 = no limit.'),
    maxAge: whole(
      0,
      'Ageing: successes of the policy made more versions ago than this are no longer injected; 0 = no limit. Beyond `curation.staleness.eta` they are trained without behaviour log-probs, as demonstrations are. Demonstrations and imports do not age.',
    ),
    addSuccesses: flag(true, "The policy's own successes join the pool."),
    maxPerFamily: count(
      64,
      "Most entries per family. One more makes room: spent ones leave first, then the policy's oldest, demonstrations and imports last.",
    ),
  },
  'Experience pool.',
);
