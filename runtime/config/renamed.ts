import { isObject } from '../foreign/json.js';

/** An option that had another name in an earlier version; run files with the old name still load. */
export interface RenamedOption {
  /** Path in the run file, with dots. */
  readonly from: string;
  readonly to: string;
  /** Last version that wrote the old name. */
  readonly until: string;
}

export const RENAMED_OPTIONS: readonly RenamedOption[] = [
  { from: 'curation.probe', to: 'curation.pilot', until: '0.1' },
];

type Json = Readonly<Record<string, unknown>>;

const read = (content: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((v, k) => (isObject(v) ? v[k] : undefined), content);

function write(content: Json, [key, ...rest]: readonly string[], value: unknown): Json {
  if (key === undefined) return content;
  if (rest.length > 0) {
    const inner = content[key];
    return { ...content, [key]: write(isObject(inner) ? inner : {}, rest, value) };
  }
  const { [key]: _old, ...others } = content;
  return value === undefined ? others : { ...others, [key]: value };
}

/**
 * A run file's content with today's names, and one note for each old name in it. Where both names are given, the new
 * one wins.
 */
export function withNewNames(content: Json): { readonly content: Json; readonly notes: readonly string[] } {
  const notes: string[] = [];
  let out = content;
  for (const { from, to } of RENAMED_OPTIONS) {
    const old = read(out, from.split('.'));
    if (old === undefined) continue;
    const given = read(out, to.split('.'));
    out = write(write(out, from.split('.'), undefined), to.split('.'), given ?? old);
    notes.push(
      given === undefined
        ? `${from} is deprecated: it is called ${to} now. Rename it in the run file.`
        : `${from} is deprecated and left out, because ${to}, its new name, is given too. Remove it from the run file.`,
    );
  }
  return { content: out, notes };
}
