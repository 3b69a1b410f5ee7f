/** The steps of a try with their entropy, and what was considered in the one that is looked at. */
import type { ControlState, StepView } from '../../runtime/protocol/types.js';
import { rejectedView } from '../inspector/prompt.js';
import { scaleOf, type Place } from '../inspector/token.js';
import { spellsThought, tokensView } from '../inspector/tokens.js';
import { originIcons, originWords, stepCount } from '../live/session.js';
import { actionIcon, actionsWords } from '../ui/actions.js';
import { h, icon, replace, text } from '../ui/dom.js';
import { markSteps } from '../ui/entropy.js';
import { num } from '../ui/format.js';
import { roving } from '../ui/roving.js';
import { t } from '../ui/words.js';
import { hottest, shownStep, type State } from './state.js';

export interface StepActions {
  pick(step: number): void;
  highlight(place: Place | undefined): void;
}

export class TryStepList {
  readonly element: HTMLElement;
  readonly #actions: StepActions;
  readonly #count = h('h3', null);
  readonly #list = h('ol', { class: 'try-steps' });
  readonly #detail = h('section', {
    class: 'try-detail ds-detail',
    hidden: true,
    'aria-label': t('The step in detail'),
  });
  #drawn: readonly string[] = [];
  #detailed = '';

  constructor(a: StepActions) {
    this.#actions = a;
    roving(this.#list, 'button');
    this.element = h(
      'div',
      { class: 'try-record' },
      h('section', { class: 'try-recorded', 'aria-label': t('Steps so far') }, this.#count, this.#list),
      this.#detail,
    );
  }

  render(s: State, c: ControlState | undefined): void {
    this.element.hidden = c === undefined;
    if (!c) return;
    text(this.#count, stepCount(s.steps.length, c));
    this.#rows(s);
    this.#showDetail(s);
  }
  /** A row is drawn again when something of it is another one. */
  #rows(s: State): void {
    const marks = markSteps(s.steps, undefined),
      top = Math.max(0, ...marks.map((m) => m.entropy ?? 0)),
      keys = s.steps.map((x, i) => `${x.index} ${x.origin} ${x.entropy} ${marks[i]!.high} ${top} ${s.selected === i}`),
      same = keys.findIndex((k, i) => k !== this.#drawn[i]),
      from = same < 0 ? keys.length : same;
    if (from === this.#drawn.length && from === keys.length) return;
    const focused = [...this.#list.children].findIndex((li) => li.contains(document.activeElement)),
      grew = keys.length > this.#drawn.length;
    for (const li of [...this.#list.children].slice(from)) li.remove();
    this.#list.append(
      ...s.steps
        .slice(from)
        .map((x, k) => this.#row(x, { top, high: marks[from + k]!.high, on: s.selected === from + k })),
    );
    this.#drawn = keys;
    if (focused >= from) this.#list.children[focused]?.querySelector('button')?.focus();
    if (grew && s.selected === undefined) this.#list.scrollTop = this.#list.scrollHeight;
  }
  #row(x: StepView, o: { readonly top: number; readonly high: boolean; readonly on: boolean }): HTMLElement {
    const share = x.entropy === undefined || o.top === 0 ? 0 : x.entropy / o.top,
      origin = x.origin === 'policy' ? 'policy' : 'human';
    return h(
      'li',
      null,
      h(
        'button',
        {
          type: 'button',
          class: [o.high && 'high'],
          'aria-current': o.on ? 'step' : undefined,
          title: x.thought,
          on: { click: () => this.#actions.pick(x.index) },
        },
        h('span', { class: 'number index' }, x.index + 1),
        icon(x.actions[0] ? actionIcon(x.actions[0]) : 'dash'),
        h('span', { class: 'words' }, x.actions.length > 0 ? actionsWords(x.actions) : t('no action')),
        x.entropy === undefined
          ? h('span', { class: 'origin' }, icon(originIcons[origin]), originWords[origin])
          : h(
              'span',
              { class: 'entropy', title: t('Entropy of the decision: how much the policy hesitated') },
              h(
                'span',
                { class: 'bar', 'aria-hidden': 'true' },
                h('span', { style: { width: `${Math.round(share * 100)}%` } }),
              ),
              h('span', { class: 'number' }, `H ${num(x.entropy, 2)}`),
            ),
      ),
    );
  }

  #showDetail(s: State): void {
    const step = shownStep(s),
      proposed = step !== undefined && step === s.proposal?.step,
      key = step ? `${s.session} ${step.index} ${proposed} ${s.proposal?.id} ${step.tokens?.length} ${hottest(s)}` : '';
    if (key === this.#detailed) return;
    this.#detailed = key;
    this.#detail.hidden = step === undefined;
    if (!step) return;
    const acts = { highlight: (p: Place | undefined) => this.#actions.highlight(p), colour: () => undefined },
      scale = scaleOf(step, hottest(s));
    replace(
      this.#detail,
      h(
        'h3',
        null,
        proposed ? t('Proposed') : t('Step {0}', step.index + 1),
        h(
          'span',
          { class: 'ds-count' },
          [
            step.entropy === undefined ? '' : t('entropy {0}', num(step.entropy, 3)),
            step.version === undefined ? '' : `v${step.version}`,
            step.settled ? '' : t('not settled'),
          ]
            .filter(Boolean)
            .join(' · '),
        ),
      ),
      step.thought && !spellsThought(step) ? h('p', { class: 'ds-thought' }, step.thought) : undefined,
      tokensView({ step, hottest: hottest(s) }, acts),
      rejectedView(step.rejected, scale, acts),
    );
  }
}
