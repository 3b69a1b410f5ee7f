import { isObject } from '../foreign/json.js';

/** File of a run folder with the label people gave the run. Written by windows, which need no runtime for it. */
export const labelName = 'label.json';

/** Absent: as the run itself says, or not at all. */
export interface RunLabel {
  readonly name?: string;
  readonly notes?: string;
  readonly tags?: readonly string[];
  /** Runs of one group are listed together. */
  readonly group?: string;
  /** Listed before all others. */
  readonly pinned?: boolean;
  /** Whether it is listed only when asked for. */
  readonly archived?: boolean;
}

const most = { name: 120, notes: 4000, tag: 40, tags: 20, group: 80 } as const;
const text = (x: unknown, max: number): string | undefined => {
  const words = typeof x === 'string' ? x.trim().slice(0, max) : '';
  return words === '' ? undefined : words;
};

/** The valid part of a stored or typed label: nothing in a run folder is trusted. */
export function runLabelOf(raw: unknown): RunLabel {
  if (!isObject(raw)) return {};
  const tags = Array.isArray(raw['tags'])
      ? [
          ...new Set(
            raw['tags'].flatMap((t: unknown) => text(typeof t === 'string' ? t.replace(/^#/, '') : t, most.tag) ?? []),
          ),
        ]
      : [],
    name = text(raw['name'], most.name),
    notes = text(raw['notes'], most.notes),
    group = text(raw['group'], most.group);
  return {
    ...(name === undefined ? {} : { name }),
    ...(notes === undefined ? {} : { notes }),
    ...(tags.length > 0 ? { tags: tags.slice(0, most.tags) } : {}),
    ...(group === undefined ? {} : { group }),
    ...(raw['pinned'] === true ? { pinned: true } : {}),
    ...(raw['archived'] === true ? { archived: true } : {}),
  };
}
/** A run under the name that people gave it. */
export const labelled = <R extends { readonly name: string }>(run: R, label: RunLabel): R & { label?: RunLabel } =>
  Object.keys(label).length === 0 ? run : { ...run, name: label.name ?? run.name, label };
