import { templateBootstrap, type TemplateCounts } from './bootstrap.js';
import type { EvaluationSplit } from './evaluationSplits.js';
import { intervalText } from './stats.js';
import { wilson } from './wilson.js';

/** The result of an evaluation, whole and by template. */
export interface Counted {
  readonly episodes: number;
  readonly successes: number;
  readonly perFamily: TemplateCounts;
}

/** Whether the templates of a split stand for others that might have been held out, and not for themselves alone. */
export const standForOthers = (split: EvaluationSplit): boolean => split === 'templates' || split === 'fresh';

/**
 * 95 % interval of a success rate. Where all templates asked about were trained on, these are what the rate is about, in
 * fixed shares, and only their episodes are a sample: Wilson's interval over episodes. Of templates never trained on, the
 * templates themselves are the sample, and a small one, whatever the number of episodes: drawn first (`templateBootstrap`).
 */
export function evaluationInterval(
  split: EvaluationSplit,
  e: Counted,
): { readonly low: number; readonly high: number } {
  const { low, high } =
    standForOthers(split) && e.episodes > 0 ? templateBootstrap([e.perFamily]) : wilson(e.successes, e.episodes);
  return { low, high };
}

/** "36 % [9, 64]" */
export function evaluationText(split: EvaluationSplit, e: Counted): string {
  if (e.episodes === 0) return 'no episodes';
  const { low, high } = evaluationInterval(split, e);
  return intervalText(e.successes / e.episodes, low, high);
}
/** " on 11 templates", where these are what the interval is over. */
export const onTemplates = (split: EvaluationSplit, e: Counted): string =>
  standForOthers(split) ? ` on ${Object.keys(e.perFamily).length} templates` : '';
