/** The comparison of any number of runs: what it asks for, what it shows, the choices that are kept. */
import type { ComparedRun, Comparison } from '../../runtime/protocol/types.js';
import type { DaemonState, HostError, InputOf } from '../protocol.js';
import { pageBeat } from '../dashboard/beat.js';
import { section, titledChart } from '../dashboard/parts.js';
import { Refresh } from '../dashboard/refresh.js';
import { bannerView, emptyState } from '../ui/banner.js';
import type { Chart } from '../ui/chart.js';
import { Painter } from '../ui/chartPainter.js';
import type { ChartSpec } from '../ui/chartSpec.js';
import { onThemeChange } from '../ui/chartTheme.js';
import { ZoomGroup } from '../ui/chartZoom.js';
import { h, replace, text } from '../ui/dom.js';
import { hostErrorOf, type Host, type Init } from '../ui/host.js';
import { button, dropdown, pageProgress } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import {
  axes,
  entitiesOf,
  evaluationLine,
  metricNames,
  trainingLine,
  without,
  type CompareAxis,
  type Entity,
} from './model.js';
import {
  axisWords,
  metricSpec,
  otherLooks,
  successSpec,
  throughputLooks,
  trainingLooks,
  type MetricLook,
} from './specs.js';
import { configTable, runsTable, taskTable } from './tables.js';

type Input = InputOf<'compareRuns'>;
interface Choices {
  readonly axis: CompareAxis;
  readonly grouped: boolean;
  readonly hidden: readonly string[];
  readonly closed: readonly string[];
}
const fresh: Choices = { axis: 'time', grouped: true, hidden: [], closed: ['other'] };
/** A chart and what it shows of the lines. */
interface Drawn {
  readonly chart: Chart;
  readonly spec: (axis: CompareAxis, entities: readonly Entity[]) => ChartSpec;
}
/** Curves of a run that goes on are asked for again this often. */
const refreshMs = 15_000;
/** Points of all curves of one chart together: more cannot be told apart. */
const chartPoints = 1500;
/** Mark of the page's timeline. */
const drawnMark = 'dart-studio:comparison-drawn';

export class App {
  readonly #host: Host<'compareRuns'>;
  readonly #root: HTMLElement;
  readonly #painter = new Painter(250);
  readonly #page: HTMLElement;
  readonly #title = h('h1', { class: 'run-name' });
  readonly #banners = h('div', { class: 'banners' });
  readonly #runs = h('div', { class: 'runs-list' });
  readonly #config = h('div');
  readonly #tasks = h('div');
  readonly #spoken = h('div', { class: 'sr-only', role: 'status' });
  readonly #groups = {
    training: h('div', { class: 'charts' }),
    throughput: h('div', { class: 'charts' }),
    other: h('div', { class: 'charts' }),
  };
  readonly #success: readonly Drawn[];
  #metrics: readonly Drawn[] = [];
  #shown = '';
  #input: Input;
  #daemon: DaemonState;
  #kept: Choices;
  #data: Comparison | undefined;
  #failure: HostError | undefined;
  #loading: AbortController | undefined;
  readonly #refresh = new Refresh(() => this.#load(), refreshMs, pageBeat);

  constructor(host: Host<'compareRuns'>, root: HTMLElement, init: Init) {
    if (init.input.kind !== 'compareRuns') throw new Error(`the comparison of runs cannot show a ${init.input.kind}`);
    this.#host = host;
    this.#root = root;
    this.#daemon = init.daemon;
    const { input: _, ...kept } = host.getState<Partial<Choices> & { readonly input?: Input }>() ?? {};
    this.#kept = { ...fresh, ...kept };
    this.#input = init.input;
    this.#success = this.#successCharts();
    this.#page = this.#build();
    onThemeChange(() => {
      for (const c of this.#all()) c.chart.retheme();
    });
    host.on((m) => {
      if (m.type === 'show' && m.input.kind === 'compareRuns') this.#open(m.input);
      else if (m.type === 'daemon') this.#daemonIs(m.state);
      else if (m.type === 'status' && this.#input.runs.includes(m.run)) this.#refresh.ask();
      else if (m.type === 'do' && m.what === 'reload') this.#turned();
    });
    document.addEventListener('visibilitychange', () => this.#refresh.wake());
    document.title = t('Compare runs');
    this.#open(this.#input);
  }
  #all(): readonly Drawn[] {
    return [...this.#success, ...this.#metrics];
  }
  #successCharts(): Drawn[] {
    const made = (title: string, says: string, line: typeof trainingLine, empty: string): Drawn => ({
      chart: titledChart({ title, says, painter: this.#painter, height: 240, sync: 'runs' }),
      spec: (axis, entities) => successSpec(title, axis, entities, line, empty),
    });
    return [
      made(
        t('Evaluations'),
        t(
          'Success of greedy episodes on the runs’ evaluation tasks. Band: the 95 % interval of each evaluation; for several seeds, from the lowest to the highest around their mean, up to where the shortest ends.',
        ),
        evaluationLine,
        t('No run has been evaluated yet.'),
      ),
      made(
        t('Training rollouts'),
        t(
          'Success of the newest training rollouts of each task: the mean over tasks, all weighted equally. They explore, so it is below the evaluations. Band: 95 %; for several seeds, from the lowest to the highest.',
        ),
        trainingLine,
        t('No rollout has ended yet.'),
      ),
    ];
  }
  #build(): HTMLElement {
    const part = (id: string, title: string, says: string, ...body: HTMLElement[]): HTMLElement =>
      section(id, title, says, !this.#kept.closed.includes(id), (open) => this.#folded(id, open), body);
    return h(
      'div',
      { class: 'dashboard' },
      h(
        'header',
        { class: 'top' },
        h('div', { class: 'top-row' }, h('div', { class: 'top-name' }, this.#title), this.#controls()),
      ),
      this.#banners,
      h(
        'main',
        { class: 'sections' },
        this.#runs,
        part(
          'success',
          t('Success'),
          t('which one learns better?'),
          h(
            'div',
            { class: 'charts wide' },
            this.#success.map((c) => c.chart.element),
          ),
        ),
        part('config', t('Run files'), t('what is different between them?'), this.#config),
        part('tasks', t('Tasks'), t('where do they differ most?'), this.#tasks),
        part('training', t('Trainer'), t('what do the updates do?'), this.#groups.training),
        part('throughput', t('Throughput'), t('how fast are they?'), this.#groups.throughput),
        part('other', t('Other metrics'), t('everything else that was recorded'), this.#groups.other),
      ),
      this.#spoken,
    );
  }
  #controls(): HTMLElement {
    const grouped = h('input', { type: 'checkbox', prop: { checked: this.#kept.grouped } });
    grouped.addEventListener('change', () => this.#keep({ grouped: grouped.checked }));
    return h(
      'div',
      { class: 'buttons', role: 'group', 'aria-label': t('Comparison') },
      h(
        'label',
        {
          class: 'runs-check',
          title: t('Runs that differ only in the seed are shown as one line: their mean, with a band'),
        },
        grouped,
        t('Group seeds'),
      ),
      dropdown<CompareAxis>(
        t('Horizontal axis'),
        axes.map((value) => ({ value, label: axisWords[value] })),
        this.#kept.axis,
        (axis) => {
          ZoomGroup.of('runs').set(undefined);
          this.#keep({ axis });
        },
      ),
      button(
        t('Choose Runs…'),
        () => this.#host.act({ action: 'command', command: 'compareRuns', argument: this.#input.runs.join('\n') }),
        { icon: 'list-selection' },
      ),
    );
  }
  #folded(id: string, open: boolean): void {
    const others = this.#kept.closed.filter((c) => c !== id);
    this.#keep({ closed: open ? others : [...others, id] });
  }
  #keep(c: Partial<Choices>): void {
    this.#kept = { ...this.#kept, ...c };
    this.#save();
    if (c.axis !== undefined || c.grouped !== undefined || c.hidden !== undefined) this.#render();
  }
  #save(): void {
    this.#host.setState({ input: this.#input, ...this.#kept });
  }

  #open(input: Input): void {
    this.#input = input;
    this.#save();
    void this.#load();
    this.#render();
  }
  #daemonIs(state: DaemonState): void {
    const back = state === 'ready' && this.#daemon !== 'ready';
    this.#daemon = state;
    // What ended meanwhile has told nobody.
    if (back) void this.#load();
    this.#render();
  }
  /** Called when one of the runs has another state: that is shown at once where somebody looks. */
  #turned(): void {
    if (document.hidden) this.#refresh.ask();
    else void this.#load();
  }
  async #load(): Promise<void> {
    if (this.#daemon !== 'ready') return;
    this.#loading?.abort();
    this.#refresh.ran();
    const mine = (this.#loading = new AbortController()),
      { runs } = this.#input,
      maxPoints = Math.max(60, Math.min(300, Math.floor(chartPoints / runs.length)));
    try {
      const data = await this.#host.request('run/compare', { runs, maxPoints }, mine.signal);
      if (mine.signal.aborted) return;
      if (this.#data?.runs.length !== data.runs.length)
        text(this.#spoken, t('{0} runs are compared.', data.runs.length));
      this.#data = data;
      this.#failure = undefined;
    } catch (e) {
      if (mine.signal.aborted) return;
      this.#failure = hostErrorOf(e);
    }
    this.#loading = undefined;
    this.#refresh.ran();
    this.#render();
  }
  #remove(run: string): void {
    this.#input = { kind: 'compareRuns', runs: this.#input.runs.filter((r) => r !== run) };
    this.#save();
    void this.#load();
  }

  #render(): void {
    const c = this.#data;
    if (!c || c.runs.length === 0) {
      this.#renderLack(c);
      return;
    }
    if (this.#page.parentElement !== this.#root) replace(this.#root, this.#page);
    const { axis, grouped } = this.#kept,
      hidden = new Set(this.#kept.hidden.filter((r) => c.runs.some((x) => x.run === r))),
      all = entitiesOf(c, grouped),
      shown = all
        .map((e): Entity => ({ ...e, runs: e.runs.filter((r) => !hidden.has(r.run)) }))
        .filter((e) => e.runs.length > 0),
      leftOut = without(
        shown.flatMap((e) => e.runs),
        axis,
      );
    text(this.#title, c.runs.length === 1 ? t('1 run') : t('Compare {0} runs', c.runs.length));
    const tab = t('Compare {0} runs', c.runs.length);
    if (document.title !== tab) {
      document.title = tab;
      this.#host.title(tab);
    }
    replace(
      this.#banners,
      c.missing.map((x) => bannerView('warning', `${x.run}: ${x.error.message} ${x.error.remedy}`.trim(), 'warning')),
      leftOut.length > 0 &&
        bannerView(
          'info',
          t(
            'These runs did not record how many tokens they were trained on, and have no curves on this axis: {0}.',
            leftOut.map((r) => r.name).join(', '),
          ),
          'info',
        ),
      this.#failure && bannerView('warning', t('Showing last loaded data. {0}', this.#failure.message), 'warning'),
    );
    this.#renderTables(c, all, shown, hidden);
    this.#renderMetrics(c);
    const first = !this.#shown;
    for (const d of this.#all()) d.chart.update(d.spec(axis, shown), true);
    if (first) requestAnimationFrame(() => requestAnimationFrame(() => performance.mark(drawnMark)));
    this.#shown = 'drawn';
  }
  #renderTables(c: Comparison, all: readonly Entity[], shown: readonly Entity[], hidden: ReadonlySet<string>): void {
    const focused = document.activeElement?.closest('.runs-list') ? document.activeElement : undefined,
      place = focused ? [...this.#runs.querySelectorAll('input, button, vscode-button')].indexOf(focused) : -1;
    replace(
      this.#runs,
      runsTable(c, (r: ComparedRun) => all.find((e) => e.runs.includes(r)), hidden, {
        show: (run, on) =>
          this.#keep({ hidden: on ? this.#kept.hidden.filter((r) => r !== run) : [...this.#kept.hidden, run] }),
        open: (run) => this.#host.act({ action: 'command', command: 'openDashboard', argument: run }),
        remove: (run) => this.#remove(run),
      }),
    );
    // The table is made anew; who worked in it with the keyboard stays where they were.
    if (place >= 0) this.#runs.querySelectorAll<HTMLElement>('input, button, vscode-button')[place]?.focus();
    replace(this.#config, configTable(c, shown));
    replace(this.#tasks, taskTable(shown));
  }
  /** A chart for each metric; made again only when others were recorded. */
  #renderMetrics(c: Comparison): void {
    const names = metricNames(c),
      key = names.join(' ');
    if (this.#page.dataset['metrics'] === key) return;
    this.#page.dataset['metrics'] = key;
    for (const m of this.#metrics) m.chart.dispose();
    const there = new Set(names),
      made = (looks: readonly MetricLook[], into: HTMLElement): Drawn[] => {
        const drawn = looks
          .filter((l) => there.has(l.name))
          .map((look): Drawn => ({
            chart: titledChart({
              title: look.title,
              says: look.says,
              painter: this.#painter,
              height: 150,
              sync: 'runs',
            }),
            spec: (axis, entities) => metricSpec(look, axis, entities),
          }));
        replace(
          into,
          drawn.length > 0 ? drawn.map((d) => d.chart.element) : h('p', { class: 'hint' }, t('Nothing was recorded.')),
        );
        return drawn;
      };
    this.#metrics = [
      ...made(trainingLooks, this.#groups.training),
      ...made(throughputLooks, this.#groups.throughput),
      ...made(otherLooks(names), this.#groups.other),
    ];
  }
  /** Instead of the page: nothing to show yet, and what to do about it. */
  #renderLack(c: Comparison | undefined): void {
    const why = this.#failure ?? c?.missing[0]?.error;
    const lack = why
      ? emptyState(
          'error',
          why.message,
          why.remedy,
          button(t('Try Again'), () => void this.#load(), { kind: 'primary' }),
          button(t('Show Log'), () => this.#host.act({ action: 'command', command: 'showLog' })),
        )
      : this.#daemon === 'ready' || this.#daemon === 'starting' || this.#daemon === 'attaching'
        ? pageProgress(this.#daemon === 'ready' ? t('Loading runs…') : t('Starting the runtime…'))
        : emptyState(
            'debug-disconnect',
            t('The runtime is not connected'),
            t('Start the runtime to compare the runs.'),
            button(t('Start Runtime'), () => this.#host.act({ action: 'command', command: 'startRuntime' }), {
              kind: 'primary',
            }),
          );
    replace(this.#root, h('main', { class: 'lack' }, lack));
  }
}
