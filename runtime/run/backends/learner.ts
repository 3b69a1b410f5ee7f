import {
  StudioError,
  toRunError,
  type LearnBatch,
  type LearnStep,
  type PolicyVersion,
  type RolloutId,
  type StepSample,
  type TrainBatch,
  type Trajectory,
} from '../../domain/index.js';
import type { SyncReport } from '../../policy/types.js';
import type { TrainerEngine, UpdateReport } from '../../trainer/types.js';
import type { Learner } from './types.js';

/** Turns the steps of trajectories into what one kind of trainer takes. */
export interface SampleSource<S extends StepSample> {
  expressible(t: Trajectory, step: number): boolean;
  /** The sample of a step that is expressible. */
  sampleOf(step: LearnStep): Promise<S>;
}

/** A trainer, and who says what its samples are, as one learner; `publish` takes weights of one version to the replicas. */
export function learnerOf<S extends StepSample, W extends { readonly version: PolicyVersion }>(d: {
  readonly trainer: TrainerEngine<S, W>;
  readonly source: SampleSource<S>;
  readonly publish: (weights: W) => Promise<SyncReport>;
}): Learner {
  const { trainer, source, publish } = d;
  const { imitate } = trainer;
  /** Since the last lesson was asked for; a trainer that has not begun it yet forgets that it was interrupted. */
  let interrupted = false;
  const sampled = async ({ steps, ...batch }: LearnBatch, enough = (): boolean => false): Promise<TrainBatch<S>> => {
    const samples: S[] = [];
    for (const step of steps) {
      if (enough()) break;
      samples.push(
        await source.sampleOf(step).catch((e: unknown) => {
          throw unreadable(step, e);
        }),
      );
    }
    return { ...batch, samples };
  };
  const learner: Learner = {
    expressible: (t, step) => source.expressible(t, step),
    update: async (b): Promise<UpdateReport> => trainer.update(await sampled(b)),
    async snapshot() {
      const weights = await trainer.exportWeights();
      return { version: weights.version, publish: () => publish(weights) };
    },
    checkpoint: () => trainer.checkpoint(),
    interrupt() {
      interrupted = true;
      trainer.interrupt();
    },
  };
  if (!imitate) return learner;
  return {
    ...learner,
    async imitate(b, o) {
      interrupted = false;
      const batch = await sampled(b, () => interrupted),
        lesson = imitate.call(trainer, batch, o);
      if (interrupted) trainer.interrupt();
      return lesson;
    },
  };
}

/** Damage on disk says whose trajectory it is; any other error is passed on. */
function unreadable({ trajectory: { id: rollout }, step }: LearnStep, e: unknown): unknown {
  const { kind, message, remedy, details } = toRunError(e);
  return kind === 'store.damaged'
    ? new StudioError(kind, `Step ${step} of trajectory ${rollout} cannot be read back: ${message}`, remedy, {
        cause: e,
        details: { ...details, rollout },
      })
    : e;
}
/** The rollout whose unreadable trajectory made a lesson fail; undefined for every other error. */
export function unreadableTrajectory(e: unknown): RolloutId | undefined {
  const { kind, details } = toRunError(e);
  return kind === 'store.damaged' ? (details?.['rollout'] as RolloutId | undefined) : undefined;
}
/** Rollouts that a trainer cannot train. */
export interface Untrainable {
  readonly rollouts: readonly RolloutId[];
  /** The fault is theirs: it takes others. */
  readonly theirs: boolean;
}
/** Those that an error of a trainer names; none for every other error. */
export function untrainable(e: unknown): Untrainable {
  const { kind, details } = toRunError(e),
    rollouts = kind === 'trainer.invalid' ? (details?.['untrainable'] as readonly RolloutId[] | undefined) : undefined;
  return { rollouts: rollouts ?? [], theirs: details?.['theirs'] === true };
}

/** The fields that every sample has of its step, whatever the backend. */
export function creditOf({
  trajectory,
  step,
  kind,
  advantage,
  weight,
  coefficient,
  precollected,
}: LearnStep): StepSample {
  const { version, tokens, origin } = trajectory.steps[step]!;
  return {
    rollout: trajectory.id,
    step,
    kind,
    advantage,
    weight,
    coefficient,
    version: origin === 'policy' ? version : undefined,
    rolloutLogprobs: kind === 'policy' && !precollected ? tokens?.logprobs : undefined,
  };
}
