import type { ProviderChoice, RunPath } from '../domain/index.js';

/** The parameters of a queued run's start, as of `run/start`. */
export interface QueuedRun {
  readonly text: string;
  readonly file?: string;
  readonly base: string;
  readonly seed?: number;
  readonly minutes?: number;
  readonly provider?: ProviderChoice;
  readonly desktops?: number;
}
export interface QueueItem {
  readonly id: string;
  readonly name: string;
  readonly seed?: number;
  readonly state: 'waiting' | 'running' | 'done' | 'failed';
  /** Run folder, from when it runs. */
  readonly run?: RunPath;
  /** Why it was not started, or why it still waits. */
  readonly error?: string;
}
/** Runs that are begun one after another, with or without a window. */
export interface QueueView {
  /** Entries in the order in which they run; those that are over first. */
  readonly items: readonly QueueItem[];
  /** The one that runs goes on; no other one begins. */
  readonly paused: boolean;
}
