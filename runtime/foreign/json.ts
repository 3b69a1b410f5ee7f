import { messageOf } from './messageOf.js';
import { beyondBounds, type JsonBounds } from './jsonBounds.js';

/** Makes the error for a refused text: words that follow "the answer", and what made the fault known. */
export type Refused = (why: string, fault: 'bounds' | 'syntax', cause?: unknown) => Error;

/** JSON of others; its shape is the caller's to check. Throws what `refused` makes of what is wrong with it. */
export function foreignJson(text: string, most: JsonBounds, refused: Refused): unknown {
  const beyond = beyondBounds(text, most);
  if (beyond !== undefined) throw refused(beyond, 'bounds');
  try {
    return JSON.parse(text) as unknown;
  } catch (e) {
    throw refused(`is not JSON, or was cut short (${messageOf(e).slice(0, 120)})`, 'syntax', e);
  }
}

/** The same where text that is no JSON may be something else: undefined. Throws for what is beyond the bounds only. */
export function jsonOf(text: string, most: JsonBounds, refused: (beyond: string) => Error): unknown {
  const beyond = beyondBounds(text, most);
  if (beyond !== undefined) throw refused(beyond);
  return parsed(text);
}

/** The same where it does not matter why: undefined for what is beyond the bounds, or none. */
export function jsonOrNothing(text: string, most: JsonBounds): unknown {
  return beyondBounds(text, most) === undefined ? parsed(text) : undefined;
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** An object of JSON, and no list. */
export const isObject = (x: unknown): x is Record<string, unknown> =>
  typeof x === 'object' && x !== null && !Array.isArray(x);
