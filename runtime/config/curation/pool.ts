import { z } from 'zod';
import { count, flag, section, whole } from '../fields.js';

export const pool = section(
  {
    enabled: flag(true, 'One pre-collected success joins a group whose rollouts all failed (paper).'),
    from: z
      .array(z.string().min(1))
      .default([])
      .describe(
        "Run folders or collections whose pool is added to this run's when it starts, before the warm start: demonstrations, imports, successes of other runs. Paths are absolute, or relative to the folder of runs. Entries that are turned off are left out.",
      ),
    selection: z
      .enum(['shortest', 'newest', 'novelty'])
      .default('novelty')
      .describe(
        "Which success of the task, else of its family: the shortest, the newest, or the one whose actions are least like those of the family's latest four injections.",
      ),
    reuseCap: whole(40, 'Maximum times that one success is injected; 0 = no limit.'),
    maxAge: whole(
      0,
      'Ageing: successes of the policy made more versions ago than this are no longer injected; 0 = no limit. Beyond `curation.staleness.eta` they are trained without behaviour log-probs, like demonstrations. Demonstrations and imports do not age.',
    ),
    addSuccesses: flag(true, "Add the policy's own successes to the pool."),
    maxPerFamily: count(
      64,
      "Maximum entries per family. A further one replaces another: used-up ones first, then the policy's oldest, demonstrations and imports last. `trainer.replay` draws from as many of the policy's newest successes, also without the pool.",
    ),
  },
  'Experience pool.',
);
