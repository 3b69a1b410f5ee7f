import type { StepExtra } from '../data/events.js';
import type { SchedulerEvent, StepAbout } from '../rollout/types.js';

/** What is kept of a decision for people: four digits of a probability are enough to draw it. */
export function stepExtra(
  desktop: string,
  alternatives: Extract<SchedulerEvent, { type: 'step' }>['alternatives'],
  about: StepAbout | undefined,
): StepExtra {
  return {
    desktop,
    ...(about?.replica ? { replica: about.replica } : {}),
    ...(about?.labels ? { labels: about.labels } : {}),
    ...(about?.places?.length ? { places: about.places } : {}),
    ...(alternatives
      ? {
          alternatives: alternatives.map((of) =>
            of.map((a) => ({ label: a.label, probability: Number(a.probability.toPrecision(4)) })),
          ),
        }
      : {}),
  };
}
