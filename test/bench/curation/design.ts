import type { Levels, Mechanism } from './mechanisms.js';

/**
 * A two-level screening design: a Plackett-Burman design of 24 runs, cut into two blocks of twelve by its first column,
 * and both once more with every level turned over. In the 48 runs of four seeds every mechanism is on as often as off
 * beside every other (main effects are orthogonal), and no two of them acting together can pass for a third (main
 * effects are clear of two-factor interactions). Each block of twelve is balanced by itself, and so is the pair of blocks
 * of two seeds that follow each other, but for interactions.
 */
export const BLOCK_RUNS = 12;
export const SEEDS_OF_A_DESIGN = 4;

const PRIME = 23,
  ORDER = PRIME + 1;
/** Columns that mechanisms may have; the first of all cuts the runs into blocks. */
export const MOST_MECHANISMS = PRIME - 1;

const range = (n: number): number[] => [...Array(n).keys()];
const RESIDUES = new Set(range(PRIME).map((k) => (k * k) % PRIME));
/** 1 for a square modulo the prime, -1 for others, 0 for 0. */
const character = (k: number): number => {
  const rest = ((k % PRIME) + PRIME) % PRIME;
  return rest === 0 ? 0 : RESIDUES.has(rest) ? 1 : -1;
};

/** Paley's Hadamard matrix of order 24, made so that its first column is of ones, which is left out: 24 x 23 of 1 and -1. */
export const HADAMARD: readonly (readonly number[])[] = range(ORDER).map((i) =>
  range(PRIME).map((j) => (i === 0 ? 1 : i - 1 === j ? -1 : -character(j - (i - 1)))),
);

/** The twelve runs of a seed, as 1 and -1 of so many columns. Seeds from 1 on, whole designs of four each. */
export function blockOf(seed: number, columns: number): readonly (readonly number[])[] {
  if (!Number.isSafeInteger(seed) || seed < 1) throw new Error(`seed ${seed}: whole numbers from 1 on are needed`);
  if (columns > MOST_MECHANISMS) throw new Error(`${columns} mechanisms: the design has ${MOST_MECHANISMS} columns`);
  const block = (seed - 1) % SEEDS_OF_A_DESIGN,
    half = block % 2 === 0 ? 1 : -1,
    turn = block < 2 ? 1 : -1;
  return HADAMARD.filter((r) => r[0] === half).map((r) => r.slice(1, 1 + columns).map((x) => turn * x));
}

/** Whether these seeds are whole designs: each of the four blocks as often as the others. */
export const areWhole = (seeds: readonly number[]): boolean => {
  const times = range(SEEDS_OF_A_DESIGN).map((k) => seeds.filter((s) => (s - 1) % SEEDS_OF_A_DESIGN === k).length);
  return times[0]! > 0 && times.every((n) => n === times[0]);
};

/** Runs of as many whole designs as these seeds begin. */
export const wholeRuns = (seeds: readonly number[]): number =>
  BLOCK_RUNS * SEEDS_OF_A_DESIGN * Math.ceil(seeds.length / SEEDS_OF_A_DESIGN);

/** What is on in each of a seed's twelve runs. */
export const levelsOf = (seed: number, mechanisms: readonly Mechanism[]): readonly Levels[] =>
  blockOf(seed, mechanisms.length).map((row) => Object.fromEntries(mechanisms.map((m, k) => [m.name, row[k] === 1])));
