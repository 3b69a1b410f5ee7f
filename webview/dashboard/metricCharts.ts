/** The charts of throughput, trainer and corrections: which series each shows, and how. */
import { duration } from '../ui/format.js';
import { t } from '../ui/words.js';
import { count, decimal, decimalTick, percent, percentTick } from './format.js';
import { boundName, boundNow, type MetricChart, type RateKey } from './specs.js';

const wholeNumber = (v: number): string => count(v);
/** A rate, and its limit over time; before the limit was recorded, a straight line where it is now. */
const rateChart = (k: RateKey, title: string, label: string, says: string): MetricChart => ({
  title,
  says: t('{0} The limit is set by the slowest of its desktops, replicas and trainer.', says),
  format: wholeNumber,
  integers: true,
  floor: 0,
  lines: [
    { name: `run.${k}`, label, hue: 'blue' },
    { name: boundName[k], label: t('limit'), hue: 'orange', dash: [6, 4] },
  ],
  marks: (m) => {
    const at = boundNow(m, k);
    return at === undefined || (m.series.get(boundName[k])?.at.length ?? 0) > 1
      ? []
      : [{ axis: 'y', at, label: t('limit {0}', count(at)), hue: 'orange' }];
  },
});
export const throughputCharts: readonly MetricChart[] = [
  rateChart(
    'rolloutsPerHour',
    t('Rollouts per hour'),
    t('rollouts/h'),
    t('Training rollouts ended per hour, over the last two minutes.'),
  ),
  rateChart(
    'stepsPerMinute',
    t('Steps per minute'),
    t('steps/min'),
    t('Actions carried out on desktops per minute, over the last two minutes.'),
  ),
  rateChart(
    'trainedActionsPerMinute',
    t('Trained actions per minute'),
    t('trained actions/min'),
    t(
      'Actions that survived curation and were trained on, per minute of reinforcement learning since it began or was resumed.',
    ),
  ),
  {
    title: t('Utilisation'),
    says: t(
      'Share of time busy since reinforcement learning began or was resumed, pauses and the final evaluation left out: desktops leased to a rollout or being reset after one, replicas computing an answer (of model servers: answers under way, of the policy.vlm.concurrency that each may handle), the trainer in an update.',
    ),
    lines: [
      { name: 'run.desktopUtilisation', label: t('desktops'), hue: 'blue' },
      { name: 'run.replicaUtilisation', label: t('replicas'), hue: 'purple', dash: [7, 3] },
      { name: 'run.trainerUtilisation', label: t('trainer'), hue: 'green', dash: [2, 3] },
    ],
    format: (v) => percent(v),
    tick: percentTick,
    floor: 0,
    ceil: 1,
  },
];
export const trainerCharts: readonly MetricChart[] = [
  {
    title: t('Loss'),
    says: t(
      'What each update minimised, mean over its optimizer steps. The total is the policy-gradient loss plus the weighted imitation loss of replayed successes.',
    ),
    lines: [
      { name: 'update.loss', label: t('total'), hue: 'blue' },
      { name: 'update.policyLoss', label: t('policy'), hue: 'purple', dash: [7, 3] },
      { name: 'update.imitationLoss', label: t('imitation'), hue: 'green', dash: [2, 3] },
    ],
    format: decimal,
    tick: decimalTick,
  },
  {
    title: t('Policy entropy'),
    says: t(
      'Mean entropy of what the policy sampled and was trained on, in nats: of whole decisions of the embedded policy, of tokens of a language model. Falling towards 0: the policy grows certain, and may stop exploring.',
    ),
    lines: [{ name: 'update.entropy', label: t('entropy'), hue: 'blue' }],
    format: decimal,
    tick: decimalTick,
    floor: 0,
  },
  {
    title: t('Gradient norm'),
    says: t('Norm of the gradient before clipping, mean over the update’s optimizer steps.'),
    lines: [{ name: 'update.gradNorm', label: t('norm'), hue: 'blue' }],
    format: decimal,
    tick: decimalTick,
    floor: 0,
  },
  {
    title: t('Learning rate'),
    says: t(
      'Mean over the optimizer steps of each update. The embedded policy’s rises over its first 20 steps; then it is constant, until it decreases if the run file sets a decay.',
    ),
    lines: [{ name: 'update.lr', label: t('learning rate'), hue: 'blue' }],
    format: decimal,
    floor: 0,
  },
  {
    title: t('Time per update'),
    says: t('How long one update took in the trainer, from the batch to the new weights.'),
    lines: [{ name: 'update.ms', label: t('update'), hue: 'blue' }],
    format: duration,
    floor: 0,
  },
];
export const correctionCharts: readonly MetricChart[] = [
  {
    title: t('Importance weights'),
    says: t(
      'Mean of the truncated importance weights, and their effective sample size as a share of the tokens. 1 means that the trained policy still agrees with the one that acted.',
    ),
    lines: [
      { name: 'update.tisMean', label: t('mean weight'), hue: 'blue' },
      { name: 'update.ess', label: t('ESS'), hue: 'green', dash: [7, 3] },
    ],
    format: decimal,
    tick: decimalTick,
    ceil: 1,
  },
  {
    title: t('KL divergence'),
    says: t(
      'How far the trained policy moved from the one that acted (k3 estimator), from the reference, and in the update itself, per token, in nats, on a logarithmic scale.',
    ),
    lines: [
      { name: 'update.klK3', label: t('from the acting policy'), hue: 'blue' },
      { name: 'update.refKl', label: t('from the reference'), hue: 'orange', dash: [7, 3] },
      { name: 'update.oldKl', label: t('from before the update'), hue: 'green', dash: [2, 3] },
    ],
    format: decimal,
    log: true,
  },
  {
    title: t('Clip fractions'),
    says: t(
      'Share of tokens whose probability ratio was clipped: below 1 - eps low, above 1 + eps high, and by the dual clip of very bad actions.',
    ),
    lines: [
      { name: 'update.clipLow', label: t('low'), hue: 'blue' },
      { name: 'update.clipHigh', label: t('high'), hue: 'purple', dash: [7, 3] },
      { name: 'update.dualClip', label: t('dual'), hue: 'orange', dash: [2, 3] },
    ],
    format: (v) => percent(v, 1),
    tick: percentTick,
    floor: 0,
  },
  {
    title: t('Imitation by need'),
    says: t(
      'What the weight of replayed successes is multiplied by, mean over their steps: above 1 for tasks that the policy fails by itself, below it for those that it solves.',
    ),
    lines: [{ name: 'update.imitationFactor', label: t('mean factor'), hue: 'blue' }],
    format: decimal,
    tick: decimalTick,
    floor: 0,
    optional: true,
  },
];
