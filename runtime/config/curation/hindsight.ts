import { count, flag, section, share } from '../fields.js';

export const hindsight = section(
  {
    enabled: flag(
      false,
      'A rollout that failed, and did what another task of its screen asks for ("Lemon" was clicked where "Apple" was asked for), is imitated as a success of that task. It says nothing of success rates and joins no group. Needs tasks.suite "desk", `curation.pool` and `trainer.replay`.',
    ),
    maxPerFamily: count(
      32,
      'Maximum relabelled successes of a family in the pool, beside those of `curation.pool.maxPerFamily`. A further one replaces the oldest.',
    ),
    share: share(
      0.5,
      "Maximum share of a family's imitated successes that are relabelled ones, the newest; where there are no others, all of them.",
    ),
  },
  'Hindsight relabelling.',
);
