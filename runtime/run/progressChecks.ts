import type { RunConfig } from '../config/index.js';
import type { ProgressChecks } from '../rollout/types.js';

/** A verdict of the desk suite takes some tens of ms; one that takes a large part of a step is not cheap. */
const WITHIN_MS = 200;

/** How rollouts of a run ask the verifier mid-episode; undefined where credit does not use it. */
export const progressChecksOf = (config: RunConfig): ProgressChecks | undefined =>
  config.trainer.credit === 'progress'
    ? // What a deterministic run learns from must not depend on the clock.
      { withinMs: config.run.deterministic ? Infinity : WITHIN_MS }
    : undefined;
