/** Which JSON files are run files. Pure. */
import { topText } from './jsonPlaces.js';

/** Answered by the extension itself, in every version and on every machine (extension/runFileSchema.ts). */
export const schemaUri = 'dart-studio:/run.schema.json';
const byName = /(^|\.|[\\/])dart-run\.json$/;

/** Whether the editor knows the schema of the file: by its name, or because it says so. */
export const hasSchema = (path: string, text: string): boolean =>
  byName.test(path) || /(^|[/:])run\.schema\.json$/.test(topText(text, '$schema') ?? '');

/** The text with our schema named first in it; undefined where it is no object. */
export function withSchema(text: string): string | undefined {
  const open = /^\s*\{/.exec(text);
  if (!open) return undefined;
  const rest = text.slice(open[0].length),
    empty = /^\s*\}/.test(rest);
  return `${open[0]}\n  "$schema": "${schemaUri}"${empty ? '\n' : ','}${rest}`;
}
