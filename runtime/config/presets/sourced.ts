import type { RunFile } from '../schema.js';

/** Values of a preset by their keys with dots, each with where it comes from; the reference prints both. */
export type SourcedValues = Readonly<Record<string, readonly [value: unknown, source: string]>>;

/** The run file that these values are. A key or value that no run file has is found by the schema. */
export function runFileOf(values: SourcedValues): RunFile {
  const file: Record<string, unknown> = {};
  for (const [key, [value]] of Object.entries(values)) {
    const path = key.split('.'),
      last = path.pop()!;
    let at = file;
    for (const section of path) at = (at[section] ??= {}) as Record<string, unknown>;
    at[last] = value;
  }
  return file;
}
