/**
 * Wire version of the daemon protocol; raised only when an old client could misread an answer. Additions are announced
 * by `capabilities`.
 */
export const protocolVersion = 1;
export const capabilities = [
  'runs',
  'trajectories',
  'lanes',
  'desktops',
  'watch',
  'evaluate',
  'build',
  'doctor',
  'control',
  'annotations',
  'pool',
  'interchange',
] as const;
/** The only path the daemon's server upgrades. */
export const socketPath = '/dart-studio';
/** Name of the discovery record in the daemon's storage folder. */
export const discoveryFile = 'daemon.json';

/** File of a run folder with the run in one line (RunSummary), for windows without a runtime. */
export const summaryName = 'summary.json';

/** `daemon.json`, mode 0600: how a client of the same user finds the daemon. */
export interface DiscoveryRecord {
  readonly pid: number;
  readonly port: number;
  readonly token: string;
  readonly protocol: number;
  /** Oldest protocol a client may speak. */
  readonly minClient: number;
  readonly build: Build;
  readonly startedAt: number;
}
/**
 * Which bundle: totally ordered by `time` (ms since the epoch of the build), so that two windows never replace each
 * other's daemon in turns.
 */
export interface Build {
  readonly version: string;
  readonly time: number;
}
/** Exit code of a daemon that found another one holding the lock. */
export const exitAlreadyRunning = 3;
export * from '../domain/checkpointName.js';
