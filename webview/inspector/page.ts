/** The inspector's page: holds the components and updates them from the state. No requests here. */
import type { AnnotationView, TrajectoryView } from '../../runtime/protocol/types.js';
import { notesOf } from '../annotator/apply.js';
import { h, replace, set, text } from '../ui/dom.js';
import { noNotes, type Notes } from '../ui/notes.js';
import { markSteps, type StepMark } from '../ui/entropy.js';
import { Filmstrip, itemWidth } from '../ui/filmstrip.js';
import { clip } from '../ui/format.js';
import type { Frames } from '../ui/frames.js';
import { Stage } from '../ui/stage.js';
import { TimelineView } from '../ui/timelineView.js';
import { Announcer } from '../ui/commands.js';
import { splitter } from '../ui/split.js';
import { button, pageProgress, setPressed } from '../ui/toolkit.js';
import { versionSpans, type VersionSpan } from '../ui/versions.js';
import { bannerView, emptyState } from '../ui/banner.js';
import { t } from '../ui/words.js';
import { showColour } from './answer.js';
import { shownImages } from './prompt.js';
import {
  detailTitle,
  detailView,
  saidView,
  stepWords,
  undecided,
  type DetailActions,
  type DetailModel,
} from './detail.js';
import {
  assistedBadge,
  correctedBadge,
  errorView,
  facts,
  groupView,
  outcomeBadge,
  outcomeWords,
  reportView,
} from './header.js';
import { connectionWords, type State } from './state.js';
import { noStepWords } from './verdict.js';
import { switches, toolbar, type PageActions } from './toolbar.js';

export class Page {
  readonly stage: Stage;
  readonly #strip: Filmstrip;
  readonly #time: TimelineView;
  readonly #actions: PageActions;
  readonly #frames: Frames;
  readonly #announcer = new Announcer();
  readonly #banner = h('div', { class: 'ds-banners' });
  readonly #badge = h('div', { class: 'ds-badge-slot' });
  readonly #title = h('h1', { dir: 'auto' });
  readonly #follow: HTMLElement;
  readonly #contrast: HTMLElement;
  readonly #annotate: HTMLElement;
  readonly #factsSwitch: HTMLElement;
  /** Slots of the annotator's tools: over the trajectory, and over the step's detail. */
  readonly toolsSlot = h('div', { class: 'ds-tools-slot' });
  readonly stepSlot = h('div', { class: 'ds-step-slot' });
  readonly #detailTop = h('div');
  readonly #detailSaid = h('div');
  readonly #detailRest = h('div');
  readonly #facts = h('div', { class: 'ds-facts-slot' });
  readonly #report = h('div', { class: 'ds-report-slot' });
  readonly #group = h('div', { class: 'ds-group-slot' });
  readonly #detail = h('section', { class: 'ds-detail', tabindex: '0', 'aria-label': t('Step detail') });
  readonly #film = h('section', { class: 'ds-timeline', 'aria-label': t('Steps') });
  readonly #root: HTMLElement;
  readonly #head: HTMLElement;
  readonly #main: HTMLElement;
  readonly #whole = h('main', { class: 'ds-whole' });
  #state: State | undefined;
  #marks: readonly StepMark[] = [];
  #spans: readonly VersionSpan[] = [];
  #hottest = 0;
  #factsShown = false;
  #notes: Notes = noNotes;
  #notesAt: Notes = noNotes;
  #reportOpen: boolean | undefined;
  #skipped: readonly { readonly line: number; readonly why: string }[] = [];

  constructor(root: HTMLElement, frames: Frames, a: PageActions, o: { readonly split?: number }) {
    this.#actions = a;
    const context = (step: { readonly index: number }): string =>
      JSON.stringify({ webviewSection: 'step', step: step.index, preventDefaultContextMenuItems: true });
    this.stage = new Stage(frames, { shot: a.shot, heat: a.heat, context });
    this.#time = new TimelineView({ select: a.select, maxSlot: itemWidth });
    this.#strip = new Filmstrip(frames, {
      select: a.select,
      context,
      label: t('Steps of the trajectory'),
      scrolled: (from, to) => this.#time.see(from, to),
    });
    this.#frames = frames;
    frames.changed = () => this.#thumbnails();
    [this.#follow, this.#contrast, this.#annotate, this.#factsSwitch] = switches({
      ...a,
      facts: () => this.#showFacts(!this.#factsShown),
    });
    this.#detail.append(this.#detailTop, this.stepSlot, this.#detailSaid, this.#detailRest);
    this.#head = h(
      'header',
      { class: 'ds-head' },
      h(
        'div',
        { class: 'ds-head-row' },
        this.#badge,
        this.#title,
        toolbar(a, this.#follow, this.#annotate, this.#factsSwitch, this.#contrast),
      ),
      this.#facts,
      this.#group,
      this.#report,
    );
    const body = h('div', { class: 'ds-body' });
    body.append(
      h('section', { class: 'ds-stage-slot', 'aria-label': t('Screenshot') }, this.stage.element),
      splitter(body, {
        label: t('Width of the step detail'),
        value: o.split ?? 340,
        min: 240,
        max: 720,
        changed: a.split,
      }),
      this.#detail,
    );
    this.#film.append(this.#strip.element, this.#time.element);
    this.#main = h('main', { class: 'ds-main' }, body, this.#film);
    this.#root = root;
    set(root, { class: 'ds-root' });
    root.append(this.#banner, this.#head, this.toolsSlot, this.#whole, this.#main, this.#announcer.element);
  }

  say(words: string): void {
    this.#announcer.say(words);
  }
  focusStrip(): void {
    this.#strip.focus();
  }
  get marks(): readonly StepMark[] {
    return this.#marks;
  }
  /** Lines of a file that could not be used. */
  skipped(lines: readonly { readonly line: number; readonly why: string }[]): void {
    this.#skipped = lines;
  }

  render(s: State): void {
    const old = this.#state,
      v = s.view;
    this.#state = s;
    this.#banners(s);
    if (old?.input.annotate !== s.input.annotate) {
      setPressed(this.#annotate, s.input.annotate === true);
      set(this.#root, { data: { annotating: s.input.annotate ? '' : undefined } });
    }
    if (old?.input.queue !== s.input.queue || !old) {
      this.#factsSwitch.hidden = s.input.queue !== true;
      set(this.#root, { data: { reviewing: s.input.queue ? '' : undefined } });
    }
    const whole = v
      ? undefined
      : s.error
        ? emptyState(
            'error',
            s.error.message,
            s.error.remedy,
            button(t('Try again'), this.#actions.retry, { kind: 'primary', icon: 'refresh' }),
          )
        : pageProgress(t('Loading trajectory…'));
    this.#head.hidden = this.#main.hidden = this.toolsSlot.hidden = !v;
    this.#whole.hidden = !whole;
    if (whole) {
      if (old?.view !== v || old?.error !== s.error || !old) replace(this.#whole, whole);
      return;
    }
    if (!v) return;
    const said = old?.annotation !== s.annotation || old?.view !== v;
    if (said) this.#said(v, s.annotation);
    if (old?.view !== v) this.#viewChanged(v, old?.view);
    if (this.#follow.hidden === v.live || old?.pinned !== s.pinned) {
      this.#follow.hidden = !v.live;
      setPressed(this.#follow, s.pinned);
      this.#follow.setAttribute('appearance', s.pinned ? 'secondary' : 'primary');
    }
    if (
      !said &&
      old?.view === v &&
      old.selected === s.selected &&
      old.shot === s.shot &&
      old.heat === s.heat &&
      old.colour === s.colour &&
      old.input.annotate === s.input.annotate
    )
      return;
    this.#showStep(s, v, old);
  }

  /** Shows people's annotations: of the outcome, in the header; of steps, in filmstrip and timeline. */
  #said(v: TrajectoryView, a: AnnotationView | undefined): void {
    const mine = a && a.rollout === v.row.rollout ? a : undefined;
    replace(
      this.#badge,
      mine?.outcome ? correctedBadge(v, mine.outcome) : outcomeBadge(v.row.outcome, v.row.truncated, v.row.reward),
    );
    this.#notes = mine ? notesOf(mine) : noNotes;
    this.#notesAt = this.#notes.size
      ? new Map(
          v.steps.flatMap((s, i) => {
            const n = this.#notes.get(s.index);
            return n ? [[i, n] as const] : [];
          }),
        )
      : noNotes;
  }
  #viewChanged(v: TrajectoryView, old: TrajectoryView | undefined): void {
    const a = this.#actions;
    if (old?.row !== v.row) {
      text(this.#title, v.row.instruction);
      this.#title.title = v.row.instruction;
      this.#head.dataset['rollout'] = v.row.rollout;
      if (old && old.row.rollout === v.row.rollout && old.row.outcome !== v.row.outcome)
        this.#announcer.say(
          v.row.reward === undefined
            ? t('The rollout ended: {0}.', outcomeWords[v.row.outcome])
            : t('The rollout ended: {0}, reward {1}.', outcomeWords[v.row.outcome], v.row.reward),
        );
    }
    replace(this.#facts, assistedBadge(v), facts(v, false, a.siblings() ? a.open : undefined));
    if (old?.report !== v.report || old?.row !== v.row) {
      if (old?.row.rollout !== v.row.rollout) this.#reportOpen = undefined;
      replace(
        this.#report,
        errorView(v),
        reportView(v, this.#reportOpen ?? false, (open) => {
          this.#reportOpen = open;
        }),
      );
    }
    if (old?.group !== v.group || old?.row.rollout !== v.row.rollout)
      replace(this.#group, v.group && v.group.members.length > 1 ? groupView(v.group, v.row.rollout, a) : undefined);
    if (old?.group !== v.group)
      this.#group.querySelector('.mine')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    this.#contrast.hidden =
      !(v.group && v.group.members.some((m) => m.rollout !== v.row.rollout && m.steps > 0)) ||
      this.#state?.input.run === undefined;
    if (old?.steps !== v.steps || old.threshold !== v.threshold) {
      this.#marks = markSteps(v.steps, v.threshold);
      this.#spans = versionSpans(v.steps);
      this.#hottest = v.steps.reduce((m, x) => Math.max(m, ...(x.tokens ?? []).map((t) => t.entropy)), 0);
    }
  }

  /** Shows or hides the facts, which a review puts away. */
  #showFacts(on: boolean): void {
    this.#factsShown = on;
    setPressed(this.#factsSwitch, on);
    set(this.#root, { data: { facts: on ? '' : undefined } });
  }
  #showStep(s: State, v: TrajectoryView, old: State | undefined): void {
    // Measured before any change, while layout is clean.
    const scrolled = this.#detail.scrollTop;
    const step = v.steps[s.selected];
    this.#film.hidden = v.steps.length === 0;
    this.stage.update({ shot: s.shot, heat: s.heat, empty: noStepWords(v), step });
    this.#strip.update({
      steps: v.steps,
      marks: this.#marks,
      spans: this.#spans,
      selected: s.selected,
      notes: this.#notes,
    });
    this.#time.update({
      marks: this.#marks,
      numberOf: (p) => (v.steps[p]?.index ?? p) + 1,
      selected: s.selected,
      notes: this.#notesAt,
      threshold: v.threshold,
      undecided: undecided(v),
    });
    if (!step) {
      replace(
        this.#detailTop,
        h('p', { class: 'ds-quiet' }, v.live ? t('Steps appear here as they happen.') : t('No steps.')),
      );
      replace(this.#detailSaid);
      replace(this.#detailRest);
      return;
    }
    const note = this.#notes.get(step.index),
      model: DetailModel = {
        view: v,
        step,
        position: s.selected,
        mark: this.#marks[s.selected],
        hottest: this.#hottest,
        note,
      },
      before = old?.view?.steps[old.selected];
    if (before !== step || old?.view?.row !== v.row || old.view.steps.length !== v.steps.length) {
      const top = before?.index === step.index ? scrolled : 0;
      replace(this.#detailSaid, saidView(model));
      replace(this.#detailRest, detailView(model, this.#detailActions()));
      if (scrolled !== 0) this.#detail.scrollTop = top;
    }
    showColour(this.#detailRest, s.colour);
    // Fields stand where thought and actions do.
    this.#detailSaid.hidden = s.annotation !== undefined && s.annotation.rollout === v.row.rollout;
    replace(this.#detailTop, detailTitle(model));
    if (old?.view && before?.index !== step.index) this.#announcer.say(stepWords(model));
    else if (old && old.shot !== s.shot)
      this.#announcer.say(s.shot === 'after' ? t('Screen after the action') : t('Screen before the action'));
  }

  #detailActions(): DetailActions {
    return {
      highlight: (r) => this.stage.highlight(r),
      colour: this.#actions.colour,
      select: this.#actions.select,
      thumb: (hash) => this.#frames.thumb(hash),
    };
  }
  /** New thumbnails are there. */
  #thumbnails(): void {
    this.#strip.refresh();
    const list = this.#detailRest.querySelector('.ds-shown'),
      s = this.#state,
      step = s?.view?.steps[s.selected];
    if (list && step && s.view) replace(list, shownImages({ step, view: s.view }, this.#detailActions()));
  }

  #banners(s: State): void {
    const c = connectionWords(s),
      lines = this.#skipped,
      key = JSON.stringify([c, s.view && s.error, lines]);
    if (this.#banner.dataset['key'] === key) return;
    this.#banner.dataset['key'] = key;
    const some = [
      ...lines.slice(0, 3).map((l) => t('line {0}, {1}', l.line, l.why)),
      ...(lines.length > 3 ? ['…'] : []),
    ].join('; ');
    replace(
      this.#banner,
      c
        ? bannerView(
            c.busy ? 'loading codicon-modifier-spin' : 'debug-disconnect',
            c.words,
            'warning',
            c.action
              ? button(c.action === 'startRuntime' ? t('Start runtime') : t('Show log'), () =>
                  this.#actions.host(c.action!),
                )
              : undefined,
          )
        : undefined,
      s.view && s.error
        ? bannerView(
            'warning',
            `${s.error.message} ${s.error.remedy}`,
            'error',
            button(t('Try again'), this.#actions.retry),
          )
        : undefined,
      lines.length
        ? bannerView(
            'warning',
            lines.length === 1
              ? t('One line of the file could not be used: {0}.', some)
              : t('{0} lines of the file could not be used: {1}.', lines.length, some),
            'warning',
          )
        : undefined,
    );
  }
}

export const pageTitle = (v: TrajectoryView): string => clip(v.row.instruction, 40);
