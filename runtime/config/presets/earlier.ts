import type { RunFile } from '../schema.js';

/** A preset that is read and no longer offered: it means what it meant. */
export interface EarlierPreset {
  readonly file: RunFile;
  readonly note: string;
}

export const EARLIER_PRESETS: Readonly<Record<string, EarlierPreset>> = {
  paper: {
    note:
      'preset "paper" is deprecated: it still means what it meant in 0.1, the paper\'s hyper-parameters for the embedded network, ' +
      'which hardly learns at a learning rate of 1e-6. Write "dart" for the paper\'s experiment with UI-TARS-1.5-7B, or "quickstart" for the embedded network.',
    file: {
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
  },
};
