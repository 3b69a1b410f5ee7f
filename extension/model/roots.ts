/**
 * Which folders hold runs: those of the workspace, the extension's own when no folder is open, and those the user
 * opened.
 */
import { isAbsolute, join, posix, sep } from 'node:path';
import type { HelloResult } from '../../runtime/protocol/requests.js';
import { isObject } from '../../runtime/protocol/shared.js';

export interface RunLocations {
  /** File-system paths of the workspace folders. */
  readonly folders: readonly string[];
  /** globalStorageUri. */
  readonly storage: string;
  readonly runsFolder: string;
  /** Opened by hand: run folders, or folders of them. */
  readonly extra: readonly string[];
  /** Active runs in other folders (another window's). */
  readonly active: readonly string[];
}

export const inFolder = (folder: string, runsFolder: string): string =>
  isAbsolute(runsFolder) ? runsFolder : join(folder, runsFolder);
/** Folder for runs started here. */
export const homeOf = (p: Pick<RunLocations, 'folders' | 'storage' | 'runsFolder'>): string =>
  p.folders[0] === undefined ? join(p.storage, 'runs') : inFolder(p.folders[0], p.runsFolder);

/** Folder in which the run that comes with the extension is unpacked. */
export const sampleFolder = (storage: string): string => join(storage, 'sample');

export function rootsOf(p: RunLocations): string[] {
  const own = [...p.folders.map((f) => inFolder(f, p.runsFolder)), join(p.storage, 'runs'), ...p.extra];
  const covered = (run: string): boolean => own.some((r) => run === r || run.startsWith(r + sep));
  return [...new Set([...own, ...p.active.filter((r) => !covered(r))])];
}

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
