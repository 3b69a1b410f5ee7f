/** One token: how probable it was, how hesitant the policy, and what else it considered. */
import type { StepView, TokenView } from '../../runtime/protocol/types.js';
import { h, icon } from '../ui/dom.js';
import { num, percent } from '../ui/format.js';
import { t } from '../ui/words.js';

export type Place = NonNullable<NonNullable<TokenView['alternatives']>[number]['at']>;
export interface TokenActions {
  highlight(place: Place | undefined): void;
}
/** The values that a token's colours and numbers are compared with. */
export interface Scale {
  /** Highest token entropy of the trajectory: full heat. */
  readonly hottest: number;
  /** Entropies are at least what they say. */
  readonly least: boolean;
}
export const scaleOf = (step: Pick<StepView, 'entropyBound'>, hottest: number): Scale => ({
  hottest,
  least: step.entropyBound === 'lower',
});

/** An importance weight of a half, or of two, has its full colour. */
const fullWeight = Math.log(2);
/**
 * Variables for the style sheets: entropy as `--heat`; a weight below 1 as `--less`, above it as `--more`; each in [0,
 * 1].
 */
export function colours(x: TokenView, { hottest }: Scale, stepWeight?: number): Record<string, string> {
  const weight = x.weight ?? stepWeight,
    off = weight === undefined ? 0 : Math.max(-1, Math.min(1, Math.log(Math.max(weight, 1e-9)) / fullWeight));
  return {
    '--heat': (hottest > 0 ? Math.min(1, Math.max(0, x.entropy) / hottest) : 0).toFixed(3),
    '--less': Math.max(0, -off).toFixed(3),
    '--more': Math.max(0, off).toFixed(3),
  };
}

export const logprobWords = (x: TokenView): string =>
  x.logprob === undefined ? t('log p unknown') : t('log p {0}', num(x.logprob, 2));
export const entropyNumber = (x: number, { least }: Scale): string => `${least ? '≥ ' : ''}${num(x, 2)}`;
export const entropyTitle = ({ least }: Scale): string =>
  least
    ? t('Entropy of the choice, in nats: at least this, as the server shows only its most probable tokens')
    : t('Entropy of the choice, in nats');

/** The label, with white space made visible. */
export const visibleLabel = (label: string): string =>
  label.trim() === '' ? label.replaceAll('\n', '⏎').replaceAll('\t', '⇥').replaceAll(' ', '␣') : label;

/** Label and numbers of a token, over its alternatives. */
export function tokenBody(x: TokenView, scale: Scale, a: TokenActions): (HTMLElement | undefined)[] {
  return [
    h(
      'div',
      { class: 'ds-token-head' },
      h(
        'span',
        { class: ['ds-token-label', (x.weight ?? 1) < 1 && 'less'], style: colours(x, scale) },
        visibleLabel(x.label),
      ),
      h('span', { class: 'number', title: t('Log-probability of what was sampled') }, logprobWords(x)),
      h('span', { class: 'number', title: entropyTitle(scale) }, `H ${entropyNumber(x.entropy, scale)}`),
      x.weight === undefined
        ? undefined
        : h(
            'span',
            { class: 'number', title: t('Truncated importance weight: how much the newer policy agrees') },
            t('weight {0}', num(x.weight, 2)),
          ),
    ),
    alternatives(x, a),
  ];
}
/**
 * The most probable choices as bars with numbers; the one taken is marked. Pointing at a place shows it on the
 * screenshot.
 */
export function alternatives(token: TokenView, a: TokenActions): HTMLElement | undefined {
  const all = token.alternatives;
  if (!all?.length) return undefined;
  const shown = [...all].sort((x, y) => y.probability - x.probability).slice(0, 6);
  return h(
    'ul',
    { class: 'ds-alternatives', 'aria-label': t('Choices considered for {0}', visibleLabel(token.label)) },
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
        h(
          'span',
          { class: 'name' },
          chosen ? icon('arrow-small-right', t('chosen')) : undefined,
          visibleLabel(x.label),
        ),
        h('span', { class: 'number' }, percent(x.probability)),
      );
    }),
  );
}
