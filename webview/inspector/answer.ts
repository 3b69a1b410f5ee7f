/**
 * The answer of a language model as running text: each token on its colour, and under the text the token that one
 * points at, with its alternatives.
 */
import type { TokenView } from '../../runtime/protocol/types.js';
import { h, replace, set } from '../ui/dom.js';
import { num, percent } from '../ui/format.js';
import { button, setPressed } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import type { Colouring } from './state.js';
import {
  colours,
  entropyNumber,
  logprobWords,
  tokenBody,
  visibleLabel,
  type Scale,
  type TokenActions,
} from './token.js';

export interface AnswerActions extends TokenActions {
  colour(by: Colouring): void;
}
export interface AnswerModel {
  readonly tokens: readonly TokenView[];
  /** Names the text for screen readers. */
  readonly label: string;
  readonly scale: Scale;
  /** Weight of the whole step, where training kept no weight for each token. */
  readonly stepWeight?: number | undefined;
}

let lists = 0;

/** The text with a keyboard cursor of its own: arrows, Home and End go from token to token. */
export function answerText(m: AnswerModel, a: TokenActions): HTMLElement {
  const { tokens, scale } = m,
    name = `ds-answer-${++lists}`,
    picked = h('div', { class: 'ds-pick' });
  let at = -1;
  const options = tokens.map((x, i) =>
    h(
      'span',
      {
        role: 'option',
        id: `${name}-${i}`,
        'aria-selected': 'false',
        'aria-label': tokenWords(x, scale),
        class: [x.logprob === undefined && 'unknown', (x.weight ?? m.stepWeight ?? 1) < 1 && 'less'],
        style: colours(x, scale, m.stepWeight),
        on: { pointerenter: () => pick(i), click: () => pick(i) },
      },
      x.label,
    ),
  );
  const pick = (to: number): void => {
    const next = Math.max(0, Math.min(tokens.length - 1, to));
    if (next === at) return;
    options[at]?.setAttribute('aria-selected', 'false');
    at = next;
    set(options[at]!, { 'aria-selected': 'true' });
    set(list, { 'aria-activedescendant': `${name}-${at}` });
    replace(picked, tokenBody(tokens[at]!, scale, a));
  };
  const list = h(
    'div',
    {
      class: 'ds-flow',
      role: 'listbox',
      tabindex: '0',
      'aria-label': m.label,
      'aria-orientation': 'horizontal',
      on: {
        keydown: (e) => {
          const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tokens.length - 1 }[e.key];
          if (to === undefined || e.altKey || e.ctrlKey || e.metaKey) return;
          e.preventDefault();
          pick(to);
          options[at]?.scrollIntoView({ block: 'nearest' });
        },
      },
    },
    options,
  );
  pick(mostHesitant(tokens));
  return h('div', { class: 'ds-answer-text' }, list, picked);
}
function mostHesitant(tokens: readonly TokenView[]): number {
  let best = 0;
  tokens.forEach((x, i) => {
    if (x.entropy > tokens[best]!.entropy) best = i;
  });
  return best;
}
/** Words for screen readers: the token, its numbers, and the alternatives that were more than a trace. */
function tokenWords(x: TokenView, scale: Scale): string {
  const others = (x.alternatives ?? []).filter((o) => o.label !== x.label).slice(0, 3);
  return [
    visibleLabel(x.label),
    logprobWords(x),
    scale.least ? t('entropy at least {0}', num(x.entropy, 2)) : t('entropy {0}', num(x.entropy, 2)),
    x.weight === undefined ? '' : t('weight {0}', num(x.weight, 2)),
    ...others.map((o) => `${visibleLabel(o.label)} ${percent(o.probability)}`),
  ]
    .filter(Boolean)
    .join(', ');
}

/** Says what the colours of the answers below it mean, and changes it. */
export function colouring(m: Pick<AnswerModel, 'scale' | 'tokens' | 'stepWeight'>, a: AnswerActions): HTMLElement {
  const trained = m.stepWeight !== undefined || m.tokens.some((x) => x.weight !== undefined),
    single = !m.tokens.some((x) => x.weight !== undefined);
  const choice = (by: Colouring, label: string, title: string): HTMLElement => {
    const b = button(label, () => a.colour(by), { pressed: false, title });
    b.dataset['colour'] = by;
    return b;
  };
  return h(
    'div',
    { class: 'ds-colouring' },
    trained
      ? h(
          'div',
          { class: 'ds-segment', role: 'group', 'aria-label': t('Colour of the tokens') },
          choice('entropy', t('Entropy'), t('Colour by entropy: where the policy hesitated (i)')),
          choice('weight', t('Weight'), t('Colour by truncated importance weight: how the newer policy agrees (i)')),
        )
      : undefined,
    h(
      'span',
      { class: 'ds-colour-key entropy' },
      '0',
      h('span', { class: 'ramp', 'aria-hidden': 'true' }),
      t('{0} nats', entropyNumber(m.scale.hottest, m.scale)),
    ),
    trained
      ? h(
          'span',
          { class: 'ds-colour-key weight' },
          '½',
          h('span', { class: 'ramp', 'aria-hidden': 'true' }),
          single ? t('2, of the whole step') : '2',
        )
      : undefined,
  );
}
/** Brings every answer and every switch under `root` in line with the choice. */
export function showColour(root: HTMLElement, by: Colouring): void {
  root.dataset['colour'] = root.querySelector('.ds-colouring [data-colour=weight]') ? by : 'entropy';
  for (const b of root.querySelectorAll<HTMLElement>('.ds-colouring [data-colour]'))
    setPressed(b, b.dataset['colour'] === root.dataset['colour']);
}
