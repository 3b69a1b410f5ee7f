/**
 * Scans over untrusted text: each looks at every character a bounded number of times, where the obvious regular
 * expression would start over at every position.
 */

/** The text without the characters of `set` at its end. */
export function trimEndOf(text: string, set: string): string {
  let end = text.length;
  while (end > 0 && set.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}
/** The text without the characters of `set` at its start. */
export function trimStartOf(text: string, set: string): string {
  let start = 0;
  while (start < text.length && set.includes(text[start]!)) start++;
  return text.slice(start);
}

/**
 * `indexOf` for positions that only grow: a result is reused until it is passed, so that all calls together read the
 * text once. -1 when there is no further match.
 */
export class Forward {
  readonly #text: string;
  readonly #what: string;
  #at = 0;
  constructor(text: string, what: string) {
    this.#text = text;
    this.#what = what;
    this.#at = text.indexOf(what);
  }
  from(place: number): number {
    if (this.#at >= 0 && this.#at < place) this.#at = this.#text.indexOf(this.#what, place);
    return this.#at;
  }
}

/** First place from `at` on that is no white space. */
export function skipBlanks(text: string, at: number): number {
  let i = at;
  while (i < text.length && /\s/.test(text[i]!)) i++;
  return i;
}
