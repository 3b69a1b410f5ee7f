import { duration } from '../domain/stats.js';
import type { Series } from '../protocol/types.js';
import { figure } from './html.js';
import { plot } from './plot.js';

/** Charts of a run's page beside success: title, the metrics of each with their names. The dashboard has the same. */
interface MetricPlot {
  readonly title: string;
  readonly of: readonly (readonly [metric: string, label: string])[];
  readonly shares?: true;
  /** Logarithmic scale: one unlikely token makes a value a thousand times as large. */
  readonly log?: true;
}
const PLOTS: readonly MetricPlot[] = [
  {
    title: 'Loss',
    of: [
      ['update.loss', 'total'],
      ['update.policyLoss', 'policy'],
      ['update.imitationLoss', 'imitation'],
    ],
  },
  { title: 'Policy entropy, nats', of: [['update.entropy', 'entropy']] },
  {
    title: 'KL divergence, nats per token',
    log: true,
    of: [
      ['update.klK3', 'from the acting policy'],
      ['update.refKl', 'from the reference'],
      ['update.oldKl', 'from before the update'],
    ],
  },
  {
    title: 'Importance weights',
    of: [
      ['update.tisMean', 'mean weight'],
      ['update.ess', 'effective sample size, share'],
    ],
  },
  {
    title: 'Clip fractions',
    shares: true,
    of: [
      ['update.clipLow', 'low'],
      ['update.clipHigh', 'high'],
      ['update.dualClip', 'dual'],
    ],
  },
  { title: 'Imitation by need', of: [['update.imitationFactor', 'mean factor']] },
  { title: 'Gradient norm', of: [['update.gradNorm', 'norm']] },
  { title: 'Learning rate', of: [['update.lr', 'learning rate']] },
  {
    title: 'Rollouts per hour',
    of: [
      ['run.rolloutsPerHour', 'rollouts'],
      ['run.boundRolloutsPerHour', 'limit'],
    ],
  },
  {
    title: 'Utilisation',
    shares: true,
    of: [
      ['run.desktopUtilisation', 'desktops'],
      ['run.replicaUtilisation', 'replicas'],
      ['run.trainerUtilisation', 'trainer'],
    ],
  },
];
/** Names of the metrics that these plots need. */
export const plottedMetrics: readonly string[] = PLOTS.flatMap((p) => p.of.map(([name]) => name));

/** `origin`: when the run began, ms since the epoch. */
export function metricPlots(series: readonly Series[], origin: number): string {
  const by = new Map(series.filter((s) => s.value.length > 1).map((s) => [s.name, s]));
  return PLOTS.map((p) =>
    plot({
      title: p.title,
      series: p.of.flatMap(([name, label]) => {
        const s = by.get(name);
        return s ? [{ label, x: s.at.map((t) => t - origin), y: s.value }] : [];
      }),
      x: { label: 'time since the run began', format: duration },
      y: {
        format: p.shares === true ? (v) => `${figure(100 * v)} %` : (v) => figure(v),
        ...(p.log === true ? { log: true } : {}),
      },
    }),
  ).join('');
}
