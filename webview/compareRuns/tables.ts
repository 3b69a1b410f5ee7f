/** The tables of the comparison: the runs, where their run files differ, success task by task. */
import type { ComparedRun, Comparison } from '../../runtime/protocol/types.js';
import { stateWords } from '../dashboard/header.js';
import { clock, count, dayTime, interval, percent, shortFamily } from '../dashboard/format.js';
import { explain } from '../dashboard/tip.js';
import { swatch } from '../ui/chartLegend.js';
import { h, icon, type Child } from '../ui/dom.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { lastEvaluation, taskLines, valueWords, type Entity, type Rate, type TaskCell } from './model.js';

const cell = (...children: Child[]): HTMLElement => h('td', null, children);
const head = (...children: Child[]): HTMLElement => h('th', { scope: 'col' }, children);
const table = (name: string, headings: readonly HTMLElement[], rows: readonly HTMLElement[]): HTMLElement =>
  h(
    'div',
    { class: 'runs-scroll', tabindex: 0, role: 'region', 'aria-label': name },
    h('table', { class: 'runs-table' }, h('thead', null, h('tr', null, headings)), h('tbody', null, rows)),
  );
const marked = (e: Entity): Child => [swatch({ kind: 'line', hue: e.hue, dash: e.dash }), ' '];

export interface RunRowActions {
  readonly show: (run: string, on: boolean) => void;
  readonly open: (run: string) => void;
  readonly remove: (run: string) => void;
}
/** The runs, in the colours of the charts. */
export function runsTable(
  c: Comparison,
  entityOf: (r: ComparedRun) => Entity | undefined,
  hidden: ReadonlySet<string>,
  act: RunRowActions,
): HTMLElement {
  const rows = c.runs.map((r) => {
    const e = entityOf(r),
      { icon: sign, word } = stateWords[r.state],
      shown = h('input', {
        type: 'checkbox',
        'aria-label': t('Show {0}', r.name),
        prop: { checked: !hidden.has(r.run) },
      });
    shown.addEventListener('change', () => act.show(r.run, shown.checked));
    return h(
      'tr',
      null,
      cell(
        h('label', { class: 'runs-check' }, shown, e ? swatch({ kind: 'line', hue: e.hue, dash: e.dash }) : undefined),
      ),
      h(
        'th',
        { scope: 'row' },
        h('button', { type: 'button', class: 'runs-open', title: r.run, on: { click: () => act.open(r.run) } }, r.name),
      ),
      cell(r.seed === undefined ? '–' : String(r.seed)),
      h('td', { class: 'runs-state', 'data-state': r.state }, icon(sign), ' ', word),
      cell(dayTime(r.createdAt)),
      h('td', null, rateWords(lastEvaluation([r]))),
      h('td', { class: 'num' }, clock(r.progress.workedMs.at(-1))),
      h('td', { class: 'num' }, count(r.progress.updates.at(-1))),
      h('td', { class: 'num' }, count(r.rollouts)),
      h('td', { class: 'num' }, count(r.progress.actions.at(-1))),
      cell(
        button(t('Remove {0} from the comparison', r.name), () => act.remove(r.run), {
          kind: 'icon',
          icon: 'close',
          disabled: c.runs.length < 2,
        }),
      ),
    );
  });
  return table(
    t('Runs compared'),
    [
      head(h('span', { class: 'sr-only' }, t('Shown'))),
      head(t('Run')),
      head(t('Seed')),
      head(t('State')),
      head(t('Started')),
      head(t('Last evaluation')),
      head(t('Active time')),
      head(t('Updates')),
      head(t('Rollouts')),
      head(t('Trained actions')),
      head(h('span', { class: 'sr-only' }, t('Remove'))),
    ],
    rows,
  );
}

/** "64 %, 52–75 %"; of several seeds what they range over. */
function rateWords(r: Rate | undefined): Child {
  if (!r) return '–';
  return explain(
    h(
      'span',
      { tabindex: 0, class: 'runs-rate' },
      h('b', null, percent(r.rate)),
      ' ',
      h('span', { class: 'dim' }, interval(r.low, r.high)),
    ),
    r.range
      ? t(
          '{0} of {1} episodes of all seeds together, 95 % interval {2}. Single seeds: {3} to {4}.',
          count(r.successes),
          count(r.episodes),
          interval(r.low, r.high),
          percent(r.range[0]),
          percent(r.range[1]),
        )
      : t('{0} of {1} episodes, 95 % interval {2}.', count(r.successes), count(r.episodes), interval(r.low, r.high)),
  );
}

/** Keys on which the run files differ; what most runs have is quiet. */
export function configTable(c: Comparison, entities: readonly Entity[]): HTMLElement {
  if (c.config.length === 0) return h('p', { class: 'hint' }, t('The run files differ only in the seed.'));
  const rows = c.config.map((d) => {
    const values = entities.map((e) => d.values[c.runs.indexOf(e.runs[0]!)]!),
      times = new Map<string, number>();
    for (const v of values) times.set(v, (times.get(v) ?? 0) + 1);
    const most = Math.max(...times.values());
    return h(
      'tr',
      null,
      h('th', { scope: 'row' }, h('code', null, d.key)),
      values.map((v) =>
        h(
          'td',
          { class: [most > 1 && times.get(v) === most && 'dim'], title: valueWords(v, 2000) },
          h('code', null, valueWords(v, 80)),
        ),
      ),
    );
  });
  return table(t('Options that differ'), [head(t('Option')), ...entities.map((e) => head(marked(e), e.label))], rows);
}

const cellWords = (c: TaskCell): Child =>
  c.evaluation
    ? rateWords(c.evaluation)
    : c.recent
      ? explain(
          h('span', { tabindex: 0, class: 'runs-rate dim' }, t('{0} in training', percent(c.recent.rate))),
          t(
            'No evaluation had this task; of the last {0} training rollouts {1} succeeded.',
            count(c.recent.of),
            percent(c.recent.rate),
          ),
        )
      : '–';
/** A row a task, those on which the runs differ most first. */
export function taskTable(entities: readonly Entity[]): HTMLElement {
  const lines = taskLines(entities);
  if (lines.length === 0) return h('p', { class: 'hint' }, t('No run has attempted a task yet.'));
  return table(
    t('Success by task'),
    [
      head(t('Task')),
      ...entities.map((e) => head(marked(e), e.label)),
      ...(entities.length > 1 ? [head(t('Difference'))] : []),
    ],
    lines.map((l) =>
      h(
        'tr',
        null,
        h(
          'th',
          { scope: 'row', title: l.title ?? l.family },
          shortFamily(l.family),
          l.heldOut ? h('span', { class: 'dim' }, ` ${t('held out')}`) : undefined,
          l.infeasible ? h('span', { class: 'dim' }, ` ${t('infeasible')}`) : undefined,
        ),
        l.cells.map((c) => h('td', null, cellWords(c))),
        entities.length > 1
          ? h('td', { class: 'num' }, l.spread < 0 ? '–' : t('{0} points', Math.round(l.spread * 100)))
          : undefined,
      ),
    ),
  );
}
