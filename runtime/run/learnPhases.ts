import type { EvaluationPhases } from './evaluationPhases.js';
import { demonstrations, readingLessons, warmStart } from './lessons.js';
import type { RunParts } from './parts.js';
import type { Reinforcement } from './reinforcement.js';
import { withoutDamage } from './startWeights.js';
import { unlessOverdue, type StopSignals } from './stopping.js';

export interface LearnPhases {
  /** Runs one of them, unless the run is ending. */
  readonly phase: (name: string, work: () => Promise<void>) => Promise<void>;
  readonly evaluations: EvaluationPhases;
  readonly reinforcement: Reinforcement;
  readonly stop: StopSignals;
}

/**
 * Everything that a run learns, in order. It starts again from the top when weights were lost on disk and in the
 * trainer at once: each phase then does what is left of it, as in a resumed run.
 */
export async function learnPhases(parts: RunParts, d: LearnPhases): Promise<void> {
  for (let r = parts; ;) {
    const now = r;
    try {
      await d.phase('reading lessons', () => readingLessons(now));
      await d.phase('demonstrations', () => demonstrations(now));
      await d.phase('the warm start', () => warmStart(now));
      await d.phase('the evaluation of the warm start', () => d.evaluations.warmStart());
      await d.phase('reinforcement learning', () => d.reinforcement.run(now, d.evaluations));
      return;
    } catch (e) {
      r = await unlessOverdue('going on from an older checkpoint', withoutDamage(now, e), d.stop);
    }
  }
}
