import type { Experiment } from '../lib/experiments.js';
import { REGIMES } from '../schedule/arrangements.js';
import { FAMILY, fileOf, policy, type Engine } from '../vlm/plan.js';
import { BASE, inTurns, syncOf, type LivePlan } from './plan.js';

/** What a model of 7 B would take, fixed beforehand; the processor is hardly used meanwhile. */
export const DECODE_SECONDS = [2, 6] as const;
export const UPDATE_SECONDS = 10;
export const DESKTOPS = 16;
export const GROUPS = 4;
export const REPLICAS = 2;
/** Calls that a replica takes at once: all desktops. */
const CONCURRENCY = DESKTOPS;
/** Of a short look. */
const QUICK_ROLLOUTS = 6;

export interface SlowPlan extends LivePlan {
  /** The engine itself, where the policy learns to begin with. */
  readonly engine: Engine;
  /** Where it is as slow as a large model: the trainer's address first, then one for each replica. */
  readonly slow: readonly string[];
}

/**
 * A tiny vision-language model that acts and learns as slowly as a large one: one warm start at full speed, then the
 * regimes in turn. Episodes have up to eight clicks, and so very different lengths.
 */
export function slowPlan(p: SlowPlan): Experiment[] {
  const shared = fileOf(policy(p.engine), {
      seed: p.seed,
      tasks: { families: [FAMILY] },
      desktops: { count: p.quick ? 2 : DESKTOPS, screen: { width: 640, height: 400 } },
      rollout: { maxSteps: p.quick ? 2 : 8 },
      evaluation: { episodes: 0, untrained: false, everyMinutes: 0 },
      curation: {
        dynamicRollouts: { enabled: false, max: 8 },
        dynamicLength: { enabled: false },
        pool: { enabled: false },
        highEntropy: { enabled: false },
      },
      trainer: {
        batchGroups: p.quick ? 1 : GROUPS,
        epochs: 1,
        minibatchStates: 0,
        replay: 0,
        lr: 5e-4,
        weightDecay: 0,
      },
    }),
    base: Experiment = {
      name: BASE,
      variant: BASE,
      seed: p.seed,
      half: 'redo',
      file: fileOf(shared, {
        name: 'live-vlm-base',
        // It has to see that the dialog is gone, and still be unsure where to click: two thirds of its rollouts succeed,
        // and three groups of four have both outcomes. After 1,600 steps nine of ten do, and hardly a group is trained on.
        warmStart: { demonstrations: p.quick ? 2 : 48, steps: p.quick ? 4 : 400, lr: 1e-3 },
        budget: { rollouts: 1 },
      }),
    },
    compared = REGIMES.filter((r) => p.regimes.includes(r.name)),
    [trainer, ...replicas] = p.slow;
  // Desktops start one after another, and the first answers come together.
  const warmupMs = p.quick ? 1000 : 30_000;
  const turns = inTurns({ ...p, order: 'live-vlm', regimes: compared, warmupMs }, (r) =>
    fileOf(shared, {
      name: `live-vlm-${r.name}`,
      policy: {
        sync: syncOf(r),
        vlm: {
          model: p.engine.model,
          endpoints: replicas.map((u) => `${u}/v1`),
          concurrency: CONCURRENCY,
          // It spells its last answer letter by letter.
          maxTokens: 32,
        },
      },
      trainer: { remote: { url: trainer } },
      rollout: { regime: r.regime },
      // The probe before a run counts toward its minutes: a short look takes what it came for.
      budget: p.quick ? { rollouts: QUICK_ROLLOUTS } : { minutes: p.minutes },
    }),
  );
  return [base, ...turns];
}
