/** Where episodes of one task clicked, on its screen: successes as rings, failures as crosses. */
import type { ClickPlaces } from '../../runtime/protocol/types.js';
import { h, s } from '../ui/dom.js';
import { t, whole } from '../ui/words.js';
import { markOf, type Thumbs } from './thumbs.js';

export interface ScatterActions {
  open(rollout: string, step: number): void;
}

export function scatter(c: ClickPlaces, title: string, thumbs: Thumbs, actions: ScatterActions): HTMLElement {
  const width = c.frame?.width ?? Math.max(1, ...c.x),
    height = c.frame?.height ?? Math.max(1, ...c.y),
    won = c.success.filter(Boolean).length,
    lost = c.success.length - won,
    words = t('{0} clicks of successes, {1} of failures.', whole(won), whole(lost));
  const marks = c.x.map((x, i) => {
    const m = markOf({ at: { x, y: c.y[i]! }, kind: c.success[i] ? 'expected' : 'did' }, width / 130);
    m.dataset['at'] = String(i);
    return m;
  });
  return h(
    'figure',
    { class: 'tb-scatter' },
    h('figcaption', null, h('h2', null, title), h('p', { class: 'ds-quiet' }, words)),
    h(
      'div',
      { class: 'tb-scatter-screen', style: { 'aspect-ratio': `${width} / ${height}` } },
      c.frame ? thumbs.picture(c.frame) : undefined,
      s(
        'svg',
        {
          viewBox: `0 0 ${width} ${height}`,
          role: 'img',
          'aria-label': words,
          on: {
            click: (e) => {
              const at = (e.target as SVGElement).dataset['at'];
              if (at === undefined) return;
              const i = Number(at);
              actions.open(c.rollouts[c.rollout[i]!]!, c.step[i]!);
            },
          },
        },
        marks,
      ),
    ),
    h(
      'p',
      { class: 'tb-legend ds-quiet' },
      h('span', { class: 'tb-key' }, legendMark('did'), t('failure')),
      h('span', { class: 'tb-key' }, legendMark('expected'), t('success')),
      h('span', null, t('Click a mark to open its step. Window positions vary by seed.')),
    ),
  );
}
export const legendMark = (kind: 'did' | 'expected'): SVGElement =>
  s(
    'svg',
    { class: 'tb-key-mark', viewBox: '0 0 16 16', 'aria-hidden': 'true' },
    markOf({ at: { x: 8, y: 8 }, kind }, 5),
  );
