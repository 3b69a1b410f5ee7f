import type { Series } from '../../../../runtime/protocol/types.js';
import { clamp, gauss, type Course } from './course.js';

/** Everything that is recorded with each update. */
export function seriesOf({ r, createdAt, warm, now, train, version, perHour, hard }: Course): Series[] {
  const updates = Array.from(
    { length: Math.min(2000, Math.max(1, version - 2)) },
    (_, i, a = Math.min(2000, Math.max(1, version - 2))) => createdAt + warm + (train * (i + 1)) / a,
  );
  const series: Series[] = [],
    add = (name: string, at: readonly number[], value: (t: number, i: number) => number): void => {
      series.push({ name, at, value: at.map(value) });
    };
  add('run.rolloutsPerHour', updates, (t) =>
    clamp(perHour + 2600 * Math.sin(t / 70_000) + gauss(r) * 700, 14_000, 26_000),
  );
  add('run.stepsPerMinute', updates, (t) => 1240 + 110 * Math.sin(t / 70_000) + gauss(r) * 40);
  add('run.trainedActionsPerMinute', updates, (_, i) => 780 - 150 * (1 - Math.exp(-i / 15)) + gauss(r) * 6);
  add('run.desktopUtilisation', updates, (_, i) => 0.73 + 0.02 * Math.exp(-i / 9) + gauss(r) * 0.002);
  add('run.replicaUtilisation', updates, (_, i) => 0.17 + 0.1 * Math.exp(-i / 4));
  add('run.trainerUtilisation', updates, (_, i) => 0.8 - 0.25 * Math.exp(-i / 5));
  add('run.boundRolloutsPerHour', updates, (_, i) => 29_200 + 3000 * Math.exp(-i / 20));
  add('run.boundStepsPerMinute', updates, (_, i) => 1710 + 200 * Math.exp(-i / 20));
  add('run.boundTrainedActionsPerMinute', updates, (_, i) => 705 + 140 * Math.exp(-i / 20));
  add('run.success', updates, (t) => hard(t));
  add('run.errors', updates, () => 0);
  add('run.elapsedMs', updates, (t) => t - createdAt);
  add('update.loss', updates, (_, i) => 0.026 + 0.02 * Math.exp(-i / 20) + gauss(r) * 0.016);
  add('update.policyLoss', updates, () => -0.006 + gauss(r) * 0.014);
  add('update.imitationLoss', updates, (_, i) => 0.026 + 0.05 * Math.exp(-i / 10) + Math.abs(gauss(r)) * 0.006);
  add('update.entropy', updates, (_, i) => 0.34 + 0.34 * Math.exp(-i / 25) + gauss(r) * 0.03);
  add('update.gradNorm', updates, () => 2.58 + gauss(r) * 0.34);
  add('update.lr', updates, (t) => 3e-4 * (t - createdAt < (now - createdAt) * 0.6 ? 1 : 0.4));
  add('update.ms', updates, () => 8250 + gauss(r) * 900);
  add('update.klK3', updates, () => (r() < 0.04 ? Math.exp(3 + r() * 7) : 0.05 + Math.abs(gauss(r)) * 0.06));
  add('update.klK1', updates, () => -0.09 + gauss(r) * 0.05);
  add('update.refKl', updates, () => 0);
  add('update.oldKl', updates, (_, i) => 0.002 + 0.001 * Math.sin(i / 7));
  add('update.ess', updates, () => clamp(0.962 + gauss(r) * 0.018, 0.87, 1));
  add('update.tisMean', updates, () => clamp(0.937 + gauss(r) * 0.025, 0.84, 1));
  add('update.tisCapped', updates, () => clamp(0.46 + gauss(r) * 0.1, 0.2, 0.7));
  add('update.clipLow', updates, () => clamp(0.075 + gauss(r) * 0.025, 0.014, 0.13));
  add('update.clipHigh', updates, () => clamp(0.029 + gauss(r) * 0.014, 0.003, 0.075));
  add('update.dualClip', updates, () => (r() < 0.1 ? 0.004 : 0));
  add('update.imitationFactor', updates, (_, i) => 0.4 + 1.2 * Math.exp(-i / 20));

  return series;
}
