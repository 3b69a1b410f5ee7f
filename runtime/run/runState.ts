import type { RunProgress } from './reporter.js';

/** What a run is doing and how far its policy has got: written by the phases, read by whatever shows the run. */
export class RunState {
  phase: RunProgress['phase'] = 'starting';
  /** How far the phase has got, in words. */
  detail: string | undefined;
  /** What keeps it from working at the moment, in words. */
  trouble: string | undefined;
  /** Version of the trainer's weights. */
  version = 0;
  /** The version that the warm start made; undefined before it. */
  warmStartVersion: number | undefined;
}
