/** The sampled tokens of a step: as cards, or as running text with a table. */
import type { StepView, TokenView } from '../../runtime/protocol/types.js';
import { h, replace, type Child } from '../ui/dom.js';
import { num, percent } from '../ui/format.js';
import { t, whole } from '../ui/words.js';
import { answerText, colouring, type AnswerActions } from './answer.js';
import {
  alternatives,
  colours,
  entropyNumber,
  entropyTitle,
  scaleOf,
  tokenBody,
  visibleLabel,
  type Scale,
} from './token.js';

export interface TokensModel {
  readonly step: StepView;
  /** Highest token entropy of the trajectory: full heat. */
  readonly hottest: number;
}

/** With more tokens than this they are shown as a text. */
const manyTokens = 12,
  rowsShown = 40;
export const isText = (step: StepView): boolean => (step.tokens?.length ?? 0) > manyTokens;
/** Whether the tokens of a step spell its thought. */
export const spellsThought = (step: StepView): boolean =>
  isText(step) &&
  step.thought !== undefined &&
  step
    .tokens!.map((x) => x.label)
    .join('')
    .includes(step.thought.trim());

/** The sampled tokens of the step, or why nothing is known of them. */
export function tokensView(m: TokensModel, a: AnswerActions): Child[] {
  const { step } = m,
    { tokens } = step,
    scale = scaleOf(step, m.hottest);
  if (!tokens?.length)
    return [
      h(
        'p',
        { class: 'ds-quiet' },
        step.origin === 'policy'
          ? t('No log-probabilities were recorded for this step.')
          : step.origin === 'human'
            ? t('A person decided: nothing was sampled, so there are no log-probabilities.')
            : t('A script decided: nothing was sampled, so there are no log-probabilities.'),
      ),
    ];
  if (!isText(step))
    return [
      summary(tokens),
      h(
        'ol',
        { class: 'ds-tokens' },
        tokens.map((x) => h('li', { class: 'ds-token' }, tokenBody(x, scale, a))),
      ),
    ];
  const text = { tokens, scale, stepWeight: step.weight, label: t('Answer, token by token') };
  return [summary(tokens), colouring(text, a), answerText(text, a)];
}
function summary(tokens: readonly TokenView[]): HTMLElement {
  const known = tokens.flatMap((x) => (x.logprob === undefined ? [] : [x.logprob])),
    joint = known.reduce((sum, x) => sum + x, 0),
    unknown = tokens.length - known.length;
  return h(
    'p',
    { class: 'ds-quiet' },
    unknown > 0
      ? t(
          '{0} tokens; the server did not return the log-probability of {1} of them',
          whole(tokens.length),
          whole(unknown),
        )
      : tokens.length === 1
        ? t('1 token, log-probability {0} ({1})', num(joint, 2), percent(Math.exp(joint)))
        : t('{0} tokens, log-probability {1} ({2})', whole(tokens.length), num(joint, 2), percent(Math.exp(joint))),
  );
}

/** The tokens of a text in a table, the most hesitant first. */
export function tokenTable(m: TokensModel, a: AnswerActions): HTMLElement {
  const tokens = m.step.tokens ?? [],
    scale = scaleOf(m.step, m.hottest),
    order = tokens.map((t, i) => ({ t, i })).sort((x, y) => y.t.entropy - x.t.entropy),
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
            h('th', { scope: 'row', title: t.label, style: colours(t, scale) }, visibleLabel(t.label)),
            h('td', { class: 'number' }, t.logprob === undefined ? '?' : num(t.logprob, 2)),
            h('td', { class: 'number' }, entropyNumber(t.entropy, scale)),
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
  return tableView(body, { considered, scale }, more);
}
function tableView(
  body: HTMLElement,
  { considered, scale }: { readonly considered: boolean; readonly scale: Scale },
  more: HTMLElement | undefined,
): HTMLElement {
  return h(
    'div',
    { class: 'ds-table-scroll', tabindex: '0', role: 'region', 'aria-label': t('Tokens by entropy') },
    h(
      'table',
      { class: 'ds-table' },
      h('caption', null, t('Tokens, highest entropy first')),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          ['#', t('Token'), t('log p'), t('Entropy'), ...(considered ? [t('Considered')] : [])].map((x, i) =>
            h(
              'th',
              {
                scope: 'col',
                class: i === 1 || i === 4 ? '' : 'number',
                title: i === 3 ? entropyTitle(scale) : undefined,
              },
              x,
            ),
          ),
        ),
      ),
      body,
    ),
    more,
  );
}
