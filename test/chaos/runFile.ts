/** The run that faults are made on: fast tasks, small groups, lessons that take a second, two of everything. */
export const runFile = (desktops: object): object => ({
  name: 'chaos',
  seed: 3,
  tasks: { families: ['press-button', 'term-touch'] },
  desktops: { count: 2, ...desktops },
  policy: { replicas: 2 },
  rollout: { maxSteps: 4 },
  curation: { dynamicRollouts: { max: 4 } },
  // Rollouts wait for the trainer by their staleness bound: an update takes a part of a second.
  trainer: { batchGroups: 1, epochs: 1, reuse: { enabled: false }, replay: 8 },
  warmStart: { reading: { screens: 8, steps: 4 }, demonstrations: 2, steps: 10 },
  evaluation: { episodes: 0 },
  budget: { minutes: 600 },
});
