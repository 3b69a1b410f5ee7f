import { REACH_MS, restart, type Fault, type Faults } from '../patient.js';

/** A kill at a place of the runtime: of the daemon, which is then started again, or of a child. */
export const at = (place: string, dies: 'daemon' | 'child' = 'daemon', phase: Fault['phase'] = 'live'): Fault => ({
  phase,
  make: async (c) => ((await c.at(place)) ? dies === 'child' || restart(c) : false),
});

export const placeFaults: Faults = {
  'at-journal-write': at('journal-write'),
  'at-journal-index': at('journal-index'),
  'at-snapshot': at('snapshot'),
  'at-claim': at('claim'),
  'at-trained': at('trained'),
  'at-checkpoint': at('checkpoint', 'child'),
  'at-checkpoint-unsaid': at('checkpoint-unsaid'),
  'at-update': at('update', 'child'),
  'at-sync': at('sync'),
  'at-sync-replica': at('sync-replica', 'child'),
  'at-reset': at('reset'),
};

/** Reading has been learned and said: what is learned next is the warm start. */
const afterReading = (fault: Fault): Fault => ({
  ...fault,
  make: async (c) => (await c.when(() => c.tail.count('checkpoint') > 0, REACH_MS)) && fault.make(c),
});

/** In the order in which a run comes to them; each is come to once. */
export const lessonFaults: Faults = {
  'at-reading': at('reading', 'daemon', 'lessons'),
  'at-reading-trainer': at('reading-trainer', 'child', 'lessons'),
  'at-reading-learned': at('lesson-unsaid', 'daemon', 'lessons'),
  'at-demonstration': at('demonstration', 'daemon', 'lessons'),
  'at-warm-start': at('warm-start', 'daemon', 'lessons'),
  'at-warm-start-trainer': at('warm-start-trainer', 'child', 'lessons'),
  'at-warm-start-learned': afterReading(at('lesson-unsaid', 'daemon', 'lessons')),
};
