import type { RunProgress } from './reporter.js';

/** The phase of a run and how far its policy has got: written by the phases, read by whatever shows the run. */
export class RunState {
  phase: RunProgress['phase'] = 'starting';
  /** How far the phase has got, in words. */
  detail: string | undefined;
  /** Why it does not work at the moment, in words. */
  trouble: string | undefined;
  /** Version of the trainer's weights. */
  version = 0;
  /** The version that the warm start made; undefined before it. */
  warmStartVersion: number | undefined;
}
