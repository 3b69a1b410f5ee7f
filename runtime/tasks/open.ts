import type { RunConfig } from '../config/index.js';
import {
  StudioError,
  hash32,
  id,
  type EvaluationSplit,
  type FamilyId,
  type ImageContents,
  type TaskId,
} from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { openNamedAssets } from './assets.js';
import { openEvaluators } from './bridge/evaluators.js';
import { createTaskEngine, type TaskEngineOptions } from './engine.js';
import { openFolder } from './folderSource.js';
import { metricWorkers } from './metrics/metricPool.js';
import {
  deskSuite,
  probeSeed,
  trainSeed,
  variedSeed,
  withheld,
  type DeskSuite,
  type Holdout,
  type ProbeSet,
} from './suites/desk/index.js';
import { MiniwobEngine, MiniwobSource, openPages } from './suites/miniwob/index.js';
import type { OracleSource, TaskEngine, TaskSource } from './types.js';

/** A family that the planner draws from. */
export interface TrainedFamily {
  readonly id: FamilyId;
  readonly seeds: readonly number[] | { readonly from: number; readonly count: number };
  /** The suite's own step limit. */
  readonly maxSteps?: number;
}

export interface Probe {
  readonly family: FamilyId;
  readonly seed: number;
}
export { EVALUATION_SPLITS, type EvaluationSplit } from '../domain/index.js';
export type { ProbeSet };

export interface Tasks {
  readonly source: TaskSource & Partial<OracleSource>;
  readonly engine: TaskEngine;
  /** Families trained on. */
  readonly families: readonly TrainedFamily[];
  readonly taskOf: (family: FamilyId, seed: number) => TaskId;
  /** `n` tasks for a run's own evaluations, by which it is tuned, families in turn: held out, but for those of a folder. */
  readonly probes: (n: number) => readonly Probe[];
  /**
   * The same of a split, of the tasks for reporting or for tuning, without the first `skip` of each family; empty where
   * there are none.
   */
  readonly probesOf: (split: EvaluationSplit, n: number, set?: ProbeSet, skip?: number) => readonly Probe[];
  /** Seeds of demonstrations, in order; they are training seeds. */
  readonly demoSeeds: readonly number[];
  /** Whether a text has something that is held out: reading lessons show none of it. */
  readonly withheld: (text: string) => boolean;
  /** Nothing is held out: every evaluation is of tasks that are trained. */
  readonly noneHeldOut?: true;
  /** Task files of a folder that cannot run here. */
  readonly leftOut?: number;
}

/** More families than any source has. */
const MANY = 10_000;
/** How many families have something held out so. */
export const familiesIn = (t: Pick<Tasks, 'probesOf'>, split: EvaluationSplit, set?: ProbeSet): number =>
  new Set(t.probesOf(split, MANY, set).map((p) => p.family)).size;
/** Throws where there are no tasks for tuning apart from those whose figures are reported. */
export function checkProbeSet(t: Pick<Tasks, 'probesOf'>, split: EvaluationSplit, set: ProbeSet | undefined): void {
  if (set !== 'dev') return;
  const [dev] = t.probesOf(split, 1, 'dev'),
    [test] = t.probesOf(split, 1, 'test');
  if (dev && dev.family === test?.family && dev.seed === test.seed)
    throw new StudioError(
      'config.invalid',
      `These tasks (${split}) are not divided into some for tuning and some for reporting.`,
      'Leave out --dev, or use another --split.',
    );
}

/**
 * Opens the source of tasks. Rejects with `config.invalid` for unknown families and `task.unsupported` when nothing can
 * run. `image`: what task files find in `desktops.image`. `entry`: the bundle whose workers judge; without it nothing
 * can be verified. `asked`: `tasks.families` are those that an evaluation asks for, not those of training, so splits of
 * other templates have no others either.
 */
export async function openTasks(
  c: RunConfig,
  image: ImageContents,
  entry?: ProcessEntry,
  { asked = false }: { readonly asked?: boolean } = {},
): Promise<Tasks> {
  const options = { image, metrics: entry && metricWorkers(entry), asked };
  switch (c.tasks.suite) {
    case 'desk':
      return deskTasks(c, options);
    case 'folder':
      return folderTasks(c, { ...options, evaluators: await openEvaluators() });
    case 'miniwob':
      return miniwobTasks(c);
  }
}
type EngineParts = Pick<TaskEngineOptions, 'metrics' | 'evaluators'> & {
  readonly image: ImageContents;
  readonly asked: boolean;
};

function deskTasks(c: RunConfig, parts: EngineParts): Tasks {
  const source = deskSuite({ screen: c.desktops.screen });
  const all = new Map(source.families.map((f) => [f.id as string, f]));
  const wanted =
    c.tasks.families?.map((f) => (f.startsWith('desk/') ? f : `desk/${f}`)) ??
    source.families.filter((f) => f.split === 'train' && (c.tasks.infeasible || !f.infeasible)).map((f) => f.id);
  const unknown = wanted.filter((f) => !all.has(f));
  if (unknown.length > 0)
    throw new StudioError(
      'config.invalid',
      `tasks.families: ${unknown.join(', ')}: no such family in the suite "desk"`,
      '`dart-studio tasks list` shows all families.',
    );
  if (wanted.length === 0)
    throw new StudioError(
      'config.invalid',
      'tasks.families is empty: there is nothing to train on.',
      'Name families, or leave it out for all; `dart-studio tasks list` shows them.',
    );
  const ids = wanted.map((f) => id<FamilyId>(f)),
    only = parts.asked && c.tasks.families ? new Set<string>(ids) : undefined;
  const training = c.tasks.looks === 'varied' ? variedSeed : trainSeed,
    seeds = Array.from({ length: c.tasks.trainSeeds }, (_, i) => training(i));
  return {
    source,
    engine: createTaskEngine({ ...parts, settings: { sleepMode: 'settle' }, settleMs: 0 }),
    demoSeeds: seeds,
    families: ids.map((f) => ({
      id: f,
      seeds: { from: training(0), count: c.tasks.trainSeeds },
      maxSteps: source.task(f, training(0)).maxSteps ?? c.rollout.maxSteps,
    })),
    taskOf: (f, seed) => id<TaskId>(`${f}#${seed}`),
    probes: (n) => inTurn(ids, n, (k) => probeSeed('dev', 'arrangements', k)),
    probesOf: (split, n, set = 'test', skip = 0) =>
      split === 'train'
        ? inTurn(ids, n, (k) => training(k + skip))
        : deskProbes({ source, trained: ids, only }, { split, n, set, skip }),
    withheld,
  };
}
const inTurn = (families: readonly FamilyId[], n: number, seed: (k: number) => number): Probe[] =>
  Array.from({ length: families.length === 0 ? 0 : n }, (_, i) => ({
    family: families[i % families.length]!,
    seed: seed(Math.floor(i / families.length)),
  }));
const HOLDOUT_OF: Readonly<Partial<Record<EvaluationSplit, Holdout>>> = {
  heldout: 'arrangements',
  words: 'words',
  pairs: 'pairs',
  looks: 'looks',
  near: 'near',
  places: 'places',
  styles: 'styles',
};
function deskProbes(
  { source, trained, only }: { source: DeskSuite; trained: readonly FamilyId[]; only: ReadonlySet<string> | undefined },
  {
    split,
    n,
    set,
    skip,
  }: {
    readonly split: Exclude<EvaluationSplit, 'train'>;
    readonly n: number;
    readonly set: ProbeSet;
    readonly skip: number;
  },
): Probe[] {
  if (split === 'templates' || split === 'fresh') {
    const held = source.families
      .filter((f) => f.split === 'heldout' && (f.fresh === true) === (split === 'fresh'))
      .filter((f) => only?.has(f.id) ?? true)
      .map((f) => f.id);
    return inTurn(held, n, (k) => probeSeed(set, 'arrangements', k + skip));
  }
  const holdout = HOLDOUT_OF[split]!,
    able = trained.filter((f) => source.holdouts(f).includes(holdout));
  return inTurn(able, n, (k) => probeSeed(set, holdout, k + skip));
}

/** Seeds are held out, not words or looks: what a page draws is its own affair. */
async function miniwobTasks(c: RunConfig): Promise<Tasks> {
  const pages = await openPages(c.tasks.dir!),
    source = new MiniwobSource(pages),
    all = new Set<string>(source.families.map((f) => f.id)),
    wanted = c.tasks.families?.map((f) => (f.startsWith('miniwob/') ? f : `miniwob/${f}`)) ?? [...all];
  const unknown = wanted.filter((f) => !all.has(f));
  if (unknown.length > 0)
    throw new StudioError(
      'config.invalid',
      `tasks.families: ${unknown.join(', ')}: no such page in ${pages.root}`,
      '`dart-studio tasks check DIR` lists them.',
    );
  const ids = wanted.map((f) => id<FamilyId>(f)),
    seeds = Array.from({ length: c.tasks.trainSeeds }, (_, i) => trainSeed(i));
  return {
    source,
    engine: new MiniwobEngine(pages, (task, said) => {
      source.said(task, said);
    }),
    withheld: () => false,
    demoSeeds: seeds,
    families: ids.map((f) => ({ id: f, seeds: { from: trainSeed(0), count: c.tasks.trainSeeds } })),
    taskOf: (f, seed) => id<TaskId>(`${f}#${seed}`),
    probes: (n) => pageByPage(inTurn(ids, n, (k) => probeSeed('dev', 'arrangements', k))),
    probesOf: (split, n, set = 'test', skip = 0) =>
      split === 'train'
        ? pageByPage(inTurn(ids, n, (k) => trainSeed(k + skip)))
        : split === 'heldout'
          ? pageByPage(inTurn(ids, n, (k) => probeSeed(set, 'arrangements', k + skip)))
          : [],
  };
}

/** A browser that stays on its page begins the next episode in a tenth of the time. */
function pageByPage(probes: readonly Probe[]): Probe[] {
  const pages = new Map<FamilyId, Probe[]>();
  for (const p of probes) {
    const same = pages.get(p.family);
    if (same) same.push(p);
    else pages.set(p.family, [p]);
  }
  return [...pages.values()].flat();
}

async function folderTasks(c: RunConfig, parts: EngineParts): Promise<Tasks> {
  const assets = c.tasks.assets ? await openNamedAssets(c.tasks.assets) : undefined;
  const folder = await openFolder(c.tasks.dir!, { ...parts, assets });
  // A `sleep` of a task file is a wait for programs to be done, which can be seen; the file's own time is the bound.
  const engine = createTaskEngine({ ...parts, assets, settings: { sleepMode: 'settle' } });
  const wanted = c.tasks.families;
  const able = folder.families.filter((f) => engine.check(folder.task(f.id, 0)).length === 0),
    usable = able.filter((f) => (c.tasks.infeasible || !f.infeasible) && (!wanted || wanted.includes(f.id)));
  if (usable.length === 0)
    throw new StudioError(
      'task.unsupported',
      `No task in ${c.tasks.dir} can run here.`,
      '`dart-studio tasks check DIR` says what each of them needs.',
    );
  return {
    source: folder,
    engine,
    demoSeeds: [],
    families: usable.map((f) => ({ id: f.id, seeds: [0] })),
    taskOf: (f) => folder.task(f, 0).id,
    // A folder has nothing held out: evaluations are of the tasks that are trained (runtime/tasks/README.md#splits).
    probes: (n) => ofFolder(usable, n),
    probesOf: (split, n) => (split === 'train' || split === 'heldout' ? ofFolder(usable, n) : []),
    withheld: () => false,
    noneHeldOut: true,
    leftOut: folder.skipped.length + folder.families.length - able.length,
  };
}
/** Ordered by a hash of their names: in the order of paths, the first would all be those of one application. */
const ofFolder = (usable: readonly { readonly id: FamilyId }[], n: number): Probe[] =>
  inTurn(
    usable
      .map((f) => ({ id: f.id, place: hash32(f.id) }))
      .sort((a, b) => a.place - b.place || (a.id < b.id ? -1 : 1))
      .map((f) => f.id),
    n,
    () => 0,
  );
