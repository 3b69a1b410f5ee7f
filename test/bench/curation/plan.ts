import { createHash } from 'node:crypto';
import type { RunFile } from '../../../runtime/config/index.js';
import { merge } from '../../../runtime/config/index.js';
import { random } from '../../../runtime/domain/index.js';
import type { Experiment } from '../lib/experiments.js';
import { halfWidths } from './additive.js';
import { SEEDS_OF_A_DESIGN, levelsOf } from './design.js';
import { isNested, NOTHING, switches, type Levels, type Mechanism } from './mechanisms.js';

export interface CurationPlan {
  readonly seeds: readonly number[];
  /** Those that are switched, without `NOTHING`. */
  readonly mechanisms: readonly Mechanism[];
  /** Of a run: its start and demonstrations counted, measuring not. */
  readonly minutes: number;
  /** Episodes on unseen words and on other arrangements of known ones, of the sets for reporting. */
  readonly words: number;
  readonly heldout: number;
  readonly quick: boolean;
}
/** One evaluation of the policy that a run ended with: its name, and the arguments of `evaluate`. */
export interface Measure {
  readonly name: string;
  readonly args: readonly string[];
}
export type Part = 'design' | 'pair';
export interface Planned {
  readonly experiment: Experiment;
  readonly measures: readonly Measure[];
  /** Of a run of the design, or of a row that stands beside it; a starting policy has none. */
  readonly levels?: Levels;
  /** Whether it is in the model: as a run of the design, or for what it differs by from the other `pair` of its seed. */
  readonly part?: Part;
}

/**
 * Templates whose scripted solutions take 5 to 12 steps, `finished` counted, and that need to see: windows have no
 * fixed place and what is asked for stands on the screen, the blanked policy of `--preset desk` solves none of them, and of
 * those that a policy was trained blind on (`wizard`) it solved none either. Left out: what keys alone can do (`term-list`,
 * `term-four`, `note-copy`, `calc-to-note`), what names nothing that could be unseen (`note-clear-quit`), what an hour does
 * not teach (`calc-click`, `cell-two`: 0 of 10 and of 15), what it teaches whole (`file-copy`: 11 of 11), what the starting
 * policy solves whole (`form-register`, `form-secret`), and two that it hardly solves and that runs hardly learned
 * (`file-cut`, `file-edit`: 6 % and 0 %, then 6 % and 9 %).
 */
const FAMILIES = ['press-four', 'form-two', 'wizard', 'survey', 'file-paste', 'term-note'];
/** `survey` takes 12. */
const MOST_STEPS = 16;
/** Of each template, half of the quick start's. */
const DEMONSTRATIONS = 3;
/** Imitation steps of the starting policy: as many for each template as in the quick start, of longer tasks. */
const WEAK = 250;
/**
 * Of imitation alone: as many as fit into the minutes of a run at an eighth of a second each, after its start. They take
 * less by now (160 to 214 of 300 s, as recorded), and stay until the design is whole: a plan has one number of them.
 */
const imitationSteps = (minutes: number): number => Math.max(1, Math.round(((minutes * 60 - 25) * 8) / 10) * 10);
/** The control that needs no policy comes out at none; a few episodes say so. */
const RANDOM_EPISODES = 80;

export const startOf = (seed: number): string => `s${seed}-start`;
/** Everything that the design switches. */
export const columnsOf = (p: Pick<CurationPlan, 'mechanisms'>): readonly Mechanism[] => [...p.mechanisms, NOTHING];

interface Reference {
  readonly name: string;
  readonly label: string;
  readonly on: readonly string[];
  readonly part?: 'pair';
}
/**
 * What stands beside the runs of the design, from the same starting policy, for the same minutes but for imitation. Hindsight acts in a
 * quarter of the design's runs only: a pair of its own for each seed, which differs in nothing else, tells more of it.
 */
export const REFERENCES: readonly Reference[] = [
  { name: 'imitation', label: 'imitation alone', on: [] },
  { name: 'none', label: 'reinforcement learning without curation', on: [] },
  { name: 'pool', label: 'experience pool alone, injected and imitated', on: ['pool', 'replay'], part: 'pair' },
  { name: 'hindsight', label: 'the same with hindsight', on: ['pool', 'replay', 'hindsight'], part: 'pair' },
];
/** Those whose mechanisms this version has. */
const referencesOf = (p: CurationPlan): readonly Reference[] =>
  REFERENCES.filter((r) => r.on.every((name) => p.mechanisms.some((m) => m.name === name)));

/**
 * Seed by seed: its starting policy, then its twelve runs of the design and the rows that stand beside them, in random
 * order, so that what drifts hits each alike.
 */
export function curationPlan(p: CurationPlan): readonly Planned[] {
  return p.seeds.flatMap((seed) => {
    const runs = p.quick ? quickRuns(p) : levelsOf(seed, columnsOf(p)),
      design = runs.map((levels, k) => designRun(p, seed, `run-${String(k + 1).padStart(2, '0')}`, levels)),
      beside = p.quick ? [] : referencesOf(p).map((r) => reference(p, seed, r));
    return [start(p, seed), ...random(`curation/${seed}`).shuffle([...design, ...beside])];
  });
}
/** Everything on, and everything off: each key is tried. */
const quickRuns = (p: CurationPlan): readonly Levels[] =>
  [true, false].map((on) => Object.fromEntries(columnsOf(p).map((m) => [m.name, on])));

/** Names the plan, whatever seeds are asked for: runs of different plans are not put into one table. */
export const planId = (p: CurationPlan): string =>
  createHash('sha256')
    .update(JSON.stringify(curationPlan({ ...p, seeds: seedsTo(SEEDS_OF_A_DESIGN) })))
    .digest('hex')
    .slice(0, 12);

const seedsTo = (n: number): readonly number[] => Array.from({ length: n }, (_, k) => k + 1);

const shared = (p: CurationPlan, seed: number, name: string): RunFile => ({
  name: `curation-${name}`,
  seed,
  tasks: { families: p.quick ? ['press-button', 'list-pick'] : FAMILIES },
  desktops: { count: 6 },
  rollout: { maxSteps: MOST_STEPS },
  evaluation: { episodes: 0, untrained: false, everyMinutes: 0 },
});
const on = (split: string, episodes: number, ...how: readonly string[]): Measure => ({
  name: [split, ...how.map((x) => x.replace(/^--/, ''))].join('-'),
  args: ['--split', split, '--episodes', String(episodes), ...how],
});
const measuresOf = (p: CurationPlan): readonly Measure[] =>
  p.quick ? [on('heldout', 4)] : [on('words', p.words), on('heldout', p.heldout)];

/** Reading as in the quick start, and little of what to do. */
function start(p: CurationPlan, seed: number): Planned {
  return {
    measures: p.quick ? [] : [...measuresOf(p), on('words', RANDOM_EPISODES, '--random')],
    experiment: {
      name: startOf(seed),
      variant: 'start',
      seed,
      half: 'redo',
      file: {
        ...shared(p, seed, 'start'),
        budget: { rollouts: 1 },
        warmStart: p.quick
          ? { demonstrations: 2, steps: 20, lr: 2e-3 }
          : {
              reading: { screens: 480, steps: 1600, lr: 4e-3 },
              demonstrations: DEMONSTRATIONS,
              steps: WEAK,
              lr: 2e-3,
              shift: 16,
              tones: 0.5,
            },
      },
    },
  };
}

/**
 * One run from a seed's starting policy. Demonstrations, the same as that policy's, are made in every run, also where
 * nothing uses them: only then are the pool and imitation switched by themselves, in the same time.
 */
function later(p: CurationPlan, seed: number, name: string, file: RunFile): Experiment {
  return {
    name: `s${seed}-${name}`,
    variant: name,
    seed,
    from: startOf(seed),
    half: 'redo',
    file: merge(
      {
        ...shared(p, seed, name),
        policy: { temperature: 0.6 },
        budget: p.quick ? { rollouts: 12 } : { minutes: p.minutes },
        warmStart: { demonstrations: p.quick ? 0 : DEMONSTRATIONS, steps: 0, shift: 16, tones: 0.5 },
        trainer: {
          batchGroups: p.quick ? 1 : 3,
          epochs: 2,
          minibatchStates: 24,
          lr: 5e-4,
          lrDecay: 0.7,
          entropyBonus: 0.002,
          imitationCoef: 0.3,
          replayVaried: true,
        },
      } satisfies RunFile,
      file,
    ) as RunFile,
  };
}

const designRun = (p: CurationPlan, seed: number, name: string, levels: Levels): Planned => ({
  part: 'design',
  levels,
  measures: measuresOf(p),
  experiment: later(p, seed, name, switches(p.mechanisms, levels)),
});

function reference(p: CurationPlan, seed: number, r: Reference): Planned {
  const levels = Object.fromEntries(r.on.map((name) => [name, true])),
    imitates = r.name === 'imitation',
    // Ends with imitation where that takes less than all of the time.
    file: RunFile = imitates
      ? { warmStart: { steps: imitationSteps(p.minutes), lr: 2e-3 }, budget: { rollouts: 1 } }
      : switches(p.mechanisms, levels);
  return {
    ...(r.part ? { part: r.part } : {}),
    ...(imitates ? {} : { levels }),
    measures: [...measuresOf(p), ...(r.name === 'pool' ? [on('words', p.words, '--blind')] : [])],
    experiment: later(p, seed, r.name, file),
  };
}

/**
 * Version 0.1's record: a run scattered by 6.8 points about its model, of which 4.7 came from its 96 probe episodes. The
 * rest is training's, and stays.
 */
const RECORDED = { scatter: 6.8, sampling: 4.7, episodes: 96 };
/** By how many points a run is expected to scatter that is measured on so many episodes. */
export const expectedScatter = ({ words }: Pick<CurationPlan, 'words'>): number =>
  Math.sqrt(RECORDED.scatter ** 2 - RECORDED.sampling ** 2 + (RECORDED.sampling ** 2 * RECORDED.episodes) / words);

/** Points of success that count: an effect is told from none, or from this. */
export const RELEVANT = 8;

/** What runs share a level with in the model. */
export const levelBlock = (seed: number, part: Part, code = ''): string => `${seed}/${part}/${code}`;

/** Half the width of effects' intervals after these seeds, in points; `within`: of those that act only beside another. */
export function resolution(
  p: CurationPlan,
  seeds: readonly number[],
  scatter = expectedScatter(p),
): { readonly half: number; readonly within: number } {
  const columns = columnsOf(p),
    runs = curationPlan({ ...p, seeds, quick: false }).flatMap(({ experiment: { seed }, part, levels }) =>
      part && levels ? [{ block: levelBlock(seed, part), levels }] : [],
    ),
    halves = halfWidths(runs, columns, scatter),
    widest = (nested: boolean): number => Math.max(0, ...halves.filter((_, k) => isNested(columns[k]!) === nested));
  return { half: widest(false), within: widest(true) };
}

/** How many seeds, whole pairs of blocks, tell an effect of `RELEVANT` points from none whatever it comes to. */
export function seedsThatResolve(p: CurationPlan, scatter = expectedScatter(p)): number {
  for (let n = 2; n <= 32; n += 2) if (resolution(p, seedsTo(n), scatter).half <= RELEVANT / 2) return n;
  return Infinity;
}

/**
 * Seconds on two cores, from records of this version: a start with six desktops, an episode of eight steps at sixteen steps
 * a second (bench:blind) and one that runs into its limit, a reading lesson, an imitation step.
 */
const SECONDS = { begin: 8, episode: 0.5, lost: 0.8, lesson: 0.13, step: 0.13, demonstration: 0.7 };

/** Minutes that a run is expected to take, measuring counted. */
export function minutesOf({ experiment, measures }: Planned): number {
  const { budget, warmStart, tasks } = experiment.file,
    taught =
      (warmStart?.reading?.steps ?? 0) * SECONDS.lesson +
      (warmStart?.steps ?? 0) * SECONDS.step +
      (warmStart?.demonstrations ?? 0) * (tasks?.families?.length ?? 0) * SECONDS.demonstration,
    trained = budget?.minutes === undefined ? taught + SECONDS.begin : 60 * budget.minutes + SECONDS.begin,
    measured = measures.map(
      ({ args }) =>
        SECONDS.begin +
        Number(args[args.indexOf('--episodes') + 1]) * (args.length > 4 ? SECONDS.lost : SECONDS.episode),
    );
  return (trained + measured.reduce((a, b) => a + b, 0)) / 60;
}
