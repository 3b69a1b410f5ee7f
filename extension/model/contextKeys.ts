/** The state that `when` clauses see. */
import type { RunSummary } from '../../runtime/protocol/types.js';
import type { DaemonState } from '../../webview/protocol.js';
import { contextKeys } from '../ids.js';

/** `noDesktops`: no provider works here (Docker missing and no sandbox), or nothing is built. */
export type Machine = 'unknown' | 'ok' | 'noDesktops';
export interface Facts {
  readonly daemon: DaemonState;
  readonly runs: readonly RunSummary[];
  readonly active: RunSummary | undefined;
  readonly selected: string | undefined;
  /** The run whose dashboard has the focus. */
  readonly shown: string | undefined;
  readonly desktops: number;
  readonly filtered: boolean;
  readonly machine: Machine;
  /** Control sessions that are open. */
  readonly sessions: number;
  /** The window talks to a runtime elsewhere. */
  readonly attached: boolean;
}
/** All but the one that the editor's text decides (runFileChecks.ts). */
export type KeyValues = Readonly<
  Record<Exclude<(typeof contextKeys)[keyof typeof contextKeys], typeof contextKeys.runFileActive>, string | boolean>
>;

export function keysOf(f: Facts): KeyValues {
  const state = f.active?.state;
  return {
    [contextKeys.daemon]: f.daemon,
    [contextKeys.runActive]: state !== undefined,
    [contextKeys.runPaused]: state === 'paused',
    [contextKeys.runStopping]: state === 'stopping',
    [contextKeys.dashboardOfActiveRun]: f.active !== undefined && f.shown === f.active.run,
    [contextKeys.hasRuns]: f.runs.length > 0,
    [contextKeys.runSelected]: f.selected !== undefined,
    [contextKeys.hasDesktops]: f.desktops > 0,
    [contextKeys.filtered]: f.filtered,
    [contextKeys.machine]: f.machine,
    [contextKeys.controlOpen]: f.sessions > 0,
    [contextKeys.attached]: f.attached,
  };
}
