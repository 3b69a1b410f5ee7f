/** The page: sections, what each shows of the model, and the choices that are kept over hiding and reload. */
import type { TableFilter } from '../../runtime/protocol/types.js';
import { bannerView, emptyState } from '../ui/banner.js';
import type { Chart } from '../ui/chart.js';
import { Painter } from '../ui/chartPainter.js';
import { onThemeChange } from '../ui/chartTheme.js';
import { ZoomGroup } from '../ui/chartZoom.js';
import { h, replace, text } from '../ui/dom.js';
import type { Host, Init } from '../ui/host.js';
import { LanesView } from '../ui/lanes.js';
import { button, pageProgress } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { bannersOf } from './banners.js';
import { behindMetric } from './behind.js';
import { CurationSection } from './curationView.js';
import { Failures } from './failures.js';
import { Feed } from './feed.js';
import { Figures } from './figures.js';
import { clock, dayTime, fine, interval, percent, tickTime } from './format.js';
import { Header, stateWords } from './header.js';
import { LedgerView } from './ledgerView.js';
import {
  emptyModel,
  evalRate,
  evaluationOnly,
  firstWindowMs,
  isLive,
  isOver,
  reduce,
  stateOf,
  measuredWindow,
  wholeRun,
  type Message,
  type Model,
} from './model.js';
import { section, titledChart } from './parts.js';
import { RunFacts } from './runFacts.js';
import { throughputCharts, trainerCharts } from './metricCharts.js';
import { metricSpec, type MetricChart } from './specs.js';
import { SuccessView, type SuccessChoices } from './successView.js';

/** Choices of the page, never data. */
interface SavedChoices {
  readonly closed: readonly string[];
  readonly success: SuccessChoices;
  readonly family?: string;
  readonly lanes?: { readonly from: number; readonly to: number };
  readonly follow: boolean;
}
const fresh: SavedChoices = {
  closed: [],
  success: { axis: 'time', window: '64', sort: 'name', allTasks: false },
  follow: true,
};
/** Mark of the page's timeline. */
const curvesDrawn = 'dart-studio:curves-drawn';

interface Metric {
  readonly spec: MetricChart;
  readonly chart: Chart;
}
const chartsView = (metrics: readonly Metric[]): HTMLElement =>
  h(
    'div',
    { class: 'charts fill' },
    metrics.map((m) => m.chart.element),
  );

export class App {
  readonly #host: Host<'dashboard'>;
  readonly #feed: Feed;
  readonly #painter = new Painter(250);
  readonly #header: Header;
  readonly #facts: RunFacts;
  readonly #figures = new Figures();
  readonly #banners = h('div', { class: 'banners' });
  readonly #main = h('main', { class: 'sections' });
  readonly #spoken = h('div', { class: 'sr-only', role: 'status' });
  readonly #success: SuccessView;
  readonly #curation: CurationSection;
  readonly #lanes: LanesView;
  readonly #ledger = new LedgerView((ledger) => this.#list({ ledger }));
  readonly #failures: Failures;
  readonly #metrics: readonly Metric[];
  readonly #page: HTMLElement;
  readonly #root: HTMLElement;
  readonly #training: readonly HTMLElement[];
  #m: Model;
  #drawn: Model | undefined;
  #kept: SavedChoices;
  #asked = 0;
  #lanesShown = false;
  #bannerKey = '';

  constructor(host: Host<'dashboard'>, root: HTMLElement, init: Init) {
    this.#host = host;
    this.#root = root;
    this.#m = emptyModel('', init.daemon);
    const saved = host.getState<Partial<SavedChoices>>();
    this.#kept = { ...fresh, ...saved, success: { ...fresh.success, ...saved?.success } };
    this.#feed = new Feed(
      host,
      () => this.#m,
      (msg) => this.#dispatch(msg),
      () => Number(this.#kept.success.window),
    );
    this.#failures = new Failures(host);
    this.#header = new Header(host, { failures: (from) => void this.#failures.open(this.#m.run, from) });
    this.#facts = new RunFacts(host, () => this.#m.run);
    this.#success = new SuccessView(
      this.#painter,
      this.#kept.success,
      (success) => {
        const other = success.window !== this.#kept.success.window;
        this.#keep({ success });
        if (other) this.#feed.windowChanged();
      },
      (f) => this.#list(f),
    );
    this.#curation = new CurationSection(
      this.#painter,
      this.#kept.family,
      (family) => this.#keep({ family }),
      (f) => this.#list(f),
    );
    this.#lanes = this.#makeLanes();
    const metric = (spec: MetricChart): Metric => this.#metric(spec);
    const throughput = throughputCharts.map(metric),
      trainer = trainerCharts.map(metric);
    this.#metrics = [...throughput, ...trainer];
    const success = this.#part('success', t('Success'), t('does it learn?'), this.#success.element);
    this.#training = this.#trainingSections(chartsView(throughput), chartsView(trainer));
    this.#main.append(success, ...this.#training);
    this.#page = h(
      'div',
      { class: 'dashboard' },
      this.#header.element,
      this.#banners,
      this.#facts.element,
      this.#figures.element,
      this.#main,
      this.#spoken,
      this.#failures.element,
    );
    onThemeChange(() => {
      this.#success.retheme();
      this.#curation.retheme();
      this.#lanes.retheme();
      for (const c of this.#metrics) c.chart.retheme();
    });
    host.on((m) => this.#feed.pushed(m));
    void this.#feed.open(init.input.kind === 'dashboard' ? init.input.run : '', init.daemon);
  }

  /** The list behind something of the page. */
  #list(filter: TableFilter): void {
    this.#host.act({ action: 'openTable', run: this.#m.run, filter });
  }
  #makeLanes(): LanesView {
    const host = this.#host;
    return new LanesView({
      // Thousands of spans: twice a second is enough to follow them.
      painter: new Painter(500),
      tick: tickTime,
      moment: (ms) => fine(Math.max(0, ms)),
      onOpen: (rollout) => host.act({ action: 'openTrajectory', run: this.#m.run, rollout }),
      onFollow: (follow) => this.#keep({ follow }),
      onWindow: (w, px, by) => {
        this.#feed.lanes(w, px);
        if (by === 'person') this.#keep({ lanes: w });
      },
    });
  }
  #metric(spec: MetricChart): Metric {
    return {
      spec,
      chart: titledChart({
        title: spec.title,
        says: spec.says,
        painter: this.#painter,
        sync: 'run',
        height: 150,
        open: (f) => this.#list(f),
      }),
    };
  }
  /** A section that the person may close; which are closed is kept. */
  #part(id: string, title: string, says: string, ...body: HTMLElement[]): HTMLElement {
    const { closed } = this.#kept;
    return section(
      id,
      title,
      says,
      !closed.includes(id),
      (open) =>
        this.#keep({
          closed: open ? this.#kept.closed.filter((c) => c !== id) : [...new Set([...this.#kept.closed, id])],
        }),
      body,
    );
  }
  /** Sections that an evaluation-only run does not show. */
  #trainingSections(throughput: HTMLElement, trainer: HTMLElement): HTMLElement[] {
    return [
      this.#part('throughput', t('Throughput'), t('how fast, and how fast could it be?'), throughput),
      this.#part('lanes', t('Utilisation lanes'), t('who does what, and who waits?'), this.#lanes.element),
      this.#part('curation', t('Curation'), t('which data reaches the trainer?'), this.#curation.element),
      this.#part('ledger', t('Ledger'), t('where did every rollout go?'), this.#ledger.element),
      this.#part('trainer', t('Trainer'), t('what do the updates do?'), trainer),
    ];
  }

  #dispatch(msg: Message): void {
    if (msg.type === 'open') {
      this.#lanesShown = false;
      this.#drawn = undefined;
      ZoomGroup.of('run').set(undefined);
    }
    this.#m = reduce(this.#m, msg);
    if (msg.type === 'open') this.#keep({});
    // A hidden page gets no animation frames; it is drawn when it becomes visible.
    if (!this.#asked)
      this.#asked = requestAnimationFrame(() => {
        this.#asked = 0;
        this.#render();
      });
  }
  #keep(k: Partial<SavedChoices>): void {
    this.#kept = { ...this.#kept, ...k };
    this.#host.setState({ input: { kind: 'dashboard', run: this.#m.run }, ...this.#kept });
  }

  #render(): void {
    const m = this.#m,
      old = this.#drawn;
    this.#renderBanners(m);
    if (!m.detail) {
      this.#renderLack(m);
      return;
    }
    if (this.#page.parentElement !== this.#root) replace(this.#root, this.#page);
    this.#announce(m, old);
    this.#header.render(m);
    this.#facts.render(m);
    this.#figures.render(m);
    const only = evaluationOnly(m);
    for (const s of this.#training) s.hidden = only;
    this.#success.render(m, old);
    // Marks for benchmarks: charts are drawn in the next frame.
    if (m.curves.length > 0 && !old?.curves.length)
      requestAnimationFrame(() => requestAnimationFrame(() => performance.mark(curvesDrawn)));
    this.#curation.render(m, old);
    this.#ledger.render(m.ledger, isOver(m));
    const boundsMoved = JSON.stringify(m.status?.bounds) !== JSON.stringify(old?.status?.bounds);
    if (!old || m.series !== old.series || m.detail.timeline !== old.detail?.timeline || boundsMoved)
      for (const c of this.#metrics)
        c.chart.update(
          { ...metricSpec(m, c.spec), behind: behindMetric(m, c.spec) },
          m.series.size > 0 && !old?.series.size,
        );
    this.#renderLanes(m, old);
    // Runs of one name differ by when they were begun.
    const { name, id, createdAt } = m.detail.summary,
      tab = name ? t('{0}, {1}', name, dayTime(createdAt)) : id,
      title = t('{0} · DART Studio', tab);
    if (document.title !== title) {
      document.title = title;
      this.#host.title(tab);
    }
    this.#drawn = m;
  }
  #renderLanes(m: Model, old: Model | undefined): void {
    const limits = wholeRun(m),
      live = isLive(m);
    if (old?.detail === undefined || live !== isLive(old)) this.#lanes.setLive(live);
    if (!this.#lanesShown) {
      if (m.loading || !this.#feed.whole) return;
      this.#lanesShown = true;
      const follow = live && this.#kept.follow,
        kept = this.#kept.lanes,
        inside = kept && kept.to > limits.from && kept.from < limits.to;
      this.#lanes.reveal(
        inside && !follow
          ? kept
          : live
            ? { from: limits.to - firstWindowMs(m), to: limits.to }
            : (measuredWindow(m) ?? limits),
        limits,
        follow,
      );
    }
    if (m.lanes !== old?.lanes || m.now !== old?.now || m.detail !== old.detail)
      this.#lanes.update(m.lanes, limits, measuredWindow(m));
  }
  #renderBanners(m: Model): void {
    const banners = bannersOf(m),
      key = banners.map((b) => `${b.key}${b.words}`).join('\n');
    if (key === this.#bannerKey) return;
    this.#bannerKey = key;
    replace(
      this.#banners,
      banners.map((b) =>
        bannerView(
          b.icon,
          b.words,
          b.tone,
          b.actions.map((a) =>
            button(a.label, () => this.#host.act({ action: 'command', command: a.command, argument: m.run })),
          ),
        ),
      ),
    );
  }
  /** Instead of the page: nothing to show yet, and what to do about it. */
  #renderLack(m: Model): void {
    const act = (command: 'startTraining' | 'startRuntime' | 'showLog') => (): void =>
      this.#host.act({ action: 'command', command });
    const lack = m.failure
      ? emptyState(
          'error',
          m.failure.message,
          m.failure.remedy,
          button(t('Try Again'), () => void this.#feed.open(m.run, m.daemon), { kind: 'primary' }),
          button(t('Show Log'), act('showLog')),
        )
      : m.run === ''
        ? emptyState(
            'graph-line',
            t('No run yet'),
            t('Start training and this page shows whether the policy learns, how fast, and where the data goes.'),
            button(t('Start Training…'), act('startTraining'), { kind: 'primary' }),
          )
        : m.daemon === 'ready' || m.daemon === 'starting' || m.daemon === 'attaching'
          ? pageProgress(m.daemon === 'ready' ? t('Loading run…') : t('Starting the runtime…'))
          : emptyState(
              'debug-disconnect',
              t('The runtime is not connected'),
              t('Start the runtime to load the run.'),
              button(t('Start Runtime'), act('startRuntime'), { kind: 'primary' }),
              button(t('Show Log'), act('showLog')),
            );
    replace(this.#root, h('main', { class: 'lack' }, lack));
  }
  /** Announces only what a person waits for: a change of state, a new evaluation. */
  #announce(m: Model, old: Model | undefined): void {
    if (!old?.detail) return;
    const state = stateOf(m),
      e = m.evals.at(-1),
      says: string[] = [];
    if (state && state !== stateOf(old)) says.push(t('Run: {0}.', stateWords[state].word));
    if (e && e.at > (old.evals.at(-1)?.at ?? 0))
      says.push(
        t(
          'Evaluation at {0}: {1}, {2}.',
          clock(e.at - m.detail!.summary.createdAt),
          percent(evalRate(e)),
          interval(e.low, e.high),
        ),
      );
    if (says.length > 0) text(this.#spoken, says.join(' '));
  }
}
