/** Success over all tasks, and a small chart per task that can be made large. */
import { nameOfTask } from '../../runtime/protocol/shared.js';
import type { TableFilter, TaskRow } from '../../runtime/protocol/types.js';
import { Chart } from '../ui/chart.js';
import type { Painter } from '../ui/chartPainter.js';
import type { ChartSpec } from '../ui/chartSpec.js';
import { h, icon, replace, text } from '../ui/dom.js';
import { button, dropdown } from '../ui/toolkit.js';
import { rollouts, steps, t, whole } from '../ui/words.js';
import { ApplicationsTable } from './applicationsTable.js';
import { behindSuccess } from './behind.js';
import { count, decimal, interval, percent, shortFamily } from './format.js';
import type { Model } from './model.js';
import { titledChart } from './parts.js';
import { sortTasks, successOf, successSpec, type AxisKind, type TaskSort } from './specs.js';
import { explain, term } from './tip.js';

/** Rollouts that the rolling mean takes together. */
export type MeanWindow = '32' | '64' | '256' | '1024';
export interface SuccessChoices {
  readonly axis: AxisKind;
  readonly window: MeanWindow;
  readonly sort: TaskSort;
  readonly enlarged?: string;
  readonly allTasks: boolean;
}
interface Card {
  readonly element: HTMLElement;
  readonly chart: Chart;
  readonly large: boolean;
  readonly facts: HTMLElement;
  readonly rate: HTMLElement;
}
const firstTasks = 24;

export class SuccessView {
  readonly element: HTMLElement;
  readonly #painter: Painter;
  readonly #overall: Chart;
  readonly #cards = new Map<string, Card>();
  readonly #applications = new ApplicationsTable();
  readonly #grid = h('div', { class: 'cards' });
  readonly #more = h('div', { class: 'more' });
  readonly #changed: (c: SuccessChoices) => void;
  readonly #open: (f: TableFilter) => void;
  #choices: SuccessChoices;
  #order: readonly string[] = [];
  #m: Model | undefined;

  /** `open`: the list behind a point. */
  constructor(
    painter: Painter,
    choices: SuccessChoices,
    changed: (c: SuccessChoices) => void,
    open: (f: TableFilter) => void,
  ) {
    this.#open = open;
    this.#painter = painter;
    this.#choices = choices;
    this.#changed = changed;
    this.#overall = titledChart({
      title: t('All tasks'),
      says: t(
        'Diamonds are evaluations: greedy episodes on a fixed set of tasks, with 95 % error bars. The thin line is the success of the newest training rollouts of each task: the mean over tasks, all weighted equally, with a 95 % band. Tasks that cannot be done are drawn separately.',
      ),
      painter,
      height: 260,
      open,
      sync: 'run',
      controls: this.#controls(choices),
    });
    this.element = h(
      'div',
      null,
      this.#overall.element,
      h(
        'p',
        { class: 'hint' },
        t(
          'Judge by the evaluations. Training rollouts explore and favour tasks that the policy fails, so their line is lower; all tasks are weighted equally in it.',
        ),
      ),
      this.#applications.element,
      h(
        'div',
        { class: 'cards-head' },
        h(
          'h3',
          null,
          term(
            t('Per task'),
            t(
              'Each task family with the success of its newest evaluation and the 95 % interval; before the first one, of its newest rollouts. Below it, the number of rollouts in its next group and the max steps of each. Both adapt to its success.',
            ),
          ),
        ),
        this.#sortControl(choices),
      ),
      this.#grid,
      this.#more,
    );
  }
  #controls(choices: SuccessChoices): HTMLElement[] {
    return [
      dropdown<MeanWindow>(
        t('Rollouts of the mean'),
        (['32', '64', '256', '1024'] as const).map((w) => ({ value: w, label: t('newest {0} rollouts', w) })),
        choices.window,
        (window) => this.#choose({ window }),
      ),
      dropdown<AxisKind>(
        t('Horizontal axis'),
        [
          { value: 'time', label: t('over time') },
          { value: 'rollouts', label: t('over rollouts') },
        ],
        choices.axis,
        (axis) => this.#choose({ axis }),
      ),
    ];
  }
  #sortControl(choices: SuccessChoices): HTMLElement {
    return dropdown<TaskSort>(
      t('Order of the tasks'),
      [
        { value: 'name', label: t('by name') },
        { value: 'lowest', label: t('lowest success first') },
        { value: 'most', label: t('most rollouts first') },
      ],
      choices.sort,
      (s) => {
        this.#order = [];
        this.#choose({ sort: s });
      },
    );
  }
  render(m: Model, old: Model | undefined): void {
    this.#m = m;
    if (m.tasks !== old?.tasks) this.#applications.render(m.tasks);
    // The first curves are drawn at once; later ones with the painter's interval.
    const first = m.curves.length > 0 && !old?.curves.length;
    if (
      !old ||
      m.curves !== old.curves ||
      m.evals !== old.evals ||
      m.detail?.summary.createdAt !== old.detail?.summary.createdAt ||
      m.detail?.timeline !== old.detail?.timeline
    ) {
      this.#overall.update(this.#spec(m), first);
      this.#renderCards(m, true, first);
    } else if (m.tasks !== old.tasks) this.#renderCards(m, false);
  }
  retheme(): void {
    this.#overall.retheme();
    for (const c of this.#cards.values()) c.chart.retheme();
  }

  #spec(m: Model, family?: string): ChartSpec {
    const { axis } = this.#choices;
    return { ...successSpec(m, axis, family), behind: behindSuccess(m, axis, family) };
  }
  #choose(c: Partial<SuccessChoices>): void {
    this.#choices = { ...this.#choices, ...c };
    this.#changed(this.#choices);
    if (this.#m) {
      this.#overall.update(this.#spec(this.#m), true);
      this.#renderCards(this.#m, true);
    }
  }
  #renderCards(m: Model, charts: boolean, now = false): void {
    const byFamily = new Map(m.tasks.map((t) => [t.family, t]));
    // The order is kept while the run goes on: cards that jump cannot be watched.
    if (this.#order.length !== m.tasks.length || this.#order.some((f) => !byFamily.has(f)))
      this.#order = sortTasks(m.tasks, this.#choices.sort).map((t) => t.family);
    const shown = this.#choices.allTasks ? this.#order : this.#order.slice(0, firstTasks);
    for (const [f, c] of this.#cards)
      if (!shown.includes(f)) {
        c.chart.dispose();
        c.element.remove();
        this.#cards.delete(f);
      }
    let place: Element | null = this.#grid.firstElementChild;
    for (const family of shown) {
      const large = this.#choices.enlarged === family;
      let card = this.#cards.get(family),
        made = false;
      if (card && card.large !== large) {
        card.chart.dispose();
        if (place === card.element) place = card.element.nextElementSibling;
        card.element.remove();
        card = undefined;
      }
      if (!card) {
        this.#cards.set(family, (card = this.#card(byFamily.get(family)!, large)));
        made = true;
      }
      if (card.element === place) place = place.nextElementSibling;
      else this.#grid.insertBefore(card.element, place);
      if (charts || made) card.chart.update(this.#spec(m, family), made || now);
      this.#facts(card, byFamily.get(family)!);
    }
    const rest = this.#order.length - shown.length,
      key = `${rest} ${m.tasks.length}`;
    if (this.#more.dataset['key'] !== key) {
      this.#more.dataset['key'] = key;
      replace(
        this.#more,
        rest > 0
          ? button(t('Show all {0} tasks', this.#order.length), () => this.#choose({ allTasks: true }))
          : m.tasks.length === 0
            ? h('p', { class: 'hint' }, t('The tasks appear when the first rollouts are planned.'))
            : undefined,
      );
    }
  }
  #card(r: TaskRow, large: boolean): Card {
    const { family } = r,
      name = shortFamily(nameOfTask(r));
    const rate = h('span', { class: 'card-rate' }),
      facts = explain(h('p', { class: 'card-facts', tabindex: 0 }), '');
    const toggle = h(
      'button',
      {
        type: 'button',
        class: 'card-name',
        'aria-expanded': String(large),
        title: large ? t('Collapse') : t('Expand'),
        on: {
          click: () => {
            this.#choose({ enlarged: large ? undefined : family });
            this.#cards.get(family)?.element.querySelector<HTMLElement>('.card-name')?.focus();
          },
        },
      },
      h('span', { dir: 'auto' }, name),
      icon(large ? 'screen-normal' : 'screen-full'),
    );
    const chart = new Chart({
      heading: h('h4', null, toggle),
      name: t('Success of {0}', name),
      painter: this.#painter,
      height: large ? 240 : 68,
      compact: !large,
      controls: [rate],
      open: this.#open,
      sync: large ? 'run' : undefined,
    });
    return {
      element: h(
        'article',
        { class: ['card', large && 'card-large'], 'aria-label': nameOfTask(r) },
        chart.element,
        facts,
      ),
      chart,
      large,
      facts,
      rate,
    };
  }
  #facts(c: Card, r: TaskRow): void {
    text(c.rate, headline(r));
    text(c.facts, factsOf(r));
    explain(c.facts, explanation(r));
  }
}
/**
 * The one number of a task: its newest evaluation, or its newest rollouts before there is one; the text below says
 * which.
 */
const headline = (r: TaskRow): string => percent(successOf(r));
function factsOf(r: TaskRow): string {
  const e = r.evaluation,
    n = r.recent ?? r.rollouts,
    line = (...parts: string[]): string => parts.filter(Boolean).join(' · ');
  return [
    line(r.infeasible ? t('infeasible') : '', r.heldOut ? t('held out') : ''),
    e ? t('evaluation, {0}', interval(e.low, e.high)) : '',
    r.rate === undefined ? '' : e ? t('last {0} rollouts {1}', n, percent(r.rate)) : t('of the last {0} rollouts', n),
    line(
      r.groupSize === undefined ? '' : t('{0} per group', r.groupSize),
      r.cap === undefined ? '' : t('max {0}', steps(r.cap)),
      rollouts(r.rollouts),
    ),
  ]
    .filter(Boolean)
    .join('\n');
}
function explanation(r: TaskRow): string {
  const e = r.evaluation;
  return [
    r.title ?? r.family,
    r.infeasible ? t('Cannot be done: success means saying so.') : '',
    e
      ? t(
          'Evaluation of v{0}: {1} of {2} episodes, 95 % interval {3}.',
          e.version,
          count(e.successes),
          count(e.episodes),
          interval(e.low, e.high),
        )
      : '',
    t('{0} of {1} succeeded.', count(r.successes), rollouts(r.rollouts)),
    r.rate === undefined
      ? ''
      : t(
          'Of the last {0} rollouts {1} succeeded, 95 % interval {2}.',
          r.recent ?? r.rollouts,
          percent(r.rate),
          interval(r.low, r.high),
        ),
    r.meanSteps === undefined ? '' : t('{0} steps on average.', decimal(Number(r.meanSteps.toFixed(1)))),
    r.groupSize === undefined
      ? ''
      : t('Its next group gets {0} of at most {1}.', rollouts(r.groupSize), r.cap === undefined ? '?' : steps(r.cap)),
    r.poolEntries === undefined
      ? ''
      : r.poolEntries === 1
        ? t('1 success in the experience pool.')
        : t('{0} successes in the experience pool.', whole(r.poolEntries)),
  ]
    .filter(Boolean)
    .join(' ');
}
