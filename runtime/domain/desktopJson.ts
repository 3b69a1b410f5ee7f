import { beyondBounds, type JsonBounds } from './jsonBounds.js';
import { messageOf } from './errors.js';

/** What of a desktop's JSON is parsed on this thread: 4 MB of 32,768 values cost it up to 40 ms. */
export interface DesktopJsonBounds extends JsonBounds {
  readonly bytes: number;
}

/**
 * JSON that a program of a desktop has printed, which the policy may have changed or replaced; its shape is the caller's
 * to check. Throws what `refused` makes of what is wrong with it, in words that follow "the answer".
 */
export function desktopJson(
  printed: Buffer,
  most: DesktopJsonBounds,
  refused: (why: string, what: 'bounds' | 'syntax') => Error,
): unknown {
  if (printed.length > most.bytes) throw refused(`is longer than ${most.bytes} bytes`, 'bounds');
  const text = printed.toString('utf8'),
    beyond = beyondBounds(text, most);
  if (beyond !== undefined) throw refused(beyond, 'bounds');
  try {
    return JSON.parse(text);
  } catch (e) {
    throw refused(`is not JSON (${messageOf(e).slice(0, 120)})`, 'syntax');
  }
}

/** An object of JSON, and no list. */
export const isRecord = (v: unknown): v is Readonly<Record<string, unknown>> =>
  typeof v === 'object' && v !== null && !Array.isArray(v);
