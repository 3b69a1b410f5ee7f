import { choiceNames } from '../policy/embedded/choiceNames.js';
import type { RunFacts } from '../queries/facts.js';
import type { Interpreter } from '../queries/steps.js';
import { groupAdvantages, type AdvantageOptions } from '../trainer/objective/advantages.js';

/** Journals in the words of the embedded policy, advantages as this trainer computes them. */
export const interpreter = (o: AdvantageOptions): Interpreter => ({
  choiceNames,
  advantages: (rewards, keptSteps) => groupAdvantages(rewards, keptSteps, o),
});

/** As the run's own trainer computes them. */
export const interpreterOf = (f: RunFacts): Interpreter =>
  interpreter({ baseline: f.config?.trainer.baseline ?? 'trajectory', norm: f.config?.trainer.norm ?? 'std' });
