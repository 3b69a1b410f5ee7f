import type { RunResult } from '../lib/experiments.js';
import { SPLITS } from './plan.js';
import { better, pooled, type Pooled, type Tally } from './tally.js';

/** What policies come to on what is held out beyond tasks. */

type Split = (typeof SPLITS)[number];
type Policy = 'untrained' | 'imitation' | 'longer' | 'rl' | 'blind';
export const SPLIT_NAMES: Readonly<Record<Split, string>> = {
  words: 'unseen words',
  looks: 'places and looks never seen',
  places: 'places never seen, known looks',
  styles: 'looks never seen, known places',
};
export const SPLIT_ROWS: Readonly<Record<Policy, string>> = {
  untrained: 'untrained',
  imitation: 'after imitation',
  longer: 'imitation alone',
  rl: 'after RL',
  blind: 'blind',
};
const POLICIES = Object.keys(SPLIT_ROWS) as readonly Policy[];

/** What a seed's policy came to; imitation alone counts with the best of its checkpoints that were measured. */
export function ofSeed(results: readonly RunResult[], seed: number, split: Split, policy: Policy): Tally | undefined {
  const measured = (variant: string, name: string = split): Tally | undefined =>
    results
      .filter((r) => r.seed === seed && r.variant === variant)
      .reduce<Tally | undefined>((best, r) => better(best, r.splits?.[name]), undefined);
  switch (policy) {
    case 'untrained':
      return measured('base', `${split}-untrained`);
    case 'imitation':
      return measured('base');
    case 'longer': {
      const later = measured('imitation');
      return later && better(measured('base'), later);
    }
    default:
      return measured(policy);
  }
}

function atEnd(results: readonly RunResult[], seed: number, split: Split): boolean {
  const of = results.filter((r) => r.seed === seed && (r.variant === 'base' || r.variant === 'imitation'));
  return of.filter((r) => r.splits?.[split]).length < 2;
}

export interface SplitCell extends Pooled {
  readonly split: Split;
  readonly policy: Policy;
  readonly seeds: number;
  /** Of imitation alone the last checkpoint was measured so and no earlier one: no best of several. */
  readonly atEnd?: true;
}
/** Over all seeds that measured it. */
export function splitCells(results: readonly RunResult[]): SplitCell[] {
  const seeds = [...new Set(results.map((r) => r.seed))];
  return SPLITS.flatMap((split) =>
    POLICIES.flatMap((policy) => {
      const there = seeds.flatMap((s) => ofSeed(results, s, split, policy) ?? []);
      return there.length === 0
        ? []
        : [
            {
              split,
              policy,
              seeds: there.length,
              ...(policy === 'longer' && seeds.every((s) => atEnd(results, s, split)) ? { atEnd: true as const } : {}),
              ...pooled(there),
            },
          ];
    }),
  );
}

/** In words, what a recording of today measures and this one did not. */
export function lacking(results: readonly RunResult[]): string[] {
  const there = new Set(splitCells(results).map((c) => `${c.split}/${c.policy}`));
  return SPLITS.filter((s) => s !== 'words').flatMap((split) => {
    const missing = POLICIES.filter((p) => !there.has(`${split}/${p}`));
    return missing.length === 0
      ? []
      : [
          `${SPLIT_NAMES[split]} (${missing.length === POLICIES.length ? 'every policy' : missing.map((p) => SPLIT_ROWS[p]).join(', ')})`,
        ];
  });
}
