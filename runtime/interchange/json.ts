import { messageOf } from '../domain/index.js';
import { beyondBounds } from '../domain/jsonBounds.js';
import { Unusable } from './types.js';

/** A step of ours with every token and its alternatives has a few hundred thousand values; depth is of nobody's use. */
const BOUNDS = { depth: 64, values: 1 << 19 };

/** JSON of others. Throws Unusable: what is wrong with it, after `what` it is. */
export function foreignJson(text: string, what = ''): unknown {
  const subject = what === '' ? '' : `${what} `,
    beyond = beyondBounds(text, BOUNDS);
  if (beyond !== undefined) throw new Unusable(`${subject}${beyond}`);
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new Unusable(`${subject}is not JSON, or was cut short (${messageOf(e).slice(0, 120)})`);
  }
}

/** A number, written as one or as text; NaN for anything else. */
export const numberIn = (v: unknown): number => (typeof v === 'number' || typeof v === 'string' ? Number(v) : NaN);
