import { foreignJson } from '../foreign/json.js';
import { Unusable } from './types.js';

/** A step of ours with every token and its alternatives has a few hundred thousand values; depth is of nobody's use. */
const BOUNDS = { depth: 64, values: 1 << 19 };

/** JSON of others. Throws Unusable: what is wrong with it, after `what` it is. */
export function importedJson(text: string, what = ''): unknown {
  const subject = what === '' ? '' : `${what} `;
  return foreignJson(text, BOUNDS, (why) => new Unusable(`${subject}${why}`));
}

/** A number, written as one or as text; NaN for anything else. */
export const numberIn = (v: unknown): number => (typeof v === 'number' || typeof v === 'string' ? Number(v) : NaN);
