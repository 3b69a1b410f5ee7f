/** Trajectory inspector: wires the page to the host. */
import { t } from '../ui/words.js';
import type { StepView, TrajectoryView } from '../../runtime/protocol/types.js';
import { Annotator, type AnnotatorIo } from '../annotator/annotator.js';
import type { KeptBox } from '../annotator/saver.js';
import { Commands, type Command } from '../ui/commands.js';
import { focusFirst } from '../ui/dom.js';
import { nextHigh } from '../ui/entropy.js';
import { Frames } from '../ui/frames.js';
import { trajectoryEvents } from '../protocol.js';
import { hostErrorOf, type Host, type Init, type Pushed } from '../ui/host.js';
import { bestContrast } from './contrast.js';
import { inspectorCommands } from './commands.js';
import { Page, pageTitle } from './page.js';
import type { PageActions } from './toolbar.js';
import {
  initial,
  positionOf,
  reduce,
  stepShown,
  type Change,
  type InspectorInput,
  type SavedView,
  type State,
} from './state.js';

interface Saved extends SavedView {
  readonly input: InspectorInput;
  readonly zoom?: number;
  readonly split?: number;
  /** Edits that are not on disk yet. */
  readonly edits?: readonly KeptBox[];
}

export class App {
  readonly #host: Host<'inspector'>;
  readonly #frames: Frames;
  readonly #keys: Commands;
  #state: State;
  #page: Page;
  #annotator: Annotator;
  #split: number | undefined;
  #fetching: AbortController | undefined;
  #subscribed = '';
  #saving: ReturnType<typeof setTimeout> | undefined;
  #focused = false;

  constructor(host: Host<'inspector'>, root: HTMLElement, init: Init) {
    this.#host = host;
    this.#frames = new Frames(host);
    if (init.input.kind !== 'inspector') throw new Error(`the inspector cannot show a ${init.input.kind}`);
    const saved = this.#host.getState<Saved>(),
      mine = saved?.input?.kind === 'inspector' && saved.input.rollout === init.input.rollout ? saved : undefined;
    this.#split = saved?.split;
    this.#state = initial(
      init.input.step === undefined && mine?.input.step !== undefined
        ? { ...init.input, step: mine.input.step }
        : init.input,
      init.daemon,
      mine,
    );
    this.#page = new Page(root, this.#frames, this.#pageActions(), { split: this.#split });
    this.#annotator = new Annotator(this.#annotatorIo(), saved?.edits ?? []);
    this.#keys = new Commands([...this.#commands(), ...this.#annotator.commands]);
    this.#host.on((m) => this.#receive(m, this.#keys));
    addEventListener('pagehide', () => {
      this.#annotator.leave();
      this.#flush();
    });
    document.title = t('Trajectory');
    this.#shown();
    for (const { run, rollout } of host.going('annotation/replay')) this.#annotator.replaying({ run, rollout });
    if (init.daemon === 'ready') this.#annotator.resume();
    if (mine?.zoom !== undefined) this.#page.stage.setZoom(mine.zoom);
    // VS Code closes the panel of a page that has saved nothing when its window is reloaded.
    this.#flush();
  }
  #pageActions(): PageActions {
    return {
      select: (at) => this.#dispatch({ type: 'select', at }),
      shot: (shot) => this.#dispatch({ type: 'shot', shot }),
      heat: (on) => this.#dispatch({ type: 'heat', on }),
      colour: (by) => this.#dispatch({ type: 'colour', by }),
      follow: () => this.#dispatch({ type: 'follow' }),
      siblings: () => this.#state.input.run !== undefined,
      retry: () => void this.#load(),
      copy: () => this.#copy(),
      save: () => this.#saveImage(),
      text: () => this.#openText(),
      link: () => this.#copyLink(),
      exportPage: () => this.#exportPage(),
      contrast: () => this.#contrast(),
      open: (rollout) => this.#open(rollout),
      compare: (rollout) => this.#compare(rollout),
      help: () => this.#keys.help(),
      annotate: () => this.#annotator.toggle(),
      host: (command) => this.#host.act({ action: 'command', command }),
      split: (w) => {
        this.#split = w;
        this.#save();
      },
    };
  }
  #annotatorIo(): AnnotatorIo {
    return {
      stage: this.#page.stage,
      tools: this.#page.toolsSlot,
      stepSlot: this.#page.stepSlot,
      state: () => this.#state,
      dispatch: (c) => this.#dispatch(c),
      request: (m, p, signal) => this.#host.request(m, p, signal),
      error: hostErrorOf,
      act: (a) => this.#host.act(a),
      announce: (words) => this.#page.say(words),
      keep: () => {
        this.#flush();
      },
      focusSteps: () => this.#page.focusStrip(),
      go: (input, known) => this.#move(input, known),
    };
  }
  #commands(): readonly Command[] {
    return inspectorCommands({
      state: () => this.#state,
      stage: () => this.#page.stage,
      dispatch: (c) => this.#dispatch(c),
      save: () => this.#save(),
      jump: (direction) => this.#jump(direction),
      copy: (context) => this.#copy(context),
      saveImage: (context) => this.#saveImage(context),
      openText: () => this.#openText(),
      link: () => this.#copyLink(),
      exportPage: () => this.#exportPage(),
      contrast: () => this.#contrast(),
    });
  }
  #dispatch(c: Change): void {
    const old = this.#state;
    this.#state = reduce(this.#state, c);
    if (this.#state === old) return;
    if (this.#state.view && this.#state.view.framesDir !== old.view?.framesDir)
      this.#frames.open(this.#state.input.run, this.#state.view.framesDir);
    this.#page.render(this.#state);
    this.#annotator.update(this.#state);
    if (this.#state.view && !old.view) this.#focusOnce();
    if (this.#state.view && this.#state.view.row.instruction !== old.view?.row.instruction)
      this.#titled(this.#state.view);
    if (this.#state.stale) void this.#load();
    this.#prefetch();
    this.#save();
  }
  #titled(v: TrajectoryView): void {
    document.title = pageTitle(v);
    this.#host.title(document.title);
  }
  #focusOnce(): void {
    if (this.#focused) return;
    this.#focused = true;
    focusFirst(() => this.#page.focusStrip());
  }
  async #load(): Promise<void> {
    const { run, rollout } = this.#state.input;
    if (run === undefined) return;
    this.#fetching?.abort();
    const mine = (this.#fetching = new AbortController());
    this.#dispatch({ type: 'loading' });
    try {
      const view = await this.#host.request('trajectory/get', { run, rollout }, mine.signal);
      if (mine.signal.aborted) return;
      this.#dispatch({ type: 'loaded', view });
      if (view.seq !== undefined && this.#subscribed !== `${run}|${rollout}`) {
        this.#subscribed = `${run}|${rollout}`;
        this.#host.subscribe({ run, sinceSeq: view.seq, rollout, types: trajectoryEvents });
      }
    } catch (e) {
      if (!mine.signal.aborted) this.#dispatch({ type: 'failed', error: hostErrorOf(e) });
    }
  }
  /** The pictures likely to be shown next. */
  #prefetch(): void {
    const steps = this.#state.view?.steps;
    if (!steps || this.#state.selected < 0) return;
    for (const d of [1, -1, 2, -2]) {
      const hash = steps[this.#state.selected + d]?.frame.hash;
      if (hash) this.#frames.picture(hash);
    }
    const after = steps[this.#state.selected]?.after?.hash;
    if (after) this.#frames.picture(after);
  }
  #save(): void {
    this.#saving ??= setTimeout(() => this.#flush(), 250);
  }
  #flush(): void {
    clearTimeout(this.#saving);
    this.#saving = undefined;
    const { document: _d, ...input } = this.#state.input,
      index = this.#state.view ? stepShown(this.#state) : input.step;
    const saved: Saved = {
      input: { ...input, step: this.#state.pinned ? undefined : index },
      shot: this.#state.shot,
      heat: this.#state.heat,
      colour: this.#state.colour,
      pinned: this.#state.pinned,
      zoom: this.#page.stage.zoomed,
      split: this.#split,
      edits: this.#annotator.kept.length ? this.#annotator.kept : undefined,
    };
    this.#host.setState({ ...saved });
  }
  /** The step a menu was opened on, else the selected one. */
  #stepOf(context: unknown): StepView | undefined {
    const steps = this.#state.view?.steps ?? [],
      index = typeof context === 'object' && context !== null && 'step' in context ? context.step : undefined;
    return typeof index === 'number' ? steps[positionOf(steps, index)] : steps[this.#state.selected];
  }
  #copy(context?: unknown): void {
    const step = this.#stepOf(context);
    if (step) this.#host.act({ action: 'copy', text: JSON.stringify(step, null, 2) });
  }
  #saveImage(context?: unknown): void {
    const step = this.#stepOf(context),
      link = step && (this.#state.shot === 'after' && context === undefined ? (step.after ?? step.frame) : step.frame);
    if (step && link)
      this.#host.act({
        action: 'saveImage',
        path: this.#frames.path(link.hash),
        name: `${this.#state.input.rollout}-step-${step.index + 1}${link === step.frame ? '' : '-after'}.png`,
      });
  }
  #copyLink(): void {
    const { run, rollout } = this.#state.input,
      step = stepShown(this.#state);
    if (run !== undefined)
      this.#host.act({ action: 'copyLink', run, rollout, ...(step === undefined ? {} : { step }) });
  }
  #exportPage(): void {
    const { run, rollout } = this.#state.input;
    this.#host.act({ action: 'exportPage', ...(run === undefined ? {} : { run, rollout }) });
  }
  #openText(): void {
    this.#host.act({
      action: 'openText',
      rollout: this.#state.input.rollout,
      run: this.#state.input.run,
    });
  }
  #open(rollout: string): void {
    if (this.#state.input.run !== undefined)
      this.#host.act({ action: 'openTrajectory', run: this.#state.input.run, rollout });
  }
  #compare(rollout: string | undefined): void {
    if (this.#state.input.run !== undefined && rollout !== undefined)
      this.#host.act({
        action: 'compare',
        run: this.#state.input.run,
        left: this.#state.input.rollout,
        right: rollout,
      });
  }
  #contrast(): void {
    this.#compare(bestContrast(this.#state.view?.group, this.#state.input.rollout));
  }
  #jump(direction: 1 | -1): void {
    const to = nextHigh(this.#page.marks, this.#state.selected, direction);
    if (to !== undefined) this.#dispatch({ type: 'select', at: to });
  }
  /** Draws a state from scratch: a new page, or another trajectory in it. */
  #shown(): void {
    this.#fetching?.abort();
    this.#page.skipped(this.#state.input.skipped ?? []);
    if (this.#state.view) this.#frames.open(this.#state.input.run, this.#state.view.framesDir);
    this.#page.render(this.#state);
    this.#annotator.update(this.#state);
    this.#prefetch();
    if (this.#state.view) {
      this.#titled(this.#state.view);
      this.#focusOnce();
    } else void this.#load();
  }
  /**
   * Another trajectory of the run in this page. What is known of it is shown at once, and asked for anew all the same.
   */
  #move(input: InspectorInput, known: TrajectoryView | undefined): void {
    this.#state = reduce(this.#state, { type: 'show', input });
    if (known) this.#state = reduce(this.#state, { type: 'loaded', view: known });
    this.#shown();
    if (known) void this.#load();
    this.#flush();
  }
  /** Whether the page shows that already: it may have walked there through the queue. */
  #there(i: InspectorInput): boolean {
    return (
      !i.document &&
      !this.#state.input.document &&
      i.run === this.#state.input.run &&
      i.rollout === this.#state.input.rollout &&
      // The host knows the step that is looked at, too.
      (i.step === undefined || i.step === stepShown(this.#state)) &&
      (this.#state.view !== undefined || this.#state.loading)
    );
  }
  #receive(m: Pushed, keys: Commands): void {
    this.#annotator.receive(m);
    if (m.type === 'events' && m.run === this.#state.input.run)
      this.#dispatch({ type: 'events', events: m.events, ended: m.ended });
    else if (m.type === 'daemon') {
      const back = m.state === 'ready' && this.#state.daemon.state !== 'ready';
      this.#dispatch({ type: 'daemon', state: m.state, error: m.error });
      if (back && (this.#state.view?.live || !this.#state.view)) void this.#load();
    } else if (m.type === 'show' && m.input.kind === 'inspector' && this.#there(m.input)) {
      if (m.input.annotate) this.#dispatch({ type: 'annotate', on: true, queue: m.input.queue });
    } else if (m.type === 'show' && m.input.kind === 'inspector') {
      // The same document written anew (a file that grew) keeps the step one looks at.
      const again =
        m.input.rollout === this.#state.input.rollout && m.input.step === undefined
          ? stepShown(this.#state)
          : undefined;
      this.#state = reduce(this.#state, {
        type: 'show',
        input: again === undefined ? m.input : { ...m.input, step: again },
      });
      this.#shown();
      this.#flush();
    } else if (m.type === 'do') keys.run(m.what, m.context);
  }
}
