import type { RunStatus } from '../domain/index.js';

/** A run's own measurements, in the symbols of runtime/rollout/README.md#throughput-bound. */
export interface Measured {
  /** N and mean T: seconds a desktop spends on a rollout, reset and verdict included. */
  readonly desktops: number;
  readonly rolloutSeconds: number;
  /** L: mean steps of a rollout. */
  readonly steps: number;
  /** G and mu: decisions a second that one replica can make. */
  readonly replicas: number;
  readonly decisionsPerSecond: number;
  /**
   * B, T_tr and alpha: trajectories per update, seconds per update, share of rollouts that survive curation. Absent
   * before the first update.
   */
  readonly trainer?: { readonly perUpdate: number; readonly seconds: number; readonly share: number };
  /** Trained steps per rollout generated. */
  readonly trainedPerRollout: number;
  /** T and L of the newest rollouts, over which the rates beside a bound are measured. */
  readonly newest?: Pick<Measured, 'rolloutSeconds' | 'steps'>;
}

type Limit = [by: NonNullable<RunStatus['bounds']>['by'], perSecond: number];

/**
 * X* = min(N/T, G mu/L, B/(alpha T_tr)) rollouts a second, as the three rates that the dashboard shows; undefined until
 * enough is measured. The trainer's bound counts from the start of reinforcement learning.
 */
export function bounds(m: Measured): RunStatus['bounds'] {
  if (!(m.rolloutSeconds > 0) || !(m.steps > 0)) return undefined;
  const now = { ...m, ...m.newest },
    [by, x] = least(now);
  return {
    rolloutsPerHour: x * 3600,
    stepsPerMinute: x * now.steps * 60,
    trainedActionsPerMinute: least(m)[1] * m.trainedPerRollout * 60,
    by,
  };
}
function least(m: Measured): Limit {
  const limits: Limit[] = [['desktops', m.desktops / m.rolloutSeconds]];
  if (m.replicas > 0 && m.decisionsPerSecond > 0)
    limits.push(['replicas', (m.replicas * m.decisionsPerSecond) / m.steps]);
  const t = m.trainer;
  if (t && t.seconds > 0 && t.share > 0) limits.push(['trainer', t.perUpdate / (t.share * t.seconds)]);
  return limits.reduce((a, b) => (b[1] < a[1] ? b : a));
}
