/**
 * Which folders hold runs: those of the workspace, the extension's own when no folder is open, and those the user
 * opened.
 */
import { isAbsolute, join, sep } from 'node:path';

export interface Places {
  /** File-system paths of the workspace folders. */
  readonly folders: readonly string[];
  /** globalStorageUri. */
  readonly storage: string;
  readonly runsFolder: string;
  /** Opened by hand: run folders, or folders of them. */
  readonly extra: readonly string[];
  /** Runs under way that lie elsewhere (another window's). */
  readonly active: readonly string[];
}

export const inFolder = (folder: string, runsFolder: string): string =>
  isAbsolute(runsFolder) ? runsFolder : join(folder, runsFolder);
/** Where a run started here is kept. */
export const homeOf = (p: Pick<Places, 'folders' | 'storage' | 'runsFolder'>): string =>
  p.folders[0] === undefined ? join(p.storage, 'runs') : inFolder(p.folders[0], p.runsFolder);

export function rootsOf(p: Places): string[] {
  const own = [...p.folders.map((f) => inFolder(f, p.runsFolder)), join(p.storage, 'runs'), ...p.extra];
  const covered = (run: string): boolean => own.some((r) => run === r || run.startsWith(r + sep));
  return [...new Set([...own, ...p.active.filter((r) => !covered(r))])];
}

/**
 * Run file text with its `store.dir` made absolute: runs of a workspace belong into the folder the setting names,
 * unless the file says otherwise. Text that is no JSON object is passed on as it is: the runtime says what is wrong
 * with it, and where.
 */
export function withStoreDir(text: string, dir: string, minutes?: number): string {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    return text;
  }
  if (typeof file !== 'object' || file === null || Array.isArray(file)) return text;
  const store = (file as { store?: unknown }).store;
  if (typeof store === 'object' && store !== null && 'dir' in store) return text;
  const budget = minutes === undefined || 'budget' in file ? {} : { budget: { minutes } };
  return JSON.stringify({ ...file, ...budget, store: { ...(typeof store === 'object' ? store : {}), dir } });
}
