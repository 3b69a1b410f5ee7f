/** The table of a run's trajectories, its failures in clusters, and what changed from version to version. */
import type { TableFilter, OutcomeKind } from '../../runtime/protocol/types.js';
import { tableFilterOf } from '../../runtime/protocol/shared.js';
import { tableViews, type InputOf, type TableView } from '../protocol.js';
import { bannerView, emptyState } from '../ui/banner.js';
import { Announcer, Commands } from '../ui/commands.js';
import { focusFirst, h, replace, set, text } from '../ui/dom.js';
import type { Host, Init, Pushed } from '../ui/host.js';
import { roving } from '../ui/roving.js';
import { button, pageProgress } from '../ui/toolkit.js';
import { steps, t, whole } from '../ui/words.js';
import { verdictLower } from '../inspector/verdict.js';
import { shortFamily } from '../dashboard/format.js';
import { Changes } from './changes.js';
import { Failures } from './failures.js';
import { FilterBar } from './filterBar.js';
import { openFilterMenu } from './filterMenu.js';
import { countWords, Grid, noRows, withOlder } from './grid.js';
import { Loader } from './loader.js';
import { Pictures } from './pictures.js';
import { closePopover } from './popover.js';
import { isEmptyFilter, Listing, newest, type SortColumn, type TableSort } from './query.js';
import { Ribbon } from './ribbon.js';

type Input = InputOf<'table'>;
interface Saved {
  readonly input: Input;
  readonly sort?: TableSort;
  /** Id of the active trajectory. */
  readonly active?: string | undefined;
}
/** Interval of drawing live changes: 100,000 rows are put in order each time. */
const liveMs = 1000;
/** Marks of the page's timeline: when rows were drawn for the first time, and after a filter. */
const marks = { rows: 'dart-studio:rows-drawn', filtered: 'dart-studio:filtered' } as const;
const viewWords: Readonly<Record<TableView, string>> = {
  list: t('List'),
  failures: t('Failures'),
  changes: t('What changed'),
};

export class App {
  readonly #host: Host<'table'>;
  readonly #root: HTMLElement;
  readonly #loader: Loader;
  readonly #pictures: Pictures;
  readonly #grid: Grid;
  readonly #bar: FilterBar;
  readonly #ribbon: Ribbon;
  readonly #listing = new Listing();
  readonly #announcer = new Announcer();
  readonly #count = h('p', { class: 'ds-quiet number', role: 'status' });
  readonly #none = h('div', { class: 'tb-none', hidden: true });
  readonly #banner = h('div', { class: 'ds-banners' });
  readonly #tools: HTMLElement;
  readonly #page: HTMLElement;
  readonly #tabs: Readonly<Record<TableView, HTMLElement>>;
  readonly #list: HTMLElement;
  readonly #failures: Failures;
  readonly #changes: Changes;
  #input: Input;
  #sort: TableSort;
  #daemon: Init['daemon'];
  #listed: Uint32Array = new Uint32Array();
  #later: ReturnType<typeof setTimeout> | undefined;
  #drawn = false;
  /** The row that was active before the page was built again, until it is listed. */
  #wanted: string | undefined;

  constructor(host: Host<'table'>, root: HTMLElement, init: Init) {
    if (init.input.kind !== 'table') throw new Error(`the table page cannot show a ${init.input.kind}`);
    this.#host = host;
    this.#root = root;
    this.#daemon = init.daemon;
    const saved = host.getState<Saved>();
    this.#input = init.input;
    this.#sort = saved?.sort ?? newest;
    this.#wanted = saved?.input.run === init.input.run ? saved.active : undefined;
    this.#pictures = new Pictures(host);
    this.#grid = new Grid(this.#pictures, {
      sort: (by) => this.#sortBy(by),
      filter: (anchor, key) =>
        openFilterMenu(anchor, key, {
          rows: this.#loader.state.rows,
          filter: () => this.#filter,
          change: (f) => this.#changeFilter(f),
        }),
      open: (rollout, beside) =>
        host.act({ action: 'openTrajectory', run: this.#input.run, rollout, ...(beside ? { beside } : {}) }),
      type: (c) => this.#bar.type(c),
      active: (at) => {
        this.#wanted = undefined;
        this.#keep();
        this.#say(at);
      },
    });
    this.#bar = new FilterBar({
      change: (f) => this.#changeFilter(f),
      keep: (filter) => host.act({ action: 'keepFilter', filter }),
      drop: (name) => host.act({ action: 'dropFilter', name }),
    });
    this.#ribbon = new Ribbon((f) => this.#changeFilter(f));
    this.#loader = new Loader(host, (urgent) => (urgent ? this.#render() : this.#soon()));
    this.#tabs = this.#makeTabs();
    this.#list = h(
      'section',
      { class: 'tb-list', role: 'tabpanel', id: 'tb-view-list', 'aria-labelledby': 'tb-tab-list' },
      this.#bar.element,
      this.#ribbon.element,
      this.#grid.element,
      this.#none,
    );
    this.#failures = new Failures(host, {
      list: (filter) => {
        this.#input = { ...this.#input, view: 'list' };
        this.#changeFilter(filter);
      },
    });
    this.#changes = new Changes(host);
    this.#tools = this.#share();
    this.#page = this.#layout();
    new Commands(this.#commands());
    host.on((m) => this.#receive(m));
    document.title = t('Trajectories');
    this.#open();
  }
  get #filter(): TableFilter {
    return this.#input.filter ?? {};
  }

  #makeTabs(): Readonly<Record<TableView, HTMLElement>> {
    return Object.fromEntries(
      tableViews.map((v) => [
        v,
        h(
          'button',
          {
            type: 'button',
            class: 'tb-tab',
            role: 'tab',
            id: `tb-tab-${v}`,
            'aria-controls': `tb-view-${v}`,
            on: { click: () => this.#show(v) },
          },
          viewWords[v],
        ),
      ]),
    ) as unknown as Record<TableView, HTMLElement>;
  }
  #layout(): HTMLElement {
    const tabs = h('div', { class: 'tb-tabs', role: 'tablist', 'aria-label': t('Views') }, Object.values(this.#tabs));
    roving(tabs, '[role=tab]');
    return h(
      'div',
      { class: 'ds-root' },
      this.#banner,
      h(
        'header',
        { class: 'tb-top' },
        h('h1', null, t('Trajectories')),
        tabs,
        h('span', { class: 'ds-spring' }),
        this.#count,
        this.#tools,
      ),
      h('main', { class: 'tb-main' }, this.#list, this.#failures.element, this.#changes.element),
      this.#announcer.element,
    );
  }
  /** The share actions of the active trajectory. */
  #share(): HTMLElement {
    const act = (action: 'exportPage' | 'copyLink') => (): void => {
        const { rollout } = this.#grid;
        if (rollout !== undefined) this.#host.act({ action, run: this.#input.run, rollout });
      },
      bar = h(
        'span',
        { class: 'tb-tools', role: 'toolbar', 'aria-label': t('Active trajectory') },
        button(t('Export the active trajectory as HTML…'), act('exportPage'), { kind: 'icon', icon: 'share' }),
        button(t('Copy a link to the active trajectory'), act('copyLink'), { kind: 'icon', icon: 'link' }),
      );
    roving(bar, 'vscode-button');
    return bar;
  }
  #commands(): ConstructorParameters<typeof Commands>[0] {
    const group = t('List');
    return [
      {
        name: 'search',
        keys: ['/'],
        words: t('Search; or type in the list'),
        group,
        run: () => this.#bar.focusSearch(),
      },
      {
        name: 'rows',
        keys: ['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown'],
        words: t('Move in the list'),
        group,
        run: () => this.#grid.focus(),
      },
      {
        name: 'openRow',
        keys: ['Enter'],
        words: t('Open the trajectory; with Ctrl, to the side'),
        group,
        run: () => this.#grid.focus(),
      },
      { name: 'clear', keys: ['Escape'], words: t('Clear filters'), group, run: () => this.#changeFilter({}) },
    ];
  }

  #open(): void {
    this.#pictures.open(this.#input.run);
    this.#drawn = false;
    performance.clearMarks(marks.rows);
    this.#keep();
    this.#render();
    if (this.#daemon === 'ready') void this.#loader.open(this.#input.run);
  }
  #receive(m: Pushed): void {
    if (m.type === 'events') for (const id of this.#loader.events(m.run, m.events)) this.#pictures.forget(id);
    else if (m.type === 'daemon') {
      const back = m.state === 'ready' && this.#daemon !== 'ready';
      this.#daemon = m.state;
      if (back) void this.#loader.open(this.#input.run);
      else this.#render();
    } else if (m.type === 'savedFilters') {
      this.#input = { ...this.#input, saved: m.saved };
      this.#keep();
      this.#render();
    } else if (m.type === 'show' && m.input.kind === 'table') {
      const other = m.input.run !== this.#input.run;
      this.#wanted = undefined;
      // A list behind something that was clicked; the page's own choices stay where it says nothing of them.
      this.#input = other ? m.input : { ...this.#input, ...m.input };
      closePopover();
      if (other) this.#open();
      else {
        this.#keep();
        this.#grid.top();
        this.#render();
      }
    }
  }
  #keep(): void {
    this.#host.setState({ input: this.#input, sort: this.#sort, active: this.#wanted ?? this.#grid.rollout });
  }
  #changeFilter(f: TableFilter): void {
    const began = performance.now();
    this.#input = { ...this.#input, filter: tableFilterOf(f) };
    this.#keep();
    this.#render();
    requestAnimationFrame(() =>
      requestAnimationFrame(() => performance.measure(marks.filtered, { start: began, end: performance.now() })),
    );
    this.#announcer.say(this.#countWords());
  }
  #sortBy(by: SortColumn): void {
    const numbers = by !== 'task' && by !== 'outcome' && by !== 'origin' && by !== 'ledger';
    this.#sort = { by, descending: this.#sort.by === by ? !this.#sort.descending : numbers };
    this.#keep();
    this.#grid.top();
    this.#render();
  }
  #show(view: TableView): void {
    this.#input = { ...this.#input, view };
    this.#keep();
    this.#render();
  }

  #soon(): void {
    this.#later ??= setTimeout(() => this.#render(), this.#loader.state.done ? liveMs : liveMs / 4);
  }
  #render(): void {
    clearTimeout(this.#later);
    this.#later = undefined;
    const s = this.#loader.state,
      known = s.rows.length > 0 || s.done;
    if (!known) {
      this.#renderLack();
      return;
    }
    if (this.#page.parentElement !== this.#root) {
      replace(this.#root, this.#page);
      focusFirst(() => this.#grid.focus());
    }
    this.#renderConnection();
    const view = this.#input.view ?? 'list';
    for (const v of tableViews) set(this.#tabs[v], { 'aria-selected': String(v === view) });
    this.#list.hidden = view !== 'list';
    this.#failures.element.hidden = view !== 'failures';
    this.#changes.element.hidden = view !== 'changes';
    if (view === 'list') this.#renderList();
    else if (view === 'failures') this.#failures.show(this.#input.run);
    else this.#changes.show(this.#input.run, s.rows, s.done);
    this.#count.hidden = this.#tools.hidden = view !== 'list';
    for (const b of this.#tools.children) set(b as HTMLElement, { disabled: this.#grid.rollout === undefined });
    text(this.#count, this.#countWords());
    if (!this.#drawn) {
      this.#drawn = true;
      requestAnimationFrame(() => requestAnimationFrame(() => performance.mark(marks.rows)));
    }
  }
  #renderList(): void {
    const { rows, done } = this.#loader.state;
    this.#listed = this.#listing.list(rows, this.#filter, this.#sort);
    this.#bar.render(this.#filter, this.#input.saved ?? [], rows.over);
    this.#ribbon.render(rows, this.#filter);
    this.#grid.render({ rows, listing: this.#listed, sort: this.#sort, filter: this.#filter });
    if (this.#wanted !== undefined && (this.#grid.goTo(this.#wanted) || done)) this.#wanted = undefined;
    noRows(
      this.#none,
      this.#listed.length > 0
        ? undefined
        : rows.length > 0
          ? done
            ? t('No matches')
            : t('No match so far; loading the rest.')
          : t('No rollout has started.'),
    );
  }
  #countWords(): string {
    const { rows, total, older } = this.#loader.state;
    const words =
      isEmptyFilter(this.#filter) && rows.length < total
        ? t('{0} trajectories, {1} read', whole(total), whole(rows.length))
        : countWords(this.#listed.length, rows.length, total);
    return withOlder(words, older);
  }
  #renderLack(): void {
    const { error } = this.#loader.state,
      busy = this.#daemon === 'ready' || this.#daemon === 'starting' || this.#daemon === 'attaching';
    const act = (command: 'startRuntime' | 'showLog') => (): void => this.#host.act({ action: 'command', command });
    replace(
      this.#root,
      h(
        'main',
        { class: 'tb-lack' },
        error
          ? emptyState(
              'error',
              error.message,
              error.remedy,
              button(t('Try again'), () => void this.#loader.open(this.#input.run), { icon: 'refresh' }),
            )
          : busy
            ? pageProgress(this.#daemon === 'ready' ? t('Loading run…') : t('Starting the runtime…'))
            : emptyState(
                'debug-disconnect',
                t('The runtime is not connected'),
                t('Start the runtime to load the run.'),
                button(t('Start Runtime'), act('startRuntime'), { kind: 'primary' }),
                button(t('Show Log'), act('showLog')),
              ),
      ),
    );
  }
  #renderConnection(): void {
    const { error } = this.#loader.state;
    replace(
      this.#banner,
      error
        ? bannerView(
            'error',
            [t('Not all trajectories could be read.'), error.message, error.remedy].filter(Boolean).join(' '),
            'error',
            button(t('Try again'), () => void this.#loader.open(this.#input.run)),
          )
        : this.#daemon === 'ready'
          ? undefined
          : bannerView('debug-disconnect', t('The runtime is not connected: showing last loaded data.'), 'warning'),
    );
  }
  /** The active row, for screen readers. */
  #say(at: number): void {
    const { rows } = this.#loader.state,
      i = this.#listed[at];
    if (i === undefined) return;
    this.#announcer.say(
      [
        shortFamily(rows.word('task', i)),
        verdictLower(rows.word('outcome', i) as OutcomeKind, rows.numbers.reward[i]),
        steps(rows.numbers.steps[i]!),
      ].join(', '),
    );
  }
}
