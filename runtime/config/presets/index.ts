import type { PresetName } from '../../domain/index.js';
import type { RunFile } from '../schema.js';
import { DART_VALUES } from './dart.js';
import { OSWORLD_VALUES, QWEN3_VL_8B_VALUES, UI_TARS_7B_VALUES } from './oneGpu.js';
import { QUICKSTART_FAMILIES } from './quickstart.js';
import { runFileOf, type SourcedValues } from './sourced.js';

export { EARLIER_PRESETS } from './earlier.js';
export { QUICKSTART_FAMILIES } from './quickstart.js';

/** The source of each value of a preset; the reference of the run file shows it. */
export const PRESET_SOURCES: Readonly<Partial<Record<PresetName, SourcedValues>>> = {
  'ui-tars-7b': UI_TARS_7B_VALUES,
  'qwen3-vl-8b': QWEN3_VL_8B_VALUES,
  osworld: OSWORLD_VALUES,
  dart: DART_VALUES,
};

/** A laptop: the embedded policy on the easier templates of the desk suite, within 20 minutes. */
const QUICKSTART = {
  name: 'quickstart',
  warmStart: {
    reading: { screens: 480, steps: 1600, lr: 4e-3 },
    demonstrations: 6,
    steps: 600,
    lr: 2e-3,
    shift: 16,
    tones: 0.5,
  },
  policy: { temperature: 0.6 },
  trainer: {
    lr: 5e-4,
    lrDecay: 0.7,
    minibatchStates: 24,
    entropyBonus: 0.002,
    // Takes effect only with `replay` set, which is 0 by default: the value that was measured with it.
    replayVaried: true,
    imitationCoef: 0.3,
  },
  evaluation: { episodes: 84, everyMinutes: 4 },
  budget: { minutes: 20 },
} satisfies RunFile;

/** Named starting points; a run file's own keys win over its preset. */
export const PRESETS: Readonly<Record<PresetName, RunFile>> = {
  quickstart: { ...QUICKSTART, tasks: { families: [...QUICKSTART_FAMILIES] } },
  /** The same policy on every training template of the suite: an hour. */
  desk: {
    ...QUICKSTART,
    name: 'desk',
    // Three times the templates of the quick start, and three times its time.
    warmStart: { ...QUICKSTART.warmStart, demonstrations: 16, steps: 10_000, shift: 80 },
    trainer: { ...QUICKSTART.trainer, lrDecay: 0.4 },
    evaluation: { episodes: 128, everyMinutes: 10 },
    budget: { minutes: 60 },
  },
  /** A model of 7 B on one GPU of 80 GB. */
  'ui-tars-7b': runFileOf(UI_TARS_7B_VALUES),
  /** A model of 8 B on one GPU of 80 GB. */
  'qwen3-vl-8b': runFileOf(QWEN3_VL_8B_VALUES),
  /** The same model on OSWorld, on one machine. */
  osworld: runFileOf(OSWORLD_VALUES),
  /** The paper's experiment. */
  dart: runFileOf(DART_VALUES),
};
