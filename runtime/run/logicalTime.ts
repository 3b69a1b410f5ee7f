import { LOGICAL_ROLLOUT_MS, LOGICAL_STEP_MS, type Outcome, type Step, type Trajectory } from '../domain/index.js';

/**
 * The clock of a deterministic run: it counts rollouts and steps, and work takes no time, so that what is trained and
 * recorded does not depend on the machine's speed. The journal's records have the real times (`timesOf`).
 */
export const logicalStep = (s: Step): Step => ({
  ...s,
  timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
  ...(s.progress ? { progress: { ...s.progress, ms: 0 } } : {}),
});

/** The trajectory in logical time: rollouts follow one another by their numbers, demonstrations come first. */
export function logicalTrajectory(t: Trajectory): Trajectory {
  const ofRollout = t.provenance.kind === 'rollout' || t.provenance.kind === 'hindsight',
    number = ofRollout ? Number(/\d+$/.exec(t.id)?.[0] ?? 0) : 0,
    startedAt = number * LOGICAL_ROLLOUT_MS;
  return {
    ...t,
    steps: t.steps.map(logicalStep),
    outcome: logicalOutcome(t.outcome),
    startedAt,
    endedAt: startedAt + t.steps.length * LOGICAL_STEP_MS,
    resetMs: 0,
    verifyMs: 0,
    ...(t.hindsight ? { hindsight: { ...t.hindsight, ms: 0 } } : {}),
  };
}

/** The outcome without the times of its checks. */
function logicalOutcome(o: Outcome): Outcome {
  if (o.kind === 'error' || !o.report) return o;
  const checks = o.report.checks.map((c) => (c.judge ? { ...c, judge: { ...c.judge, ms: 0 } } : c));
  return { ...o, report: { ...o.report, checks } };
}
