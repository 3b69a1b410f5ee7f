import { beyondBounds, type JsonBounds } from './jsonBounds.js';

/** A text of others as JSON; undefined where it is none. Throws what `refused` makes of what is beyond the bounds. */
export function jsonOf(text: string, most: JsonBounds, refused: (beyond: string) => Error): unknown {
  const beyond = beyondBounds(text, most);
  if (beyond !== undefined) throw refused(beyond);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
