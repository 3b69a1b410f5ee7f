/**
 * The prompt of a remote model for one answer, token by token as its server counted, so that a trainer can be given
 * exactly that again. A sequence is one Int32Array of symbols: a text token is its id (>= 0), an image is -1 - its
 * place among the images of the trajectory. Prompts of neighbouring steps are nearly the same, so a step records only
 * how its own is put together from the sequence before it (prompt and answer):
 * runtime/policy/README.md#records-of-prompts.
 */

/** An image as it was sent. It shows the frame of the step whose record names it first. */
export interface PromptImage {
  /** SHA-256 of the bytes that were sent, in hex. */
  readonly sha256: string;
  readonly format: 'png' | 'jpeg';
  /** Prompt tokens that it took. */
  readonly tokens: number;
}

/** A prompt, told by the one before it. */
export interface PromptDelta {
  /**
   * Triples (from, copied, literals): `copied` symbols of the sequence before, beginning at `from`, then the next
   * `literals` of `symbols`.
   */
  readonly parts: Int32Array;
  readonly symbols: Int32Array;
  /** Images that occur for the first time; they go on the trajectory's list in this order. */
  readonly images: readonly PromptImage[];
}

/** The place of image `n` of a trajectory in a sequence of symbols. */
export const imageSymbol = (n: number): number => -1 - n;
/** The image that a symbol stands for, or undefined for a text token. */
export const imageOf = (symbol: number): number | undefined => (symbol < 0 ? -1 - symbol : undefined);

/** Shorter matches cost more than their symbols. */
const LEAST_COPY = 4;
/** Places of one beginning that are tried: the screens of a history all begin alike. */
const MOST_PLACES = 16;

/** `prompt` told by `before`, the sequence (prompt, then answer) of the step before; empty at the first one. */
export function encodePrompt(before: Int32Array, prompt: Int32Array, images: readonly PromptImage[]): PromptDelta {
  const places = beginnings(before),
    parts: number[] = [],
    symbols: number[] = [];
  let literals = 0,
    copy: Match = { from: 0, length: 0 };
  const close = (): void => {
    if (copy.length > 0 || literals > 0) parts.push(copy.from, copy.length, literals);
    literals = 0;
  };
  for (let at = 0; at < prompt.length;) {
    const match = longestMatch(before, prompt, at, places);
    if (match.length < LEAST_COPY) {
      symbols.push(prompt[at]!);
      literals++;
      at++;
      continue;
    }
    close();
    copy = match;
    at += match.length;
  }
  close();
  return { parts: Int32Array.from(parts), symbols: Int32Array.from(symbols), images };
}

/** Most symbols of a prompt that are read back: a damaged or foreign delta must not fill the memory. */
const MOST_SYMBOLS = 1 << 20;

/** The prompt that `encodePrompt` was given. Throws RangeError when the delta does not fit the sequence before it. */
export function decodePrompt(before: Int32Array, { parts, symbols }: PromptDelta): Int32Array {
  // A record may be a stranger's: anything else may say that it has any length.
  if (!(parts instanceof Int32Array && symbols instanceof Int32Array))
    throw new RangeError('a prompt is no list of tokens');
  if (parts.length % 3 !== 0) throw new RangeError('the parts of a prompt come in threes');
  const out: number[] = [];
  let taken = 0;
  for (let i = 0; i < parts.length; i += 3) {
    const from = parts[i]!,
      copied = parts[i + 1]!,
      literals = parts[i + 2]!;
    if (from < 0 || copied < 0 || literals < 0 || from + copied > before.length || taken + literals > symbols.length)
      throw new RangeError('a prompt refers to tokens that its step before does not have');
    if (out.length + copied + literals > MOST_SYMBOLS)
      throw new RangeError(`a prompt has more than ${MOST_SYMBOLS} tokens`);
    for (let k = from; k < from + copied; k++) out.push(before[k]!);
    for (let k = taken; k < taken + literals; k++) out.push(symbols[k]!);
    taken += literals;
  }
  if (taken !== symbols.length) throw new RangeError('a prompt has tokens that none of its parts takes');
  return Int32Array.from(out);
}

/** A prompt followed by its answer: what the next step's prompt is told by. */
export function sequenceOf(prompt: Int32Array, answer: Int32Array): Int32Array {
  const out = new Int32Array(prompt.length + answer.length);
  out.set(prompt);
  out.set(answer, prompt.length);
  return out;
}

interface Match {
  readonly from: number;
  readonly length: number;
}

/**
 * Beginnings of the runs of LEAST_COPY symbols in a sequence: the first place of each hash, and the next place of each
 * place.
 */
interface Beginnings {
  readonly first: Int32Array;
  readonly next: Int32Array;
}
const HASH_BITS = 13;
const hashAt = (s: Int32Array, at: number): number => {
  let h = 0;
  for (let i = at; i < at + LEAST_COPY; i++) h = Math.imul(h ^ s[i]!, 0x9e3779b1);
  return h >>> (32 - HASH_BITS);
};

function beginnings(s: Int32Array): Beginnings {
  const first = new Int32Array(1 << HASH_BITS).fill(-1),
    next = new Int32Array(s.length).fill(-1);
  for (let i = s.length - LEAST_COPY; i >= 0; i--) {
    const h = hashAt(s, i);
    next[i] = first[h]!;
    first[h] = i;
  }
  return { first, next };
}

function longestMatch(before: Int32Array, prompt: Int32Array, at: number, places: Beginnings): Match {
  let best: Match = { from: 0, length: 0 };
  if (at + LEAST_COPY > prompt.length) return best;
  let from = places.first[hashAt(prompt, at)]!;
  for (let tried = 0; from >= 0 && tried < MOST_PLACES; tried++) {
    let length = 0;
    while (
      from + length < before.length &&
      at + length < prompt.length &&
      before[from + length] === prompt[at + length]
    )
      length++;
    if (length > best.length) best = { from, length };
    from = places.next[from]!;
  }
  return best;
}
