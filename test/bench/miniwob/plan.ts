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

/** Where the policy learns to read, to look for what the instruction names and to act on it. */
export const deskFirst = (p: MiniwobPlan): Experiment => ({
  name: `desk-s${p.seed}`,
  variant: 'desk',
  seed: p.seed,
  half: 'resume',
  file: {
    preset: 'desk',
    name: 'desk',
    seed: p.seed,
    ...(p.quick
      ? {
          tasks: { families: ['desk/press-button'] },
          desktops: { count: 2 },
          warmStart: { demonstrations: 1, steps: 2, reading: { ...AS_PAGES, screens: 24, steps: 3 } },
        }
      : { warmStart: { reading: AS_PAGES, shift: SHIFT } }),
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
    preset: 'quickstart',
    name: 'miniwob',
    seed: p.seed,
    tasks: { suite: 'miniwob', dir: p.dir, families: [...p.pages] },
    desktops: { count: 8 },
    policy: { temperature: 0.8 },
    // Most pages never succeed at first: half of a group tells.
    curation: { pilot: 4 },
    rollout: { maxSteps: 8 },
    warmStart: { demonstrations: 0, steps: 0 },
    evaluation: { episodes: p.pages.length, untrained: false, everyMinutes: 0 },
    budget: { minutes: p.quick ? 0.2 : p.minutes - deskMinutes(p) },
  } satisfies RunFile,
});

/** The rows of the table, in its order, as arguments of `evaluate`. */
export const ROWS = [
  { row: 'trained', args: [] },
  { row: 'blind', args: ['--blind'] },
  { row: 'random', args: ['--random'] },
] as const;
export type RowName = (typeof ROWS)[number]['row'];
