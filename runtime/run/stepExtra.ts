import type { StepExtra } from '../data/events.js';
import type { SchedulerEvent, StepAbout } from '../rollout/types.js';

/** What is kept of a decision for people. Four digits of a probability are enough to draw it. */
export function stepExtra(
  desktop: string,
  alternatives: Extract<SchedulerEvent, { type: 'step' }>['alternatives'],
  about: StepAbout | undefined,
): StepExtra {
  return {
    desktop,
    replica: about?.replica,
    labels: about?.labels,
    rejectedLabels: about?.rejectedLabels,
    places: about?.places?.length ? about.places : undefined,
    alternatives: alternatives?.map((of) =>
      of.map((a) => ({ label: a.label, probability: Number(a.probability.toPrecision(4)) })),
    ),
  };
}
