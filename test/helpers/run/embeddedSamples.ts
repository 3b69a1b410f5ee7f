import type { EmbeddedPolicySpec, EmbeddedSample, LearnStep, Trajectory } from '../../../runtime/domain/index.js';
import { EmbeddedSamples, type Observations } from '../../../runtime/run/backends/embeddedSamples.js';
import { imitationSteps, policySteps, type CreditOptions, type CuratedGroup } from '../../../runtime/run/credit.js';

/** The steps of groups as the trainer of the embedded policy gets them. */
export const policySamples = (
  spec: EmbeddedPolicySpec,
  observations: Observations,
  groups: readonly CuratedGroup[],
  o: CreditOptions,
): Promise<EmbeddedSample[]> =>
  sampled(spec, observations, (source) => policySteps(groups, o, (t, i) => source.expressible(t, i)));

/** The steps of successes as it gets them to imitate. */
export const imitationSamples = (
  spec: EmbeddedPolicySpec,
  observations: Observations,
  successes: readonly Trajectory[],
): Promise<EmbeddedSample[]> =>
  sampled(spec, observations, (source) => imitationSteps(successes, (t, i) => source.expressible(t, i)));

function sampled(
  spec: EmbeddedPolicySpec,
  observations: Observations,
  choose: (source: EmbeddedSamples) => readonly LearnStep[],
): Promise<EmbeddedSample[]> {
  const source = new EmbeddedSamples(spec, observations);
  return Promise.all(choose(source).map((step) => source.sampleOf(step)));
}
