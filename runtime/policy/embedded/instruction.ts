/**
 * Instruction to tokens. A quoted span is one token, anything else is a whitespace word without surrounding
 * punctuation. A token keeps its original spelling, because the policy can type it (copy choices point at tokens), and
 * has a hash bucket of its lower-case form. A trained policy depends on the result: changing it invalidates old
 * checkpoints, so tests fix it.
 */
import type { EmbeddedPolicySpec } from '../../domain/index.js';
import { hash32, instructionLength, spell, spells } from '../../domain/index.js';

/** Token classes; 0 is padding. */
export const TOKEN_CLASS = { word: 1, number: 2, quoted: 3, path: 4, expression: 5, name: 6, other: 7 } as const;
export type TokenClass = keyof typeof TOKEN_CLASS;

export interface InstructionToken {
  /** The text as written, without quotes: a copy choice types it. */
  readonly text: string;
  readonly kind: TokenClass;
  /** 1 .. buckets-1. */
  readonly bucket: number;
}

const OPEN_QUOTES: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '`': '`',
  '\u201c': '\u201d',
  '\u2018': '\u2019',
  '\u00ab': '\u00bb',
};
const EDGE = /[,.;:!?\u2026\u2014\u2013"'`\u201c\u201d\u2018\u2019\u00ab\u00bb]/u;
const BRACKETS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}', '<': '>' };
const isSpace = (c: string | undefined): boolean => c === undefined || /\s/u.test(c);
const isWordChar = (c: string | undefined): boolean => c !== undefined && /[\p{L}\p{N}_]/u.test(c);

/** The number of a word; a policy that spells keeps its last bucket for words that it does not know. */
export const bucketOf = (spec: EmbeddedPolicySpec, text: string): number =>
  1 + (hash32(text.toLowerCase()) % (spec.instruction.buckets - (spells(spec) ? 2 : 1)));

/** The first `maxTokens` tokens of an instruction. */
export function tokenizeInstruction(spec: EmbeddedPolicySpec, instruction: string): InstructionToken[] {
  const tokens = scan(instruction).map(({ text, kind }) => ({
    text,
    kind,
    bucket: bucketOf(spec, text),
  }));
  const kept = shorten(tokens, spec.instruction.maxTokens);
  return spec.parts ? withParts(spec, kept) : kept;
}

const CELL = /^([A-Z]{1,2})(\d{1,3})$/,
  SUM = /^\d+[+\-*/]\d+$/;
/** Characters of a sum that is taken apart. */
const LONGEST_SUM = 8;
/**
 * Appends the parts of texts that a screen shows in parts, as far as there is room. They come after all tokens, so that
 * a choice points at the same token in every spec.
 */
function withParts(spec: EmbeddedPolicySpec, tokens: InstructionToken[]): InstructionToken[] {
  const texts = tokens.map((t) => t.text),
    cells = texts.flatMap((text) => CELL.exec(text)?.slice(1) ?? []),
    sums = texts.filter((text) => text.length <= LONGEST_SUM && SUM.test(text)).flatMap((text) => [...text]),
    parts = [...cells, ...sums];
  return [
    ...tokens,
    ...parts
      .slice(0, spec.instruction.maxTokens - tokens.length)
      .map((text) => ({ text, kind: 'other' as const, bucket: bucketOf(spec, text) })),
  ];
}

/** (bucket, class) pairs and then, for a policy that spells, the characters of each token; zero padded. */
export function encodeInstruction(spec: EmbeddedPolicySpec, tokens: readonly InstructionToken[]): Int32Array {
  const out = new Int32Array(instructionLength(spec)),
    { maxTokens, spelling = 0 } = spec.instruction;
  tokens.forEach((t, i) => {
    out[2 * i] = t.bucket;
    out[2 * i + 1] = TOKEN_CLASS[t.kind];
    // A plain word of one letter, an article mostly, is not looked for.
    const sought = !spec.parts || t.text.length > 1 || t.kind !== 'word';
    if (spelling > 0 && sought) out.set(spell(t.text, spelling), 2 * maxTokens + i * spelling);
  });
  return out;
}

function scan(s: string): { text: string; kind: TokenClass }[] {
  const out: { text: string; kind: TokenClass }[] = [];
  let sentenceStart = true;
  for (let i = 0; i < s.length;) {
    if (isSpace(s[i])) {
      i++;
      continue;
    }
    const end = quotedEnd(s, i);
    if (end !== undefined) {
      out.push({ text: s.slice(i + 1, end), kind: 'quoted' });
      sentenceStart = false;
      i = end + 1;
      continue;
    }
    let j = i + 1;
    while (!isSpace(s[j]) && quotedEnd(s, j) === undefined) j++;
    const raw = s.slice(i, j),
      text = trimWord(raw);
    if (text !== '') out.push({ text, kind: classOf(text, sentenceStart) });
    sentenceStart = /[.!?]["')\u201d]*$/u.test(raw) || (sentenceStart && text === '');
    i = j;
  }
  return out;
}

/**
 * Index of the closing quote when a quoted span starts at `i`. A single quote inside a word is an apostrophe, never an
 * opening.
 */
function quotedEnd(s: string, i: number): number | undefined {
  const close = OPEN_QUOTES[s[i]!];
  if (close === undefined || isWordChar(s[i - 1])) return undefined;
  for (let j = i + 1; j < s.length; j++) {
    if (s[j] !== close) continue;
    // 'it's' : a single quote followed by a letter does not close.
    if ((close === "'" || close === '\u2019') && isWordChar(s[j + 1])) continue;
    return j > i + 1 ? j : undefined;
  }
  return undefined;
}

/**
 * Drop surrounding punctuation; brackets only when they wrap the word or have no partner in it, so that (3+4)*2 stays
 * whole.
 */
function trimWord(raw: string): string {
  let a = 0,
    b = raw.length;
  for (let changed = true; changed && a < b;) {
    changed = false;
    const first = raw[a]!,
      last = raw[b - 1]!;
    if (EDGE.test(first) && !(first === '.' && isWordChar(raw[a + 1]))) {
      a++;
      changed = true;
    } else if (EDGE.test(last)) {
      b--;
      changed = true;
    } else if (
      first in BRACKETS &&
      (last === BRACKETS[first] || !raw.slice(a, b).includes(BRACKETS[first]!)) &&
      b - a > 1
    ) {
      a++;
      if (last === BRACKETS[first]) b--;
      changed = true;
    } else if (b - a > 1 && Object.entries(BRACKETS).some(([o, c]) => last === c && !raw.slice(a, b).includes(o))) {
      b--;
      changed = true;
    }
  }
  return raw.slice(a, b);
}

function classOf(w: string, sentenceStart: boolean): TokenClass {
  if (/^[+-]?[$\u20ac\u00a3]?\d+(?:[.,:]\d+)*%?$/u.test(w)) return 'number';
  if (
    /^[=+\-*/\u00d7\u00f7^%<>&|]+$/u.test(w) ||
    /^=/u.test(w) ||
    (/^[\d\s.,+\-*/\u00d7\u00f7=()^%<>]+$/u.test(w) && /[+\-*/\u00d7\u00f7=^<>]/u.test(w))
  )
    return 'expression';
  if (
    /^[~.]?[\p{L}\p{N}_.@ -]*\/[^ ]*$/u.test(w) ||
    /^\.?[\p{L}\p{N}_][\p{L}\p{N}_-]*(?:\.[\p{L}\p{N}_-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}$/u.test(w) ||
    /^\.[\p{L}][\p{L}\p{N}_-]*$/u.test(w)
  )
    return 'path';
  if (/^\p{Lu}[\p{L}'\u2019-]*$/u.test(w)) return sentenceStart && !/^\p{Lu}{2,}$/u.test(w) ? 'word' : 'name';
  if (/^\p{L}[\p{L}'\u2019-]*$/u.test(w)) return 'word';
  return 'other';
}

const FUNCTION_WORDS = new Set([
  'a',
  'an',
  'the',
  'and',
  'or',
  'of',
  'to',
  'in',
  'on',
  'at',
  'is',
  'it',
  'its',
  'this',
  'that',
  'with',
  'for',
  'by',
  'from',
  'into',
  'as',
  'be',
  'please',
  'so',
  'your',
  'you',
  'my',
  'me',
  'i',
]);

/**
 * Shortens to `max` tokens: function words go first, then plain words, each from the end; texts that may have to be
 * typed go last.
 */
function shorten(tokens: InstructionToken[], max: number): InstructionToken[] {
  let excess = tokens.length - max;
  if (excess <= 0) return tokens;
  const drop = new Set<number>();
  const passes: ((t: InstructionToken) => boolean)[] = [
    (t) => t.kind === 'word' && FUNCTION_WORDS.has(t.text.toLowerCase()),
    (t) => t.kind === 'word',
    (t) => t.kind === 'name' || t.kind === 'other',
    () => true,
  ];
  for (const matches of passes) {
    for (let i = tokens.length - 1; i >= 0 && excess > 0; i--)
      if (!drop.has(i) && matches(tokens[i]!)) {
        drop.add(i);
        excess--;
      }
  }
  return tokens.filter((_, i) => !drop.has(i));
}
