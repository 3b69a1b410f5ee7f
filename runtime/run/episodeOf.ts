import { progressChecksOf } from './progressChecks.js';
import { settleOf } from '../cluster/provide.js';
import type { RunConfig } from '../config/index.js';
import { systemClock } from '../rollout/clock.js';
import type { EpisodeDeps } from '../rollout/types.js';
import type { Tasks } from '../tasks/open.js';
import type { Engine } from './engine.js';

/** The episode settings that a run, an evaluation and a collection have in common. */
export const episodeOf = (
  config: RunConfig,
  engine: Pick<Engine, 'policy' | 'frames'>,
  tasks: Pick<Tasks, 'engine'>,
): EpisodeDeps => ({
  policy: engine.policy,
  tasks: tasks.engine,
  frames: engine.frames,
  clock: systemClock,
  settle: settleOf(config.desktops),
  mustRest: config.run.deterministic,
  timeoutMs: config.rollout.taskTimeoutS * 1000,
  progressChecks: progressChecksOf(config),
});
