import { choiceNames } from '../policy/embedded/choiceNames.js';
import type { RunConfig } from '../config/index.js';
import type { RunFacts } from '../queries/facts.js';
import type { Interpreter } from '../queries/steps.js';
import { groupAdvantages, type AdvantageOptions } from '../trainer/objective/advantages.js';

type Credit = AdvantageOptions & Pick<RunConfig['trainer'], 'credit'>;
const byDefault: Credit = { baseline: 'trajectory', norm: 'std', credit: 'trajectory' };

/** Journals in the words of the embedded policy, advantages as this trainer computes them. */
export const interpreter = (o: Credit): Interpreter => ({
  choiceNames,
  advantages: (rewards, steps) => (o.credit === 'trajectory' ? groupAdvantages(rewards, steps, o) : undefined),
});

/** The interpreter with the settings of the run's own trainer. */
export const interpreterOf = (f: Pick<RunFacts, 'config'>): Interpreter => interpreter(f.config?.trainer ?? byDefault);
