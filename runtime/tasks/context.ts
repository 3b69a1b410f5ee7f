import type { Desktop } from '../cluster/types.js';
import { cancelled, type StudioError } from '../domain/index.js';
import { pause } from '../concurrency/pause.js';
import type { AssetStore } from './assets.js';
import type { VerdictDesktop } from './verdict.js';

/** The context of setup steps and getters; one per desktop and task. */
export interface TaskContext {
  readonly desktop: Desktop;
  /** Id of the task. */
  readonly task: string;
  readonly signal: AbortSignal;
  readonly assets: AssetStore;
  /** OSWorld's cache folder of the task, in memory: saved command output and fetched files by name. */
  readonly cache: Map<string, Buffer>;
  /** Programs started by launch steps, by pid. */
  readonly launched: Map<
    number,
    {
      readonly what: string;
      /** Whether a shell started it; then only the shell can report that there is no such program. */
      readonly shell: boolean;
    }
  >;
  /** Preparations on this desktop since its set-up began. */
  readonly stateOf: Map<'pyautogui', true>;
  readonly settings: TaskSettings;
  /** Paths that getters have read, for the check that is made. */
  readonly looked?: Set<string>;
  /** While the task is judged; undefined during set-up. */
  readonly verdict?: VerdictDesktop;
}

export interface TaskSettings {
  /** Gives commands that name `python` or pyautogui our stand-ins (pyautogui.ts); off where the image has its own. */
  readonly pythonStandIn: boolean;
  /** `{CLIENT_PASSWORD}` in commands. */
  readonly clientPassword: string;
  /** A `sleep` step never takes longer than this, ms. */
  readonly sleepCapMs: number;
  /** `exact` waits as the file says; `settle` continues as soon as the desktop is idle. */
  readonly sleepMode: 'exact' | 'settle';
  /** Time limit of one command inside the desktop, ms (OSWorld's server: 120 s). */
  readonly commandMs: number;
  /** Window waits and `until` loops, ms. */
  readonly waitMs: number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly now: () => number;
}

export const HOME = '/home/user';

/** A path inside the desktop: `~`, `$HOME` and relative paths start at the user's home. */
export function desktopPath(path: string): string {
  const p = path.replace(/^~(?=\/|$)/, HOME).replace(/\$\{?HOME\}?/g, HOME);
  const out: string[] = [];
  for (const part of (p.startsWith('/') ? p : `${HOME}/${p}`).split('/')) {
    if (part === '..') out.pop();
    else if (part !== '' && part !== '.') out.push(part);
  }
  return `/${out.join('/')}`;
}

export const baseName = (path: string): string => {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return path.slice(path.lastIndexOf('/', end - 1) + 1, end);
};

const rolloutCancelled = (signal: AbortSignal): StudioError => cancelled('The rollout', { cause: signal.reason });

export function checkCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw rolloutCancelled(signal);
}

/** Waits; rejects at once when the signal fires. */
export const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  pause(ms, signal, () => rolloutCancelled(signal));
