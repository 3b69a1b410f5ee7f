import { packAlternatives } from '../data/alternatives.js';
import type { StepExtra } from '../data/events.js';
import type { SchedulerEvent, StepAbout } from '../rollout/types.js';

/** The parts of a decision that are kept for people. */
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
    packed: alternatives && packAlternatives(alternatives),
  };
}
