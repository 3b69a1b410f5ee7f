/**
 * Which tasks an evaluation has: training tasks; other arrangements of their words (`heldout`), unseen words and numbers,
 * unseen pairs, other looks, unseen words among near-duplicates, each on the templates of training; templates never
 * trained on (those of version 0.1); and fresh ones, which were not considered when the templates of training were
 * chosen (runtime/tasks/README.md#splits).
 */
export const EVALUATION_SPLITS = ['train', 'heldout', 'words', 'pairs', 'looks', 'near', 'templates', 'fresh'] as const;
export type EvaluationSplit = (typeof EVALUATION_SPLITS)[number];
