import { setTimeout as after } from 'node:timers/promises';
import type { DaemonClient } from '../../extension/daemon/client.js';
import type { Engine } from './engine.js';
import type { Tail } from './tail.js';

/** What faults are made on: the daemon, its run, and what belongs to them. */
export interface Patient {
  readonly pid: number;
  readonly alive: boolean;
  /** A folder for files of the faults themselves. */
  readonly base: string;
  /** The run folder. */
  readonly folder: string;
  /** The file system it is on, of its own where `mounted`. */
  readonly disk: string;
  readonly mounted: boolean;
  readonly tail: Tail;
  /** Where desktops are containers. */
  readonly engine: Engine | undefined;
  /** Numbers of records that were damaged on purpose. */
  readonly damaged: Set<number>;
  /** Checkpoints that were damaged on purpose. */
  checkpoints: number;
  /** Notes on trajectories that the daemon said it has. */
  readonly notes: Set<string>;
  /** What a fault found wrong by itself. */
  readonly problems: string[];
  /** The window's connection; another one after a restart of the daemon. */
  readonly client: DaemonClient;
  random(): number;
  /** The fault has ended, or was found, at this moment. */
  mark(): void;
  startDaemon(): Promise<void>;
  killDaemon(): Promise<void>;
  /** Cuts the window's connection, as a network would. False when there was none. */
  cut(): boolean;
  /** Processes under the daemon whose command line has this word. */
  children(word: string): number[];
  /** Arms a place of the runtime; false when nobody comes there in time. */
  at(place: string, ms?: number): Promise<boolean>;
  command(text: string): Promise<boolean>;
  when(so: () => boolean, ms: number): Promise<boolean>;
  until(so: () => boolean, ms: number, what: string): Promise<void>;
}

export interface Fault {
  /** The run while the fault is made. `lessons`: before reinforcement learning. `damage`: bytes on disk change. */
  readonly phase: 'lessons' | 'live' | 'damage';
  /** Why it cannot be made here; undefined when it can. */
  readonly unless?: (c: Patient) => string | undefined;
  /** It takes long until it is found: for long runs alone. */
  readonly slow?: boolean;
  /**
   * Resolves when the fault has ended or was detected; false when it could not be made. Recovery counts from then, or
   * from what `mark` was told.
   */
  readonly make: (c: Patient) => Promise<boolean>;
}
export type Faults = Readonly<Record<string, Fault>>;

/**
 * A process that stands still is found after 5 to 6 s by its own clock, a desktop that does not answer after 30 s; more
 * than this on a busy machine is too late.
 */
export const DETECTED_MS = 120_000;
/** How long the place of a fault is waited for. */
export const REACH_MS = 45_000;

export const signal = (pid: number, name: NodeJS.Signals): boolean => {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
};

const THERE_MS = 10_000;
/** What a fault needs may be just being started again: looks until it is there, or for some seconds. */
export async function soon<T>(look: () => T | undefined | Promise<T | undefined>): Promise<T | undefined> {
  for (const end = performance.now() + THERE_MS; performance.now() < end; await after(10)) {
    const found = await look();
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The daemon is dead or about to be: waits for that, and starts it again. Recovery counts from its death. */
export async function restart(c: Patient): Promise<true> {
  await c.until(() => !c.alive, DETECTED_MS, 'a daemon that was killed had ended');
  c.mark();
  await c.startDaemon();
  return true;
}
