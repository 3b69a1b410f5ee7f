import type { Desktop } from '../../cluster/types.js';
import { StudioError } from '../../domain/index.js';
import { pause } from '../../concurrency/pause.js';
import { noAssets, type AssetStore } from '../../tasks/assets.js';
import type { TaskContext } from '../../tasks/context.js';

/** Longest command, ms: that of OSWorld's own server. */
export const COMMAND_MS = 120_000;
/** Longest wait for the window of an opened file, ms. OSWorld waits half an hour; its client gives up a little later. */
const WINDOW_MS = 60_000;

/** A context in which set-up steps and getters of task files serve calls of clients: nothing is remembered. */
export const contextOf = (
  desktop: Desktop,
  signal: AbortSignal,
  state: TaskContext['stateOf'],
  assets: AssetStore = noAssets,
): TaskContext => ({
  desktop,
  task: 'client',
  signal,
  assets,
  cache: new Map(),
  launched: new Map(),
  stateOf: state,
  settings: {
    pythonStandIn: true,
    clientPassword: 'password',
    sleepCapMs: COMMAND_MS,
    sleepMode: 'exact',
    commandMs: COMMAND_MS,
    waitMs: WINDOW_MS,
    sleep: (ms, s) =>
      pause(ms, s, () => new StudioError('cancelled', 'The client went away.', 'Send the request again.')),
    now: () => performance.now(),
  },
});

/** The desktop is gone: its port answers 503, whatever the route would say of other errors. */
export const isLost = (e: unknown): boolean => e instanceof StudioError && e.kind === 'desktop.lost';
