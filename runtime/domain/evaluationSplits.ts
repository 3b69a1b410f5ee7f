/**
 * Which tasks an evaluation has: training tasks; other arrangements of their words (`heldout`), unseen words and numbers,
 * unseen pairs, other looks, unseen words among near-duplicates, each on the templates of training; templates never
 * trained on (those of version 0.1); fresh ones, which were not considered when the templates of training were chosen;
 * and the two parts of looks, `places` of windows and `styles`, each with the other as in training
 * (runtime/tasks/README.md#splits).
 */
export const EVALUATION_SPLITS = [
  'train',
  'heldout',
  'words',
  'pairs',
  'looks',
  'near',
  'templates',
  'fresh',
  'places',
  'styles',
] as const;
export type EvaluationSplit = (typeof EVALUATION_SPLITS)[number];
