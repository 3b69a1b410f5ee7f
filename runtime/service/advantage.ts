import type { AdvantageOptions } from '../trainer/objective/advantages.js';
import type { RunFacts } from '../queries/facts.js';

/** How a run's trainer computes advantages. */
export const advantageOptions = (f: RunFacts): AdvantageOptions => ({
  baseline: f.config?.trainer.baseline ?? 'trajectory',
  norm: f.config?.trainer.norm ?? 'std',
});
