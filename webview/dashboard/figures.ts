/** Key figures: a tile each, every one saying what it is. */
import { h } from '../ui/dom.js';
import { t } from '../ui/words.js';
import { count, interval, percent } from './format.js';
import { evalRate, evaluationOnly, isOver, last, measuredWindow, rolloutsBegun, type Model } from './model.js';
import { roving } from '../ui/roving.js';
import { tile, type TileState } from './parts.js';
import { boundNow, overall, rateNow, shareOfBound, trainingLabel, type RateKey } from './specs.js';

const bindingWords = {
  desktops: t('the desktops'),
  replicas: t('the policy replicas'),
  trainer: t('the trainer'),
} as const;

/** Rate and limit are measured over different stretches of time, so a run at its limit may seem to be above it. */
const limitWords = (share: number, limit: number | undefined): string =>
  share >= 0.995 ? t('at the limit of {0}', count(limit)) : t('{0} of the limit {1}', percent(share), count(limit));

/** Training success, coarsely. */
function sparkOf(m: Model): readonly number[] {
  const mean = overall(m)?.mean ?? [],
    every = Math.ceil(mean.length / 40);
  return mean.filter((_, i) => i % every === 0);
}

export class Figures {
  readonly element: HTMLElement;
  readonly #evaluation = tile(
    t('Last evaluation'),
    t(
      'Success of the newest evaluation: greedy episodes on a fixed set of tasks, with its 95 % interval. Training never sees them, unless the tasks are a folder of task files: then they are those files.',
    ),
  );
  readonly #rolling = tile(
    t('Training success'),
    t(
      'Success of the newest training rollouts: the mean over tasks, all weighted equally. They explore, so it is below the evaluation.',
    ),
  );
  readonly #rollouts = tile(
    t('Rollouts per hour'),
    t(
      'Training rollouts ended per hour, over the last two minutes, beside the limit that the slowest of desktops, replicas and trainer sets.',
    ),
  );
  readonly #steps = tile(
    t('Steps per minute'),
    t('Actions carried out on the desktops per minute, over the last two minutes, beside its limit.'),
  );
  readonly #trained = tile(
    t('Trained actions per minute'),
    t('Actions that survived curation and were trained on, per minute, beside its limit.'),
  );
  readonly #busy = tile(
    t('Utilisation'),
    t(
      'Share of time busy: desktops leased to a rollout or being reset after one, replicas computing an answer (of model servers: answers under way, of the policy.vlm.concurrency that each may handle), the trainer in an update.',
    ),
  );
  readonly #total = tile(
    t('Rollouts'),
    t(
      'Training rollouts that started on a desktop; those running now; groups that wait for the trainer. The ledger also counts those that were planned and never started.',
    ),
  );
  readonly #errors = tile(
    t('Faults'),
    t(
      'Rollouts that ended with an error of the environment, the policy service or the verifier. They have no reward, are not trained on, and are retried.',
    ),
  );

  constructor() {
    const list = h(
      'ul',
      { class: 'tiles', role: 'list' },
      [
        this.#evaluation,
        this.#rolling,
        this.#rollouts,
        this.#steps,
        this.#trained,
        this.#busy,
        this.#total,
        this.#errors,
      ].map((t) => t.element),
    );
    roving(list, '.tile');
    this.element = h('section', { class: 'figures', 'aria-label': t('Key figures') }, list);
  }

  render(m: Model): void {
    const st = m.status,
      e = m.evals.at(-1),
      rate = e && evalRate(e),
      only = evaluationOnly(m);
    this.#evaluation.set(
      e && rate !== undefined
        ? {
            value: percent(rate),
            detail: [
              interval(e.low, e.high),
              t('{0} of {1} at v{2}', count(e.successes), count(e.episodes), e.version),
              ...(e.infeasible
                ? [t('infeasible {0} of {1}', count(e.infeasible.successes), count(e.infeasible.episodes))]
                : []),
            ].join(' · '),
            spark: m.evals.map((x) => evalRate(x) ?? 0),
          }
        : { value: '–', detail: isOver(m) ? t('none') : t('the first is still to come') },
    );
    // The share of the newest rollouts stands in until the curve is there.
    const curve = overall(m),
      balanced = curve?.mean.at(-1),
      rolling = balanced ?? st?.success ?? last(m, 'run.success');
    this.#rolling.set({
      value: percent(rolling),
      detail:
        rolling === undefined
          ? t('no rollout has ended')
          : balanced !== undefined && curve
            ? curve.balanced && curve.balanced.families > 1
              ? t('mean of {0} tasks, newest {1} each', curve.balanced.families, curve.balanced.each)
              : trainingLabel(curve)
            : t('of the last 64 rollouts'),
      spark: balanced === undefined ? (st?.curve ?? []) : sparkOf(m),
    });
    this.#rollouts.set(this.#rate(m, 'rolloutsPerHour'));
    this.#steps.set(this.#rate(m, 'stepsPerMinute'));
    this.#trained.set(this.#rate(m, 'trainedActionsPerMinute'));
    const measured = measuredWindow(m);
    this.#busy.set({
      value: '',
      bars: [
        { label: t('desktops'), share: st?.desktopUtilisation ?? last(m, 'run.desktopUtilisation'), hue: 'blue' },
        { label: t('replicas'), share: st?.replicaUtilisation ?? last(m, 'run.replicaUtilisation'), hue: 'purple' },
        { label: t('trainer'), share: st?.trainerUtilisation ?? last(m, 'run.trainerUtilisation'), hue: 'green' },
      ],
      detail: measured ? (measured.resumed ? t('since RL was resumed') : t('since RL began')) : undefined,
    });
    this.#total.set({
      value: count(rolloutsBegun(m)),
      detail: isOver(m)
        ? t('ended')
        : st
          ? [
              t('{0} running', count(st.running)),
              st.waitingGroups === 1 ? t('1 group waiting') : t('{0} groups waiting', count(st.waitingGroups)),
            ].join(' · ')
          : '',
    });
    const errors = m.ledger?.retired['error'] ?? st?.errors ?? last(m, 'run.errors');
    this.#errors.set({
      value: count(errors),
      detail: errors ? t('retried, never trained on') : errors === 0 ? (isOver(m) ? t('none') : t('none so far')) : '',
      tone: errors ? 'bad' : undefined,
    });
    for (const t of [this.#rolling, this.#rollouts, this.#steps, this.#trained, this.#busy]) t.element.hidden = only;
  }
  #rate(m: Model, key: RateKey): TileState {
    const value = rateNow(m, key),
      limit = boundNow(m, key),
      share = shareOfBound(value, limit),
      by = m.status?.bounds?.by;
    if (value === undefined) return { value: '–', detail: isOver(m) ? t('not measured') : t('being measured') };
    if (share === undefined)
      return { value: count(value), detail: isOver(m) ? t('at the end of the run') : t('limit: being measured') };
    return {
      value: count(value),
      bar: { share, words: limitWords(share, limit) },
      detail: isOver(m) ? t('at the end of the run') : by ? t('limited by {0}', bindingWords[by]) : '',
    };
  }
}
