/** The tokens of a step: how probable each was, how hesitant the policy, and what else it considered. */
import type { StepView, TokenView } from '../../runtime/protocol/types.js';
import { h, icon, replace, type Child } from '../ui/dom.js';
import { num, percent } from '../ui/format.js';
import { t, whole } from '../ui/words.js';

export type Place = NonNullable<NonNullable<TokenView['alternatives']>[number]['at']>;
export interface TokenActions {
  highlight(place: Place | undefined): void;
}
export interface TokensModel {
  readonly step: StepView;
  /** Highest token entropy of the trajectory: full heat. */
  readonly hottest: number;
}

/** More tokens than this are shown as running text first. */
const manyTokens = 12,
  rowsShown = 40;

/** What was sampled in the step, token by token; or why nothing is known of it. */
export function tokensView(m: TokensModel, a: TokenActions): Child[] {
  const tokens = m.step.tokens;
  if (!tokens?.length)
    return [
      h(
        'p',
        { class: 'ds-quiet' },
        m.step.origin === 'policy'
          ? t('No log-probabilities were recorded for this step.')
          : m.step.origin === 'human'
            ? t('A person decided: nothing was sampled, so there are no log-probabilities.')
            : t('The oracle decided: nothing was sampled, so there are no log-probabilities.'),
      ),
    ];
  const joint = tokens.reduce((t, x) => t + x.logprob, 0);
  return [
    h(
      'p',
      { class: 'ds-quiet' },
      tokens.length === 1
        ? t('1 token, log-probability {0} ({1})', num(joint, 2), percent(Math.exp(joint)))
        : t('{0} tokens, log-probability {1} ({2})', whole(tokens.length), num(joint, 2), percent(Math.exp(joint))),
    ),
    tokens.length > manyTokens
      ? [flow(tokens, m.hottest), tokenTable(tokens, m.hottest, a)]
      : h(
          'ol',
          { class: 'ds-tokens' },
          tokens.map((t) => tokenCard(t, m.hottest, a)),
        ),
  ];
}
const heat = (t: TokenView, hottest: number): Record<string, string> => ({
  '--heat': (hottest > 0 ? Math.min(1, Math.max(0, t.entropy) / hottest) : 0).toFixed(3),
});

function tokenCard(x: TokenView, hottest: number, a: TokenActions): HTMLElement {
  return h(
    'li',
    { class: 'ds-token' },
    h(
      'div',
      { class: 'ds-token-head' },
      h('span', { class: 'ds-token-label', style: heat(x, hottest) }, x.label),
      h(
        'span',
        { class: 'number', title: t('Log-probability of what was sampled') },
        t('log p {0}', num(x.logprob, 2)),
      ),
      h('span', { class: 'number', title: t('Entropy of the choice, in nats') }, `H ${num(x.entropy, 2)}`),
    ),
    alternatives(x, a),
  );
}
/**
 * The most probable choices as bars with numbers; the one taken is marked. Pointing at a place shows it on the
 * screenshot.
 */
function alternatives(token: TokenView, a: TokenActions): HTMLElement | undefined {
  const all = token.alternatives;
  if (!all?.length) return undefined;
  const shown = [...all].sort((x, y) => y.probability - x.probability).slice(0, 6);
  return h(
    'ul',
    { class: 'ds-alternatives', 'aria-label': t('Choices considered for {0}', token.label) },
    shown.map((x) => {
      const chosen = x.label === token.label;
      return h(
        'li',
        {
          class: chosen ? 'chosen' : '',
          ...(x.at
            ? {
                tabindex: '0',
                on: {
                  pointerenter: () => a.highlight(x.at),
                  pointerleave: () => a.highlight(undefined),
                  focus: () => a.highlight(x.at),
                  blur: () => a.highlight(undefined),
                },
              }
            : {}),
        },
        h('span', {
          class: 'fill',
          'aria-hidden': 'true',
          style: { width: `${Math.min(100, Math.max(0, x.probability * 100))}%` },
        }),
        h('span', { class: 'name' }, chosen ? icon('arrow-small-right', t('chosen')) : undefined, x.label),
        h('span', { class: 'number' }, percent(x.probability)),
      );
    }),
  );
}
/** Long answers: the text itself, each token on its heat. */
function flow(tokens: readonly TokenView[], hottest: number): HTMLElement {
  return h(
    'p',
    { class: 'ds-flow' },
    tokens.map((x) =>
      h(
        'span',
        { style: heat(x, hottest), title: t('log p {0}, entropy {1}', num(x.logprob, 2), num(x.entropy, 2)) },
        x.label,
      ),
    ),
  );
}
function tokenTable(tokens: readonly TokenView[], hottest: number, a: TokenActions): HTMLElement {
  const order = tokens.map((t, i) => ({ t, i })).sort((x, y) => y.t.entropy - x.t.entropy),
    body = h('tbody'),
    considered = tokens.some((t) => t.alternatives?.length);
  const rows = (n: number): void =>
    replace(
      body,
      order
        .slice(0, n)
        .map(({ t, i }) =>
          h(
            'tr',
            null,
            h('td', { class: 'number' }, i + 1),
            h('th', { scope: 'row', title: t.label, style: heat(t, hottest) }, t.label),
            h('td', { class: 'number' }, num(t.logprob, 2)),
            h('td', { class: 'number' }, num(t.entropy, 2)),
            considered ? h('td', null, alternatives(t, a)) : undefined,
          ),
        ),
    );
  rows(rowsShown);
  const more =
    tokens.length > rowsShown
      ? h(
          'button',
          {
            type: 'button',
            class: 'ds-link',
            on: {
              click: () => {
                rows(order.length);
                more!.remove();
              },
            },
          },
          t('Show all {0}', order.length),
        )
      : undefined;
  return tableView(body, considered, more);
}
function tableView(body: HTMLElement, considered: boolean, more: HTMLElement | undefined): HTMLElement {
  return h(
    'div',
    { class: 'ds-table-scroll', tabindex: '0', role: 'region', 'aria-label': t('Tokens by entropy') },
    h(
      'table',
      { class: 'ds-table' },
      h('caption', null, t('Tokens, most hesitant first')),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          ['#', t('Token'), t('log p'), t('Entropy'), ...(considered ? [t('Considered')] : [])].map((x, i) =>
            h('th', { scope: 'col', class: i === 1 || i === 4 ? '' : 'number' }, x),
          ),
        ),
      ),
      body,
    ),
    more,
  );
}
