/**
 * Mid-episode checks (runtime/rollout/README.md#mid-episode-checks): after each step the verifier is asked what share of its
 * checks holds. The answer is kept with the step; credit may use it, the outcome does not.
 */
import type { Step } from '../domain/index.js';
import type { Desktop } from '../cluster/types.js';
import type { DesktopGuard } from './desktopGuard.js';
import type { TimeLimit } from './timeLimit.js';
import type { EpisodeDeps, EpisodeRequest } from './types.js';

interface Asking {
  readonly deps: EpisodeDeps;
  readonly request: EpisodeRequest;
  readonly desktop: Desktop;
  readonly guard: DesktopGuard;
  readonly limit: TimeLimit;
}

/** The progress of one episode. */
export class ProgressOfEpisode {
  #tooSlow = false;

  /** Undefined where it is not configured, the task does not support it, or an earlier answer took too long. */
  async ask({ deps, request: r, desktop, guard, limit }: Asking): Promise<Step['progress']> {
    const { progressChecks: checks, tasks, clock } = deps;
    if (!checks || !tasks.progress || this.#tooSlow || r.provenance.kind !== 'rollout') return undefined;
    const began = clock.now();
    r.onPhase('verify');
    const held = await limit.suspendedDuring(
        guard.free(tasks.progress(r.task, desktop, limit.signal), 'Asking how far the task is'),
      ),
      ms = clock.now() - began;
    this.#tooSlow = held === undefined || ms > checks.withinMs;
    return held === undefined ? undefined : { held, ms };
  }
}
