import type { RunFile } from './schema.js';

/** Named starting points; a run file's own keys win over its preset. */
export const PRESETS: Readonly<Record<'quickstart' | 'paper', RunFile>> = {
  /** A laptop: the embedded policy on eight or more templates of the desk suite, within 20 minutes. */
  quickstart: {
    name: 'quickstart',
    // The published figures were measured with this planner; with the pool on it makes no difference (bench:curation).
    curation: { planner: 'variance' },
    warmStart: { reading: { screens: 1200, steps: 1300 }, demonstrations: 6, steps: 300, lr: 2e-3, shift: 16 },
    policy: { temperature: 0.6 },
    trainer: { lr: 5e-4, lrDecay: 0.4, minibatchStates: 24, replay: 24, entropyBonus: 0.002, imitationCoef: 0.3 },
    evaluation: { episodes: 64, everyMinutes: 4 },
    budget: { minutes: 20 },
  },
  /** The paper's hyper-parameters where they carry over: a remote 7 B policy on full-size desktops. */
  paper: {
    name: 'paper',
    desktops: { count: 180, screen: { width: 1920, height: 1080 }, memoryMb: 4096 },
    rollout: { maxSteps: 30, taskTimeoutS: 1800 },
    curation: {
      planner: 'shuffle',
      dynamicRollouts: { max: 8, threshold: 0.6 },
      highEntropy: { keep: 0.8 },
      staleness: { eta: 2 },
    },
    trainer: {
      batchGroups: 8,
      epochs: 1,
      minibatchStates: 0,
      replay: 0,
      lr: 1e-6,
      weightDecay: 0.1,
      gradClip: 2,
      klBeta: 0.1,
      entropyBonus: 0,
      imitationCoef: 0,
      baseline: 'step',
    },
  },
};
