import type { RunFile } from '../../../runtime/config/index.js';

/** The text of a run file whose run trains within seconds: one short task, two local desktops, hardly a warm start. */
export const smallRun = (name: string, o: RunFile): string =>
  JSON.stringify({
    name,
    seed: 3,
    tasks: { families: ['press-button'] },
    desktops: { count: 2, provider: 'local' },
    policy: { replicas: 1 },
    rollout: { maxSteps: 4 },
    trainer: { batchGroups: 1, epochs: 1, replay: 4 },
    warmStart: { demonstrations: 1, steps: 5 },
    evaluation: { episodes: 0 },
    ...o,
  } satisfies RunFile);
