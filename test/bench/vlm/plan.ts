import type { RunFile } from '../../../runtime/config/index.js';
import { merge } from '../../../runtime/config/index.js';
import type { Experiment } from '../lib/experiments.js';

/** One click: a list dialog somewhere on the screen has to be closed with its Cancel button. */
export const FAMILY = 'list-cancel';
/** Scripted solutions click on centres of such cells. */
const CELL = 16,
  SCREEN = { width: 640, height: 400 };
/** More steps than fit: the minutes end such a phase. */
const UNTIL_TIME_IS_UP = 100_000;

const scale = (cells: number): number[] =>
  Array.from({ length: cells }, (_, k) => Math.round(((CELL * k + CELL / 2) / (CELL * cells)) * 1000));

/** What the tiny model says in one token each: parts of its one action, places, and the words of its prompt. */
export const WORDS: readonly string[] = [
  "Action: click(start_box='<|box_start|>(",
  ")<|box_end|>')",
  "Action: finished(content='')",
  'You are a helpful assistant.',
  'Close the ',
  'list without choosing anything',
  ' with the Cancel button.',
  'system\n',
  'user\n',
  'assistant\n',
  ...new Set([...scale(SCREEN.width / CELL), ...scale(SCREEN.height / CELL)].map(String)),
];
/** Area of a picture as the model gets it: 320x192 of 640x400. */
export const MOST_PIXELS = 62_000;

export interface Engine {
  readonly url: string;
  /** Folder of the model. */
  readonly model: string;
  /** Its token for a part of an image. */
  readonly imageToken: number;
}
export interface VlmPlan {
  readonly seeds: readonly number[];
  /** Reinforcement learning of a seed; the imitation arm has as many beside it. */
  readonly minutes: number;
  /** Parts of the imitation arm, each measured at its end: its best checkpoint is what RL is held against. */
  readonly parts: number;
  /** Minutes that each of them has beyond its share of RL's time: it makes its demonstrations anew. */
  readonly demonstrating: number;
  readonly lessons: number;
  /** Minutes that demonstrations and lessons take by plan: the blind policy has them and RL's in one run. */
  readonly learning: number;
  readonly demonstrations: number;
  readonly probe: number;
  readonly seeing: Engine;
  /** The same training with plain grey in place of every screen. */
  readonly blind: boolean;
  /** Answers with a click on a random cell. */
  readonly random: string | undefined;
}

/**
 * Per seed: a policy that imitates (`base`), RL from it, imitation from it for the same time, and the same training of a
 * policy that sees nothing.
 */
export function vlmPlan(p: VlmPlan): Experiment[] {
  return p.seeds.flatMap((seed) => [
    ...(p.random === undefined ? [] : [randomClicks(p, seed, p.random)]),
    base(p, seed),
    reinforced(p, seed),
    ...imitated(p, seed),
    ...(p.blind ? [blind(p, seed)] : []),
  ]);
}

const common = (p: VlmPlan, seed: number): RunFile => ({
  seed,
  // Places and looks that never occur are reported too: a policy that met one theme alone has nothing to go by.
  tasks: { families: [FAMILY], looks: 'varied' },
  desktops: { count: 4, screen: SCREEN },
  // One answer is an episode: a second click would be a second chance.
  rollout: { maxSteps: 1 },
  evaluation: { episodes: p.probe, untrained: false, everyMinutes: 0 },
});
export const policy = (e: Engine): RunFile => ({
  policy: {
    kind: 'vlm',
    vlm: {
      model: e.model,
      endpoints: [`${e.url}/v1`],
      coordinates: 'relative1000',
      imageToken: e.imageToken,
      maxTokens: 8,
      images: 1,
      alternatives: 0,
      prompt: '{instruction}',
    },
  },
  trainer: { remote: { url: e.url, rank: 0 } },
});
const taught = (p: VlmPlan, steps: number): RunFile => ({
  warmStart: { demonstrations: p.demonstrations, steps, lr: 1e-3 },
});
const REINFORCED: RunFile = {
  // What it has over demonstrations is breadth: more screens than it can come to.
  tasks: { trainSeeds: 4096 },
  // Sixteen tasks of four rollouts a batch: many screens teach more than many answers to one. Rollouts take most of the time, so each batch is learned from twice.
  curation: {
    dynamicRollouts: { enabled: false, max: 4 },
    // Replays draw from all of its successes: the newest 64, the default, come from some twenty screens.
    pool: { enabled: false, maxPerFamily: 4096 },
    highEntropy: { enabled: false },
  },
  // Groups that all succeeded have no gradient: without a replay of successes the policy forgets what it can do (96 to 60 %).
  trainer: {
    batchGroups: 16,
    epochs: 2,
    minibatchStates: 32,
    replay: 64,
    imitationCoef: 1,
    lr: 2e-4,
    lrDecay: 1,
    weightDecay: 0,
  },
};
/** What is held out beyond tasks; measured once, at the end. `places` and `styles` are the parts of `looks`. */
export const SPLITS = ['words', 'looks', 'places', 'styles'] as const;
/** Where places and looks are both new, and each of them alone. */
const UNSEEN = ['looks', 'places', 'styles'];
const unseen = (p: VlmPlan, splits: readonly string[] = SPLITS): Pick<Experiment, 'splits' | 'episodes'> => ({
  splits,
  episodes: p.probe,
});
export const fileOf = (...parts: readonly RunFile[]): RunFile => parts.reduce((a, b) => merge(a, b) as RunFile);

const base = (p: VlmPlan, seed: number): Experiment => ({
  name: `s${seed}-base`,
  variant: 'base',
  seed,
  half: 'redo',
  file: fileOf(common(p, seed), policy(p.seeing), taught(p, p.lessons), {
    name: 'vlm-base',
    evaluation: { untrained: true },
    budget: { rollouts: 1 },
  }),
  ...unseen(p, [...SPLITS, ...UNSEEN.map((s) => `${s}-untrained`)]),
});
const reinforced = (p: VlmPlan, seed: number): Experiment => ({
  name: `s${seed}-rl`,
  variant: 'rl',
  seed,
  from: `s${seed}-base`,
  half: 'redo',
  file: fileOf(common(p, seed), policy(p.seeing), REINFORCED, {
    name: 'vlm-rl',
    budget: { minutes: p.minutes },
  }),
  ...unseen(p),
});
const imitated = (p: VlmPlan, seed: number): Experiment[] =>
  Array.from({ length: p.parts }, (_, part): Experiment => ({
    name: `s${seed}-imitation-${part + 1}`,
    variant: 'imitation',
    seed,
    from: part === 0 ? `s${seed}-base` : `s${seed}-imitation-${part}`,
    half: 'redo',
    file: fileOf(common(p, seed), policy(p.seeing), taught(p, UNTIL_TIME_IS_UP), {
      name: `vlm-imitation-${part + 1}`,
      // Lower and lower, as RL's.
      warmStart: { lr: part === 0 ? 5e-4 : 1.5e-4 },
      budget: { minutes: p.minutes / p.parts + p.demonstrating },
    }),
    // Every part is a candidate for the best that imitation comes to, where places and looks are new and where words are.
    ...(part === p.parts - 1 ? unseen(p) : unseen(p, ['words', 'looks'])),
  }));
const blind = (p: VlmPlan, seed: number): Experiment => ({
  name: `s${seed}-blind`,
  variant: 'blind',
  seed,
  half: 'redo',
  file: fileOf(common(p, seed), policy(p.seeing), taught(p, p.lessons), REINFORCED, {
    name: 'vlm-blind',
    policy: { blind: true },
    budget: { minutes: p.minutes + p.learning },
  }),
  // Its policy blanks every screen by itself (`policy.blind`).
  ...unseen(p, UNSEEN),
});
const randomClicks = (p: VlmPlan, seed: number, url: string): Experiment => ({
  name: `s${seed}-random`,
  variant: 'random',
  seed,
  half: 'redo',
  file: fileOf(common(p, seed), {
    name: 'vlm-random',
    policy: { kind: 'openai', openai: { baseUrls: [url], model: 'random', coordinates: 'relative1000', images: 1 } },
    evaluation: { untrained: true },
    budget: { rollouts: 1 },
  }),
});

/** A click on a cell of the screen, as a model says it; `x` and `y` from 0 to 1. */
export function clickOn(x: number, y: number): string {
  const at = (share: number, cells: number): number => scale(cells)[Math.min(cells - 1, Math.floor(share * cells))]!;
  return `Action: click(start_box='(${at(x, SCREEN.width / CELL)},${at(y, SCREEN.height / CELL)})')`;
}
