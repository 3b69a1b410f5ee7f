/** Finds where a JSON text is broken: Node names the place in some of its messages only. Pure. */

const SPACE = /[ \t\n\r]*/y,
  // No control characters.
  TEXT = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y,
  OTHER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

interface Reader {
  readonly text: string;
  at: number;
}

/** Index of what should not be there, or where something is missing; undefined for JSON. Goes as deep as the text. */
export function jsonFault(text: string): number | undefined {
  const r: Reader = { text, at: 0 },
    whole = value(r);
  take(r, SPACE);
  return whole && r.at === text.length ? undefined : r.at;
}

function value(r: Reader): boolean {
  if (sign(r, '{')) return list(r, '}', () => one(r, TEXT) && sign(r, ':') && value(r));
  if (sign(r, '[')) return list(r, ']', () => value(r));
  return one(r, TEXT) || one(r, OTHER);
}
function list(r: Reader, end: string, item: () => boolean): boolean {
  if (sign(r, end)) return true;
  do if (!item()) return false;
  while (sign(r, ','));
  return sign(r, end);
}
function one(r: Reader, what: RegExp): boolean {
  take(r, SPACE);
  return take(r, what);
}
function sign(r: Reader, c: string): boolean {
  take(r, SPACE);
  if (r.text[r.at] !== c) return false;
  r.at++;
  return true;
}
function take(r: Reader, what: RegExp): boolean {
  what.lastIndex = r.at;
  if (!what.test(r.text)) return false;
  r.at = what.lastIndex;
  return true;
}
