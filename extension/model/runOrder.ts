/** The Runs view's order: pinned first, then groups, then the rest; archived ones only when asked for. No `vscode`. */
import type { ListedRun } from './savedRuns.js';
import { isActive } from './studioModel.js';

export interface RunGroup {
  readonly group: string;
  readonly runs: readonly ListedRun[];
}

/** `runs` are newest first, and stay so within each part. A run that is under way is never hidden. */
export function arranged(runs: readonly ListedRun[], archived: boolean): readonly (ListedRun | RunGroup)[] {
  const shown = runs.filter((r) => archived || r.label?.archived !== true || isActive(r)),
    pinned = shown.filter((r) => r.label?.pinned),
    rest = shown.filter((r) => !r.label?.pinned),
    groups = new Map<string, ListedRun[]>();
  for (const r of rest)
    if (r.label?.group !== undefined) groups.set(r.label.group, [...(groups.get(r.label.group) ?? []), r]);
  return [
    ...pinned,
    ...[...groups].map(([group, of]): RunGroup => ({ group, runs: of })).sort((a, b) => (a.group < b.group ? -1 : 1)),
    ...rest.filter((r) => r.label?.group === undefined),
  ];
}
export const isGroup = (x: ListedRun | RunGroup): x is RunGroup => 'group' in x;
export const groupsOf = (runs: readonly ListedRun[]): string[] =>
  [...new Set(runs.flatMap((r) => r.label?.group ?? []))].sort();
/** "a, #b  c" as tags. */
export const parseTags = (words: string): string[] =>
  words
    .split(/[,\s]+/)
    .map((w) => w.replace(/^#/, ''))
    .filter((w) => w !== '');
