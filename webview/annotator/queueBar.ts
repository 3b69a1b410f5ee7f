/** Header of the review queue: where one is, why this one, and the way on. */
import { h, icon, replace, set, text } from '../ui/dom.js';
import { button } from '../ui/toolkit.js';
import { t, whole } from '../ui/words.js';
import { placeOf, skipped, type Walk } from './walk.js';

export interface QueueModel {
  readonly walk?: Walk;
  readonly error?: string;
  readonly rollout: string;
  /** The person went past the last trajectory. */
  readonly ended: boolean;
  readonly reviewed: boolean;
  readonly locked: boolean;
}
export interface QueueActions {
  go(direction: 1 | -1): void;
  review(): void;
  unreview(): void;
  again(): void;
  retry(): void;
  close(): void;
}

export class QueueBar {
  readonly element: HTMLElement;
  readonly #place = h('strong');
  readonly #why = h('span', { class: 'an-why' });
  readonly #back: HTMLElement;
  readonly #on: HTMLElement;
  readonly #review: HTMLElement;
  readonly #unreview: HTMLElement;
  readonly #walk: HTMLElement;
  readonly #end = h('div', { class: 'an-end', role: 'status', hidden: true });
  readonly #actions: QueueActions;
  #drawn = '';

  constructor(a: QueueActions) {
    this.#actions = a;
    this.#back = button(t('Previous'), () => a.go(-1), {
      kind: 'icon',
      icon: 'arrow-left',
      title: t('Previous of the queue ([ or ,)'),
      keys: '[',
    });
    this.#on = button(t('Next'), () => a.go(1), {
      kind: 'icon',
      icon: 'arrow-right',
      title: t('Next of the queue, without a review (] or .)'),
      keys: ']',
    });
    this.#review = button(t('Reviewed, next'), a.review, {
      kind: 'primary',
      icon: 'check',
      title: t('Mark as reviewed and go to the next (Enter)'),
      keys: 'Enter',
    });
    // The key that presses it, held, would press it again and again.
    this.#review.addEventListener('keydown', (e) => {
      if (e.repeat) e.preventDefault();
    });
    this.#unreview = button(t('Not reviewed'), a.unreview, { title: t('Undo the review') });
    this.#walk = h(
      'div',
      { class: 'an-row' },
      icon('checklist'),
      this.#place,
      this.#why,
      h('span', { class: 'ds-spring' }),
      this.#unreview,
      this.#back,
      this.#review,
      this.#on,
    );
    this.element = h(
      'section',
      { class: 'an-queue', 'aria-label': t('Review queue'), hidden: true },
      this.#walk,
      this.#end,
    );
  }
  update(m: QueueModel | undefined): void {
    this.element.hidden = !m;
    if (!m) return;
    const { walk } = m,
      at = walk ? placeOf(walk, m.rollout) : -1,
      item = walk?.items[at],
      last = walk !== undefined && at === walk.items.length - 1;
    text(this.#place, placeWords(m, at));
    text(this.#why, whyWords(m, item));
    set(this.#back, { disabled: !walk || at <= 0 });
    set(this.#on, { disabled: !walk || m.ended });
    set(this.#review, { disabled: !walk || m.locked || m.ended });
    this.#unreview.hidden = !m.reviewed;
    const done = walk ? walk.done.size : 0,
      over = walk !== undefined && (m.ended || walk.items.length === 0),
      passed = walk ? skipped(walk).length : 0,
      key = JSON.stringify([over, done, passed, walk?.reviewed, m.error, last]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.#end.hidden = !over && m.error === undefined;
    if (m.error !== undefined) {
      replace(this.#end, button(t('Try again'), this.#actions.retry));
      return;
    }
    replace(
      this.#end,
      over
        ? [
            icon('check-all'),
            h('span', null, endWords(walk, done, passed)),
            passed ? button(t('Review the skipped ones'), this.#actions.again) : undefined,
            button(t('Leave the queue'), this.#actions.close),
          ]
        : [],
    );
  }
}
/** The place of this trajectory in the queue; `at`: its position, -1 when it is not in it. */
const placeWords = ({ walk, error }: QueueModel, at: number): string =>
  !walk
    ? error === undefined
      ? t('Loading review queue…')
      : t('The review queue cannot be read')
    : at < 0
      ? t('Review queue: {0}', walk.items.length)
      : t('{0} of {1}', at + 1, Math.max(walk.open, walk.items.length));
/** Why this trajectory is in the queue. */
const whyWords = ({ walk, error }: QueueModel, item: Walk['items'][number] | undefined): string =>
  !walk || error !== undefined
    ? (error ?? '')
    : item
      ? item.why
      : walk.items.length
        ? t('This trajectory is not in the queue; Enter goes to the first that is.')
        : '';
/** Words at the end of the queue. */
const endWords = (walk: Walk, done: number, passed: number): string =>
  walk.items.length === 0
    ? t('Nothing to review.')
    : [
        t('That was the last one.'),
        done === 1
          ? t('1 reviewed in this pass, {0} in total.', whole(walk.reviewed + done))
          : t('{0} reviewed in this pass, {1} in total.', done, whole(walk.reviewed + done)),
        passed === 0 ? '' : passed === 1 ? t('One was skipped.') : t('{0} were skipped.', passed),
      ]
        .filter(Boolean)
        .join(' ');
