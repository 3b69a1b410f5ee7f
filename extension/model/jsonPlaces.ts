/**
 * Finds the places of values in a JSON text. Half-typed text is read too, and what is not understood is passed over.
 * Pure.
 */

export interface Place {
  readonly from: number;
  readonly to: number;
}

/** The key, or the element, that a path leads to; the nearest enclosing one where the path leads nowhere. */
export function placeOf(text: string, path: readonly (string | number)[]): Place {
  const tokens = [...tokensOf(text)];
  let best: Place = firstOf(tokens),
    at = 0;
  for (const part of path) {
    const open = tokens[at];
    if (open?.text !== (typeof part === 'number' ? '[' : '{')) return best;
    const found = typeof part === 'number' ? elementAt(tokens, at, part) : keyAt(tokens, at, part);
    if (!found) return best;
    best = found.shown;
    at = found.value;
  }
  return best;
}

interface Token extends Place {
  readonly text: string;
}
const TOKEN = /"(?:[^"\\\n]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g;
function* tokensOf(text: string): Generator<Token> {
  for (const m of text.matchAll(TOKEN)) yield { text: m[0], from: m.index, to: m.index + m[0].length };
}
const firstOf = (tokens: readonly Token[]): Place => tokens[0] ?? { from: 0, to: 0 };

/** Index behind the value that begins at `at`. */
function behind(tokens: readonly Token[], at: number): number {
  let depth = 0,
    i = at;
  do {
    const x = tokens[i]?.text;
    if (x === undefined) return i;
    if (x === '{' || x === '[') depth++;
    else if (x === '}' || x === ']') depth--;
    i++;
  } while (depth > 0);
  return i;
}
function keyAt(tokens: readonly Token[], open: number, key: string): { shown: Place; value: number } | undefined {
  let last: { shown: Place; value: number } | undefined;
  for (let i = open + 1; i < tokens.length && tokens[i]!.text !== '}';) {
    const t = tokens[i]!;
    if (tokens[i + 1]?.text !== ':') {
      i++;
      continue;
    }
    // JSON takes the last of several equal keys.
    if (unquoted(t.text) === key) last = { shown: t, value: i + 2 };
    i = behind(tokens, i + 2);
  }
  return last;
}
function elementAt(tokens: readonly Token[], open: number, n: number): { shown: Place; value: number } | undefined {
  for (let i = open + 1, k = 0; i < tokens.length && tokens[i]!.text !== ']'; k++) {
    const end = behind(tokens, i);
    if (k === n) return { shown: { from: tokens[i]!.from, to: tokens[end - 1]!.to }, value: i };
    i = tokens[end]?.text === ',' ? end + 1 : end;
  }
  return undefined;
}
function unquoted(s: string): string | undefined {
  try {
    const x: unknown = JSON.parse(s);
    return typeof x === 'string' ? x : undefined;
  } catch {
    return undefined;
  }
}

/** The text of a top-level string property; undefined where there is none. */
export function topText(text: string, key: string): string | undefined {
  const tokens = [...tokensOf(text)],
    found = tokens[0]?.text === '{' ? keyAt(tokens, 0, key) : undefined;
  return found && unquoted(tokens[found.value]?.text ?? '');
}
