/**
 * `node objective.mjs`: steps and options as JSON on standard input, and as JSON out the loss and, of each step, the
 * signed weights of all its datum's targets: what the driver sends to a server. For test_objective.py.
 */
import { readFileSync } from 'node:fs';
import { objective, type ObjectiveOptions, type ObjectiveStep } from '../../runtime/trainer/objective/objective.js';
import { signedWeights, type TargetSpan } from '../../runtime/trainer/objective/signedWeights.js';

interface AskedStep extends Omit<ObjectiveStep, 'rollout'> {
  /** JSON has no NaN: null is a log-prob that is not known. */
  readonly rollout?: readonly (number | null)[];
  readonly span: TargetSpan;
}
const { options, steps } = JSON.parse(readFileSync(0, 'utf8')) as {
  readonly options: ObjectiveOptions;
  readonly steps: readonly AskedStep[];
};
const { loss, gradient, clipped } = objective(
  steps.map(({ rollout, ...s }) => ({ ...s, ...(rollout ? { rollout: rollout.map((x) => x ?? NaN) } : {}) })),
  options,
);
process.stdout.write(
  JSON.stringify({ loss, clipped, weights: gradient.map((g, i) => [...signedWeights(g, steps[i]!.span)]) }),
);
