/**
 * The ledger as a flow from what was generated to where it went; the sum is printed, and a sum that does not close is a
 * fault.
 */
import type { Ledger } from '../../runtime/protocol/types.js';
import { h, icon, replace, s, text } from '../ui/dom.js';
import { t } from '../ui/words.js';
import { count, percent } from './format.js';
import {
  inFlightPlaces,
  flowSentence,
  layoutFlow,
  ledgerFlow,
  ribbonPath,
  type FlowPart,
  type Ribbon,
} from './flow.js';
import { explain } from './tip.js';

const height = 190,
  slot = 30,
  barWidth = 3;
const hues = { trained: 'green', flight: 'blue', retired: 'plain' } as const;
const kinds = { trained: t('trained'), flight: t('in flight'), waiting: t('waiting'), retired: t('retired') } as const;

export class LedgerView {
  readonly element: HTMLElement;
  readonly #sum = explain(
    h('p', { class: 'ledger-sum', tabindex: 0 }),
    t(
      'Every planned rollout is in exactly one place. The two sides are counted independently and must always be equal.',
    ),
  );
  readonly #svg = s('svg', { class: 'ledger-flow', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  readonly #parts = h('ul', { class: 'ledger-parts', role: 'list' });
  readonly #open: (places: readonly string[]) => void;
  #shown = '';

  /** `open`: lists what is in these places of the ledger. */
  constructor(open: (places: readonly string[]) => void) {
    this.#open = open;
    this.element = h('div', { class: 'ledger' }, this.#sum, h('div', { class: 'ledger-plot' }, this.#svg, this.#parts));
  }
  /** `over`: nobody works on the run, so nothing is in flight. */
  render(l: Ledger | undefined, over: boolean): void {
    const key = JSON.stringify([l, over]);
    if (key === this.#shown) return;
    this.#shown = key;
    if (!l || l.generated === 0) {
      replace(this.#sum, t('No rollout was planned.'));
      this.#svg.replaceChildren();
      this.#parts.replaceChildren();
      return;
    }
    const f = ledgerFlow(l, over);
    this.#drawSum(l, f);
    const { ribbons, height: whole } = layoutFlow(f.parts, height, slot);
    this.#svg.style.height = this.#parts.style.height = `${whole}px`;
    this.#drawRibbons(f.parts, ribbons, whole);
    this.#list(f.parts, ribbons, over);
  }
  #drawSum(l: Ledger, f: ReturnType<typeof ledgerFlow>): void {
    this.#sum.classList.toggle('fault', !f.closes);
    replace(
      this.#sum,
      icon(f.closes ? 'pass' : 'error'),
      h('span', null, flowSentence(f, count)),
      f.begun === undefined || f.begun === f.planned
        ? undefined
        : h('span', { class: 'dim' }, t('{0} of them started on a desktop.', count(f.begun))),
      f.closes
        ? h('span', { class: 'dim' }, closedWords(l.human))
        : h('strong', null, missingWords(f.missing), ' ', t('This is a fault: please report it with the log.')),
    );
  }
  #drawRibbons(parts: readonly FlowPart[], ribbons: ReturnType<typeof layoutFlow>['ribbons'], whole: number): void {
    const w = 100;
    this.#svg.setAttribute('viewBox', `0 0 ${w} ${whole}`);
    replace(
      this.#svg,
      s('rect', {
        class: 'ledger-bar hue-plain',
        x: 0,
        y: 0,
        width: barWidth,
        height: ribbons.reduce((a, r) => a + r.fromHeight, 0),
      }),
      ribbons.flatMap((r, i) => {
        const p = parts[i]!,
          on = { click: () => this.#open(placesOf(p)) };
        return [
          s('path', {
            class: `ledger-ribbon hue-${hues[p.kind]} ${p.kind}`,
            d: ribbonPath(r, barWidth, w - barWidth),
            on,
          }),
          s('rect', {
            class: `ledger-bar hue-${hues[p.kind]} ${p.kind}`,
            x: w - barWidth,
            y: r.toY,
            width: barWidth,
            height: r.toHeight,
            on,
          }),
        ];
      }),
    );
  }
  #list(parts: readonly FlowPart[], ribbons: readonly Ribbon[], over: boolean): void {
    while (this.#parts.children.length > parts.length) this.#parts.lastElementChild!.remove();
    parts.forEach((p, i) => {
      let li = this.#parts.children[i] as HTMLElement | undefined;
      if (!li) {
        li = h(
          'li',
          null,
          h(
            'button',
            {
              type: 'button',
              class: 'ledger-part',
              on: { click: (e) => this.#open((e.currentTarget as HTMLElement).dataset['places']!.split(' ')) },
            },
            h('span', { class: 'ledger-n' }),
            h('span', { class: 'ledger-kind' }),
            h('span', { class: 'ledger-label' }),
            h('span', { class: 'ledger-share dim' }),
          ),
        );
        this.#parts.append(li);
      }
      li.style.top = `${ribbons[i]!.slotY}px`;
      li.style.height = `${ribbons[i]!.slotHeight}px`;
      const [n, kind, label, share] = li.querySelectorAll('span');
      text(n!, count(p.n));
      text(kind!, kinds[p.kind === 'flight' && over ? 'waiting' : p.kind]);
      text(label!, p.kind === 'trained' ? '' : p.label);
      text(share!, percent(p.share, p.share < 0.1 ? 1 : 0));
      (li.firstElementChild as HTMLElement).dataset['places'] = placesOf(p).join(' ');
      explain(li.firstElementChild as HTMLElement, `${p.says} ${t('Click to list them.')}`);
    });
  }
}
/** Places of the rollouts of a part, in the table's words. */
const placesOf = (p: FlowPart): readonly string[] =>
  p.kind === 'retired' ? [`retired:${p.key}`] : p.key === 'flight' ? inFlightPlaces : [p.key];
function closedWords(human: Ledger['human']): string {
  if (!human) return t('All rollouts accounted for.');
  return human.steps === 1
    ? t(
        'All rollouts accounted for. In {0} a person acted: that step is imitated, never trained by policy gradient, and success rates leave them out.',
        count(human.rollouts),
      )
    : t(
        'All rollouts accounted for. In {0} a person acted: those {1} steps are imitated, never trained by policy gradient, and success rates leave them out.',
        count(human.rollouts),
        count(human.steps),
      );
}
/** `missing`: rollouts that no part counts; negative where some are counted twice. */
function missingWords(missing: number): string {
  if (missing === 0) return t('The runtime found that its counts do not add up.');
  return missing > 0
    ? t('{0} rollouts are missing.', count(missing))
    : t('{0} rollouts are counted twice.', count(-missing));
}
