import type { TemplateCounts } from '../domain/bootstrap.js';
import { standForOthers } from '../domain/evaluationInterval.js';
import type { EvaluationSplit } from '../domain/index.js';

/** From this success rate on, a training family counts as solved blind. */
const BLIND_SHARE = 0.2;

interface Row {
  readonly split: EvaluationSplit;
  readonly blind: boolean;
  readonly perFamily: TemplateCounts;
}
/**
 * Of the templates of training, those of which a policy solves a fifth or more with its screen blanked, over all rows that
 * were asked so: one row alone has an episode or two of a template. `fewest`: the fewest episodes of one. Pure.
 */
export function solvedBlind(rows: readonly Row[]): { readonly families: readonly string[]; readonly fewest: number } {
  const sums = new Map<string, readonly [number, number]>();
  for (const { perFamily } of rows.filter((r) => r.blind && !standForOthers(r.split)))
    for (const [name, f] of Object.entries(perFamily)) {
      const [won, n] = sums.get(name) ?? [0, 0];
      sums.set(name, [won + f.successes, n + f.episodes]);
    }
  return {
    families: [...sums].filter(([, [won, n]]) => won >= BLIND_SHARE * n).map(([name]) => name),
    fewest: Math.min(...[...sums.values()].map(([, n]) => n)),
  };
}
