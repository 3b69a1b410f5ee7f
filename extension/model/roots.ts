/**
 * Which folders hold runs: those of the workspace, the extension's own when no folder is open, and those the user
 * opened.
 */
import { dirname, join, posix, resolve } from 'node:path';
import type { HelloResult } from '../../runtime/protocol/requests.js';
import { isObject } from '../../runtime/protocol/shared.js';

export interface RunLocations {
  /** The runs folder of each workspace folder. */
  readonly homes: readonly string[];
  /** globalStorageUri. */
  readonly storage: string;
  /** Opened by hand: run folders, or folders of them. */
  readonly extra: readonly string[];
  /** Runs that are or were active, wherever they are (also another window's), the newest last. */
  readonly active: readonly string[];
}

/** `runsFolder`: relative to the workspace folder, or absolute. */
export const inFolder = (folder: string, runsFolder: string): string => resolve(folder, runsFolder);
/** Folder for runs started here. */
export const homeOf = (p: Pick<RunLocations, 'homes' | 'storage'>): string => p.homes[0] ?? join(p.storage, 'runs');

/** Folder in which the run that comes with the extension is unpacked. */
export const sampleFolder = (storage: string): string => join(storage, 'sample');

/** Most runs that are roots only because they are or were active: a request takes 64 roots. */
const mostActive = 16;
export function rootsOf(p: RunLocations): string[] {
  const own = [...p.homes, join(p.storage, 'runs'), ...p.extra],
    elsewhere = p.active.filter((r) => !isListed(own, r));
  return [...new Set([...own, ...elsewhere.slice(-mostActive)])];
}
/** Whether a run is found under these roots: each is a run folder, or a folder of them, which is not searched deeper. */
export const isListed = (roots: readonly string[], run: string): boolean =>
  roots.includes(run) || roots.includes(dirname(run));

/** The same where a runtime elsewhere runs: folders of this machine mean nothing there. Its paths are those of Linux. */
export const rootsThere = (hello: HelloResult | undefined, active: readonly string[]): string[] => [
  ...new Set([
    ...(hello ? [posix.join(hello.storage, 'runs')] : []),
    ...[...(hello?.activeRuns ?? []), ...active].map((run) => posix.dirname(run)),
  ]),
];

/**
 * Run file text with its `store.dir` made absolute: runs of a workspace are kept in the folder that the setting names,
 * unless the file says otherwise. Text that is not a JSON object is passed on unchanged: the runtime reports what is
 * wrong with it, and where.
 */
export function withStoreDir(text: string, dir: string, minutes?: number): string {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    return text;
  }
  if (!isObject(file)) return text;
  const { store } = file;
  if (isObject(store) && 'dir' in store) return text;
  const budget = minutes === undefined || 'budget' in file ? {} : { budget: { minutes } };
  return JSON.stringify({ ...file, ...budget, store: { ...(isObject(store) ? store : {}), dir } });
}
/** Folder that a run file's `store.dir` names; undefined where it names none, or is no JSON. */
export function storeDirOf(text: string, base: string): string | undefined {
  try {
    const file: unknown = JSON.parse(text),
      dir = isObject(file) && isObject(file['store']) ? file['store']['dir'] : undefined;
    return typeof dir === 'string' ? resolve(base, dir) : undefined;
  } catch {
    return undefined;
  }
}
