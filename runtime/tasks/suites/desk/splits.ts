import { hash32, random } from '../../../domain/index.js';
import type { Instance } from './kit.js';
import { HELD_OUT, nearLexicon, TRAINED, wordsOf, type Lexicon } from './lexicon.js';
import { DRESSES, zoneOf, type Dress, type Scene } from './scene.js';
import { variedDress } from './variedDress.js';

/**
 * The ways of holding out tasks, each by itself (runtime/tasks/README.md#splits): other arrangements of the very words
 * of training, words and numbers never seen, pairs of seen words that never stand together, other looks, words never
 * seen among others that differ from them by a letter. `places` and `styles` are the two parts of `looks`, each with
 * the other as in training. `dev` is for tuning, `test` for reporting; the two share nothing that is held out. Held-out
 * templates are a list of their own (`Template.heldout`).
 */
export const HOLDOUTS = ['arrangements', 'words', 'pairs', 'looks', 'near', 'places', 'styles'] as const;
export type Holdout = (typeof HOLDOUTS)[number];
export type ProbeSet = 'dev' | 'test';

export interface Split {
  readonly set: 'train' | ProbeSet;
  readonly holdout?: Holdout;
  /** Training tasks only: each in colours and letters of its own; absent: all alike. */
  readonly looks?: 'varied';
}

/** Seeds of one split. */
const SPAN = 1_000_000;
/**
 * Seeds under 2 SPAN are those of version 0.1, whose tasks stay what they were: training tasks from 0, held-out ones
 * from SPAN, apart by a hash of the whole content alone.
 */
const LEGACY = 2 * SPAN;
const SPLITS: readonly Split[] = [
  { set: 'train' },
  ...(['dev', 'test'] as const).flatMap((set) =>
    (['arrangements', 'words', 'pairs', 'looks'] as const).map((holdout): Split => ({ set, holdout })),
  ),
  // Later ones last, so that the others keep their seeds.
  ...(['near', 'places', 'styles'] as const).flatMap((holdout): Split[] => [
    { set: 'dev', holdout },
    { set: 'test', holdout },
  ]),
  { set: 'train', looks: 'varied' },
];
/** The last number that is a seed. */
export const LAST_SEED = LEGACY + SPAN * SPLITS.length - 1;
const firstSeed = (s: Split): number =>
  LEGACY + SPAN * SPLITS.findIndex((x) => x.set === s.set && x.holdout === s.holdout && x.looks === s.looks);

export const trainSeed = (n: number): number => firstSeed({ set: 'train' }) + (n % SPAN);
/** The n-th seed of training tasks in varied looks. */
export const variedSeed = (n: number): number => firstSeed({ set: 'train', looks: 'varied' }) + (n % SPAN);
export const probeSeed = (set: ProbeSet, holdout: Holdout, n: number): number =>
  firstSeed({ set, holdout }) + (n % SPAN);

/** The split of a seed of version 0.1. */
export interface LegacySplit {
  readonly set: 'legacy';
  readonly heldout: boolean;
}
export function splitOf(seed: number): Split | LegacySplit | undefined {
  if (!Number.isSafeInteger(seed) || seed < 0) return undefined;
  return seed < LEGACY ? { set: 'legacy', heldout: seed >= SPAN } : SPLITS[Math.floor((seed - LEGACY) / SPAN)];
}

/** The words and the dress that a seed of a split draws from. */
export function drawsFrom(s: Split | LegacySplit, seed: number): { readonly words: Lexicon; readonly dress: Dress } {
  if (s.set === 'legacy') return { words: TRAINED, dress: DRESSES.legacy };
  return {
    words: s.set === 'train' ? TRAINED : wordsFor(s.set, s.holdout, seed),
    dress: dressOf(s, seed),
  };
}
function dressOf({ set, holdout, looks }: Split, seed: number): Dress {
  const { train } = DRESSES;
  if (looks === 'varied') return variedDress(random(`dress/${seed}`));
  if (set === 'train') return train;
  if (holdout === 'places') return { ...train, zone: set };
  if (holdout === 'styles') return { ...DRESSES[set], zone: train.zone };
  return holdout === 'looks' ? DRESSES[set] : train;
}

function wordsFor(set: ProbeSet, holdout: Holdout | undefined, seed: number): Lexicon {
  if (holdout === 'near') return nearLexicon(HELD_OUT[set], random(`near/${seed}`));
  return holdout === 'words' ? HELD_OUT[set] : TRAINED;
}

/** One in this many contents is reserved for arrangements of version 0.1, and two in eight for those of today. */
const RESERVED = 4;
const contentHash = (made: Pick<Instance, 'instruction' | 'config'>): number =>
  hash32(JSON.stringify([made.instruction, made.config], withoutAttempts));
/** How often a set-up that failed is tried is no part of what a task is. */
const withoutAttempts = (key: string, value: unknown): unknown => (key === 'attempts' ? undefined : value);

/** Numbers of two digits and more: two in five are held out. */
const NUMBER_KINDS = 5;
export const numberSet = (n: string): 'train' | ProbeSet => KIND_SETS[hash32(`number/${n}`) % NUMBER_KINDS] ?? 'train';
/** Two contents that follow each other in an instruction, whichever comes first: two pairs in eight are held out. */
const PAIR_KINDS = 8;
export const pairSet = (a: string, b: string): 'train' | ProbeSet =>
  KIND_SETS[hash32(`pair/${[a, b].sort().join('/')}`) % PAIR_KINDS] ?? 'train';
const KIND_SETS: readonly (ProbeSet | undefined)[] = ['dev', 'test'];

/** The words of the suite and the numbers in an instruction. */
export interface Contents {
  readonly words: readonly string[];
  /** Numbers of two digits and more. */
  readonly numbers: readonly string[];
  /** Neighbouring words and numbers, single digits too. */
  readonly pairs: readonly (readonly [string, string])[];
}
const ALL_WORDS = new Set([TRAINED, HELD_OUT.dev, HELD_OUT.test].flatMap(wordsOf));
const NUMBER = /^\d+$/;

/** The contents of any text, an instruction or a set-up. */
export function contentsOf(text: string): Contents {
  // "B3" is a cell, not a number; a hyphen or a letter beside figures makes them something else as well.
  const tokens = text.match(/[A-Za-z]+\d*|\d+/g) ?? [],
    about = tokens.filter((t) => ALL_WORDS.has(t) || NUMBER.test(t));
  return {
    words: [...new Set(about.filter((t) => ALL_WORDS.has(t)))],
    numbers: [...new Set(about.filter((t) => NUMBER.test(t) && t.length > 1))],
    pairs: about.slice(1).map((b, i) => [about[i]!, b] as const),
  };
}

const HELD_OUT_WORDS = (['dev', 'test'] as const).flatMap((set) => wordsOf(HELD_OUT[set])).map((w) => w.toLowerCase());
/** Whether a text has a word, a number or a pair that is held out, as part of another word too: no lesson may show it. */
export function withheld(text: string): boolean {
  const lower = text.toLowerCase(),
    { pairs } = contentsOf(text);
  return (
    HELD_OUT_WORDS.some((w) => lower.includes(w)) ||
    (text.match(/\d{2,}/g) ?? []).some((n) => numberSet(n) !== 'train') ||
    pairs.some((p) => pairSet(...p) !== 'train')
  );
}

/** Whether windows were placed, all of them in the zone; where there is hardly any room training has them there, too. */
export const placedIn = (zone: ProbeSet, corners: Scene['corners']): boolean =>
  corners.length > 0 && corners.every(({ x, y, free }) => free && zoneOf(x, y) === zone);

/** Whether an instruction asks for one of several words that are nearly the same. */
export const asksForNear = ({ items, actions, fields, titles }: Lexicon, instruction: string): boolean =>
  [...items, ...actions, ...fields, ...titles].some((w) => new RegExp(`\\b${w}\\b`).test(instruction));

/** Whether a split may have this instance, drawn from these words, with windows whose corners lie there. */
export function belongs(
  s: Split | LegacySplit,
  made: Pick<Instance, 'instruction' | 'config'>,
  drawn: Lexicon,
  corners: Scene['corners'] = [],
): boolean {
  if (s.set === 'legacy') return (contentHash(made) % RESERVED === 0) === s.heldout;
  if (s.holdout === 'near') return asksForNear(drawn, made.instruction);
  const { words, numbers, pairs } = contentsOf(made.instruction),
    own = s.set === 'train' ? undefined : s.set;
  if (s.holdout === 'words') {
    const lexicon = new Set(wordsOf(HELD_OUT[own!]));
    return words.some((w) => lexicon.has(w))
      ? numbers.every((n) => [own, 'train'].includes(numberSet(n)))
      : numbers.length > 0 && numbers.every((n) => numberSet(n) === own);
  }
  if (numbers.some((n) => numberSet(n) !== 'train')) return false;
  if (s.holdout === 'pairs')
    return pairs.some((p) => pairSet(...p) === own) && pairs.every((p) => [own, 'train'].includes(pairSet(...p)));
  if (pairs.some((p) => pairSet(...p) !== 'train')) return false;
  const reserved = contentHash(made) % 8;
  if (s.holdout === 'arrangements') return reserved === (own === 'dev' ? 0 : 4);
  if (s.holdout === 'places') return placedIn(own!, corners);
  return s.holdout === 'looks' || s.holdout === 'styles' || (reserved !== 0 && reserved !== 4);
}
