import type { RunProgress } from './live.js';

/** What a run is doing and how far its policy is: written by the phases, read by whoever shows the run. */
export class RunState {
  phase: RunProgress['phase'] = 'starting';
  /** How far the phase is, in words. */
  detail: string | undefined;
  /** Of the trainer's weights. */
  version = 0;
  /** The version that the warm start made; undefined before it. */
  warmStartVersion: number | undefined;
}
