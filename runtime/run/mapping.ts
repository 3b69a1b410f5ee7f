import type { RunConfig } from '../config/index.js';
import { StudioError, id, type FamilyId, type TaskId } from '../domain/index.js';
import type { DataConfig } from '../data/config.js';
import type { PlannerFamily } from '../data/planner.js';
import type { GateOptions } from '../rollout/regime.js';
import { createTaskEngine, openAssets, openFolder } from '../tasks/index.js';
import { deskSuite, heldoutSeed, quickstartFamilies, trainSeed } from '../tasks/suites/desk/index.js';
import type { OracleSource, TaskEngine, TaskSource } from '../tasks/types.js';
import type { TrainerSetup } from '../trainer/native/engine.js';

/** The run file's options as each module takes them: under the same names, with what follows from other options. */

export function dataConfig(c: RunConfig): DataConfig {
  const { curation: k, rollout, trainer } = c;
  return {
    ...k,
    dynamicLength: { ...k.dynamicLength, global: rollout.maxSteps, window: 64 },
    groupFilter: { ...k.groupFilter, maxSize: k.dynamicRollouts.max, minSize: 2 },
    // Nothing trains a remote policy: a bound that waits for updates would stop its rollouts.
    staleness: {
      enabled: k.staleness.enabled && c.policy.kind === 'embedded',
      eta: k.staleness.eta,
      perUpdate: trainer.batchGroups * k.dynamicRollouts.max,
      groupsPerUpdate: trainer.batchGroups,
    },
    planner: {
      seed: c.seed,
      planner: k.planner,
      uncertainty: k.uncertainty,
      pilot: k.pilot,
      retries: rollout.retries,
    },
  };
}

/**
 * Barrier between rollouts. Without a trainer nothing ends a batch; a batch larger than the staleness bound admits
 * would never be full.
 */
export function gateOptions(c: RunConfig): GateOptions {
  const { batchGroups } = c.trainer,
    { enabled, eta } = c.curation.staleness,
    wanted = c.rollout.batchGroups || batchGroups;
  const regime = c.policy.kind !== 'embedded' && c.rollout.regime === 'batch' ? 'rollout' : c.rollout.regime;
  return { regime, slots: c.desktops.count, groups: enabled ? Math.min(wanted, (eta + 1) * batchGroups) : wanted };
}

export function trainerOptions(c: RunConfig, exportDir: string): TrainerSetup['options'] {
  const { trainer: t } = c;
  return {
    algorithm: t.algorithm,
    epsLow: t.epsLow,
    epsHigh: t.epsHigh,
    dualClip: t.dualClip,
    tis: t.tis,
    klBeta: t.klBeta,
    entropyBonus: t.entropyBonus,
    imitationCoef: t.imitationCoef,
    temperature: c.policy.temperature,
    lr: t.lr,
    weightDecay: t.weightDecay,
    gradClip: t.gradClip,
    minibatchStates: t.minibatchStates,
    threads: t.threads,
    readingCoef: c.warmStart.reading.coef,
    exportDir,
  };
}

export interface Tasks {
  readonly source: TaskSource & Partial<OracleSource>;
  readonly engine: TaskEngine;
  /** Families trained on. */
  readonly families: readonly PlannerFamily[];
  readonly taskOf: (family: FamilyId, seed: number) => TaskId;
  /** `n` held-out tasks, families in turn. */
  readonly probes: (n: number) => readonly { readonly family: FamilyId; readonly seed: number }[];
  /** Seeds of demonstrations, in order; they are training seeds. */
  readonly demoSeeds: readonly number[];
}

/**
 * Where tasks come from. Rejects with `config.invalid` for unknown families and `task.unsupported` when nothing can
 * run.
 */
export async function openTasks(c: RunConfig): Promise<Tasks> {
  return c.tasks.suite === 'desk' ? deskTasks(c) : folderTasks(c);
}

function deskTasks(c: RunConfig): Tasks {
  const source = deskSuite({ screen: c.desktops.screen });
  const all = new Map(source.families.map((f) => [f.id as string, f]));
  const wanted =
    c.tasks.families?.map((f) => (f.startsWith('desk/') ? f : `desk/${f}`)) ??
    (c.preset === 'quickstart'
      ? quickstartFamilies
      : source.families.filter((f) => f.split === 'train' && (c.tasks.infeasible || !f.infeasible)).map((f) => f.id));
  const unknown = wanted.filter((f) => !all.has(f));
  if (unknown.length > 0)
    throw new StudioError(
      'config.invalid',
      `tasks.families: ${unknown.join(', ')}: no such family in the suite "desk"`,
      '`dart-studio tasks list` shows the families there are.',
    );
  const ids = wanted.map((f) => id<FamilyId>(f));
  const seeds = Array.from({ length: c.tasks.trainSeeds }, (_, i) => trainSeed(i));
  return {
    source,
    engine: createTaskEngine({ settings: { sleepMode: 'settle' }, settleMs: 0 }),
    demoSeeds: seeds,
    families: ids.map((f) => ({
      id: f,
      seeds: { from: trainSeed(0), count: c.tasks.trainSeeds },
      maxSteps: source.task(f, trainSeed(0)).maxSteps ?? c.rollout.maxSteps,
    })),
    taskOf: (f, seed) => id<TaskId>(`${f}#${seed}`),
    probes: (n) =>
      Array.from({ length: n }, (_, i) => ({
        family: ids[i % ids.length]!,
        seed: heldoutSeed(Math.floor(i / ids.length)),
      })),
  };
}

async function folderTasks(c: RunConfig): Promise<Tasks> {
  const assets = c.tasks.assets ? await openAssets(c.tasks.assets) : undefined;
  const folder = await openFolder(c.tasks.dir!, assets ? { assets } : {});
  const engine = createTaskEngine(assets ? { assets } : {});
  const wanted = c.tasks.families;
  const usable = folder.families.filter(
    (f) =>
      engine.check(folder.task(f.id, 0)).length === 0 &&
      (c.tasks.infeasible || !f.infeasible) &&
      (!wanted || wanted.includes(f.id)),
  );
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
    // A folder has no seeds to hold out: the probe set is the tasks themselves, and evaluation says so.
    probes: (n) => Array.from({ length: n }, (_, i) => ({ family: usable[i % usable.length]!.id, seed: 0 })),
  };
}
