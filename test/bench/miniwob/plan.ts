import type { RunFile } from '../../../runtime/config/index.js';
import type { Experiment } from '../lib/experiments.js';

export interface MiniwobPlan {
  /** The user's copy of MiniWoB++. */
  readonly dir: string;
  readonly pages: readonly string[];
  readonly seed: number;
  readonly minutes: number;
  /** A few lessons, so that there is a checkpoint to measure. */
  readonly quick: boolean;
}

/** Of the minutes of training, those on the built-in desk suite, before the policy sees a page. */
const DESK_MINUTES = 12;
const deskMinutes = (p: MiniwobPlan): number => Math.min(DESK_MINUTES, p.minutes / 2);

/** What a browser draws letters with: as applications do, and larger. The first is that of most texts, the others of buttons and small print. */
const AS_PAGES = {
  fonts: [
    ...Array<string>(5).fill('DejaVu Sans'),
    ...Array<string>(5).fill('DejaVu Sans Bold'),
    'DejaVu Sans Mono',
    'DejaVu Sans Mono Bold',
  ],
  sizes: [...Array<number>(8).fill(14), ...Array<number>(5).fill(19), 16, 13, 13, 12, 12, 11, 10, 9],
};
/** In pixels of the observation: what is learned about dialogs in the middle of a screen must hold for a page at its edge. */
const SHIFT = 80;

/**
 * What both halves of the recorded policy were trained with and on (since commit aceb4142), all of it said here but for the
 * network, which is the shipped one: presets and the suite go on, and a benchmark that inherits them measures something else under the same name.
 */
const LEARNS = { lr: 5e-4, minibatchStates: 24, replay: 24, entropyBonus: 0.002, imitationCoef: 0.3 };
const DESK = {
  curation: { planner: 'variance' },
  policy: { temperature: 0.6 },
  warmStart: {
    reading: { ...AS_PAGES, screens: 480, steps: 1600, lr: 4e-3 },
    demonstrations: 6,
    // More would leave nothing of the twelve minutes.
    steps: 900,
    lr: 2e-3,
    shift: SHIFT,
    tones: 0.5,
  },
  trainer: { ...LEARNS, lrDecay: 0.4, replayVaried: false },
} satisfies RunFile;
const DESK_FAMILIES = `
  press-button press-grid press-order press-two list-pick list-confirm list-scroll list-radio
  list-check-two list-cancel entry-type entry-enter form-one form-two form-checks form-choice
  scale-drag calendar-day wizard survey form-copy-number form-copy-name note-save note-replace
  note-append note-menu-save note-clear note-copy calc-copy calc-click file-rename file-delete
  folder-new folder-open file-drag file-copy folder-empty folder-sort cell-fill cell-two
  cell-formula term-touch term-write term-exit term-which window-close window-minimize
  window-raise window-move menu-start tray-start calc-to-note file-edit`
  .trim()
  .split(/\s+/)
  .map((name) => `desk/${name}`);
const PAGES = {
  // Most pages never succeed at first: half of a group tells.
  curation: { planner: 'variance', pilot: 4 },
  policy: { temperature: 0.8 },
  warmStart: {
    reading: { screens: 480, steps: 1600, lr: 4e-3 },
    demonstrations: 0,
    steps: 0,
    lr: 2e-3,
    shift: 16,
    tones: 0.5,
  },
  trainer: { ...LEARNS, lrDecay: 0.7, replayVaried: true },
} satisfies RunFile;

/** Where the policy learns to read, to look for what the instruction names and to act on it. */
export const deskFirst = (p: MiniwobPlan): Experiment => ({
  name: `desk-s${p.seed}`,
  variant: 'desk',
  seed: p.seed,
  half: 'resume',
  file: {
    name: 'desk',
    seed: p.seed,
    ...DESK,
    tasks: { families: p.quick ? ['desk/press-button'] : DESK_FAMILIES },
    ...(p.quick
      ? {
          desktops: { count: 2 },
          warmStart: { demonstrations: 1, steps: 2, reading: { ...AS_PAGES, screens: 24, steps: 3 } },
        }
      : {}),
    evaluation: { episodes: 1, untrained: false, everyMinutes: 0 },
    budget: { minutes: p.quick ? 0.2 : deskMinutes(p) },
  } satisfies RunFile,
});

/** The same policy goes on, on all pages at once and without demonstrations of them. */
export const trainOn = (p: MiniwobPlan): Experiment => ({
  name: `miniwob-s${p.seed}`,
  variant: 'trained',
  seed: p.seed,
  half: 'resume',
  from: `desk-s${p.seed}`,
  file: {
    name: 'miniwob',
    seed: p.seed,
    ...PAGES,
    tasks: { suite: 'miniwob', dir: p.dir, families: [...p.pages] },
    desktops: { count: 8 },
    rollout: { maxSteps: 8 },
    evaluation: { episodes: p.pages.length, untrained: false, everyMinutes: 0 },
    budget: { minutes: p.quick ? 0.2 : p.minutes - deskMinutes(p) },
  } satisfies RunFile,
});

/** A policy that was trained before, on the same pages: nothing is learned but what the shortest of runs cannot help. */
export const asItIs = (p: MiniwobPlan, checkpoint: string): Experiment => {
  const { file, ...as } = trainOn(p);
  return {
    ...as,
    name: `kept-s${p.seed}`,
    from: undefined,
    file: {
      ...file,
      warmStart: { ...file.warmStart, from: checkpoint, reading: { screens: 0, steps: 0 } },
      evaluation: { episodes: 1, untrained: false, everyMinutes: 0 },
      budget: { minutes: 0.05 },
    } satisfies RunFile,
  };
};

/** The rows of the table, in its order, as arguments of `evaluate`. */
export const ROWS = [
  { row: 'trained', args: [] },
  { row: 'blind', args: ['--blind'] },
  { row: 'random', args: ['--random'] },
] as const;
export type RowName = (typeof ROWS)[number]['row'];
