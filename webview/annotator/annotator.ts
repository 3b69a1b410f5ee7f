/**
 * Annotate mode of the inspector: puts the tools together and brings what a person does to the daemon. The page's state
 * stays with the page.
 */
import type { AnnotationOp, TrajectoryView } from '../../runtime/protocol/types.js';
import type { HostAction, HostError, InputOf, PageMethod, Requester } from '../protocol.js';
import type { Action } from '../ui/actions.js';
import type { Command } from '../ui/commands.js';
import type { Pushed } from '../ui/host.js';
import type { Stage } from '../ui/stage.js';
import type { Change, State } from '../inspector/state.js';
import { t } from '../ui/words.js';
import { TrajectoryTools } from './trajectoryTools.js';
import { annotatorCommands, type AnnotatorSurface } from './commands.js';
import { Drafts } from './drafts.js';
import { EarlyKeys, type Place } from './earlyKeys.js';
import { Handles } from './handles.js';
import { KnownTags } from './knownTags.js';
import * as box from './outbox.js';
import { QueueBar } from './queueBar.js';
import { ReviewWalk } from './reviewWalk.js';
import { Saver, type KeptBox, type Target } from './saver.js';
import { StepTools } from './stepTools.js';
import { Verify } from './verify.js';
import { annotateRefusal } from './refusal.js';

export interface AnnotatorIo extends Requester<PageMethod<'inspector'>> {
  readonly stage: Stage;
  readonly tools: HTMLElement;
  readonly stepSlot: HTMLElement;
  state(): State;
  dispatch(c: Change): void;
  error(e: unknown): HostError;
  act(a: HostAction): void;
  announce(words: string): void;
  /** Saves pending edits in the page's state, at once. */
  keep(): void;
  focusSteps(): void;
  /** Shows another trajectory in this page. */
  go(input: InputOf<'inspector'>, known: TrajectoryView | undefined): void;
}

export class Annotator {
  readonly commands: readonly Command[];
  readonly #io: AnnotatorIo;
  readonly #saver: Saver;
  readonly #tools: TrajectoryTools;
  readonly #queue: QueueBar;
  readonly #review: ReviewWalk;
  readonly #step: StepTools;
  readonly #handles: Handles;
  readonly #verify: Verify;
  readonly #drafts = new Drafts();
  readonly #early = new EarlyKeys();
  #target: Target | undefined;
  readonly #tags: KnownTags;
  #drawing = false;
  #asked = false;

  constructor(io: AnnotatorIo, kept: readonly KeptBox[] = []) {
    this.#io = io;
    this.#saver = new Saver(
      { request: (m, p) => io.request(m, p), error: io.error, changed: () => this.#changed() },
      kept,
    );
    this.#tags = new KnownTags(io);
    this.#verify = this.#makeVerify();
    this.#tools = this.#makeTrajectoryTools();
    this.#review = this.#makeReview();
    this.#queue = this.#makeQueueBar();
    this.#step = this.#makeStepTools();
    this.#handles = this.#makeHandles();
    io.stage.attach(this.#handles);
    io.tools.append(this.#queue.element, this.#tools.element);
    io.stepSlot.append(this.#step.element);
    this.commands = annotatorCommands({
      ...this.#surface(),
      tools: this.#tools,
      step: this.#step,
      verify: this.#verify,
    });
  }

  #makeVerify(): Verify {
    const io = this.#io;
    return new Verify({
      request: (m, p, s) => io.request(m, p, s),
      error: io.error,
      announce: io.announce,
      left: io.focusSteps,
      watch: (desktop) => io.act({ action: 'command', command: 'watchDesktop', argument: desktop }),
      open: (rollout) => this.#open(rollout),
      replayed: (t) => void this.#saver.ask(t),
    });
  }
  #makeTrajectoryTools(): TrajectoryTools {
    const io = this.#io;
    return new TrajectoryTools(
      {
        edit: (ops, words) => this.#edit(ops, words),
        draft: (field, op) => this.#draft(field, op),
        left: io.focusSteps,
        announce: io.announce,
        undo: () => this.undo(),
        redo: () => this.redo(),
        retry: () => this.#saver.retryAll(),
        rebase: () => this.#with((t) => this.#saver.rebase(t)),
        discard: () => this.#with((t) => this.#saver.discard(t)),
        open: (rollout) => this.#open(rollout),
      },
      this.#verify.element,
    );
  }
  #makeReview(): ReviewWalk {
    const io = this.#io;
    return new ReviewWalk({
      ...io,
      saver: this.#saver,
      flush: () => this.#flush(),
      edit: (ops, words) => this.#edit(ops, words),
      update: () => this.update(io.state()),
      sawRows: (rows) => this.#tags.seeRows(rows),
    });
  }
  #makeQueueBar(): QueueBar {
    const io = this.#io;
    return new QueueBar({
      go: (d) => this.walk(d),
      review: () => this.review(),
      unreview: () => this.#review.unreview(),
      again: () => this.#review.again(),
      retry: () => void this.#review.read(),
      close: () => io.dispatch({ type: 'annotate', on: true, queue: false }),
    });
  }
  #makeStepTools(): StepTools {
    const io = this.#io;
    return new StepTools({
      edit: (ops, words) => this.#edit(ops, words),
      draft: (field, op) => this.#draft(field, op),
      left: io.focusSteps,
      announce: io.announce,
      move: () => {
        if (!this.#handles.focus()) io.announce(t('This step has no point to move'));
      },
    });
  }
  #makeHandles(): Handles {
    const io = this.#io;
    return new Handles({
      preview: (a) => io.stage.preview(a),
      moved: (action, value) => this.#moved(action, value),
      announce: io.announce,
      left: io.focusSteps,
    });
  }

  /** Edits that are not on disk, drafts among them; survives the page. */
  get kept(): KeptBox[] {
    const out = this.#saver.keep;
    for (const { target, ops } of this.#drafts.values()) {
      if (!ops.size) continue;
      const at = out.findIndex((k) => k.run === target.run && k.rollout === target.rollout),
        edits = [[...ops.values()]];
      if (at < 0) out.push({ ...target, base: this.#saver.of(target).view?.revision ?? 0, edits });
      else out[at] = { ...out[at]!, edits: [...out[at]!.edits, ...edits] };
    }
    return out;
  }
  /** The page is closing: typed text becomes an edit and is saved in its state. */
  leave(): void {
    this.#flush();
  }
  toggle(): void {
    const s = this.#io.state(),
      on = s.input.annotate !== true;
    this.#flush();
    this.#io.dispatch({ type: 'annotate', on });
    this.#io.announce(on ? (annotateRefusal(this.#io.state()) ?? t('Annotate mode')) : t('Annotate mode off'));
  }
  undo(): void {
    this.#with((to) => {
      this.#flush();
      if (box.canUndo(this.#saver.of(to))) {
        this.#saver.undo(to);
        this.#io.announce(t('Undone'));
      } else this.#io.announce(t('Nothing to undo'));
    });
  }
  redo(): void {
    this.#with((to) => {
      if (box.canRedo(this.#saver.of(to))) {
        this.#saver.redo(to);
        this.#io.announce(t('Redone'));
      } else this.#io.announce(t('Nothing to redo'));
    });
  }

  /** Draws the tools for the page's state, and requests what it lacks. */
  update(s: State): void {
    if (this.#drawing) return;
    this.#drawing = true;
    try {
      this.#draw(s);
    } finally {
      this.#drawing = false;
    }
    this.#early.update(this.#place, this.#isRead);
  }
  receive(m: Pushed): void {
    if (m.type === 'daemon' && m.state === 'ready') {
      this.#saver.retryAll();
      if (this.#review.error) void this.#review.read();
    }
    if (m.type !== 'annotation') return;
    const t = { run: m.run, rollout: m.rollout };
    this.#verify.progress(t, m.replay);
    if (m.revision !== undefined) this.#saver.heard(t, m.revision);
    // A verdict makes no revision.
    else if (!m.replay) void this.#saver.ask(t);
  }
  /** A replay that began before the page was rebuilt. */
  replaying(t: Target): void {
    void this.#verify.follow(t);
  }
  /** Edits saved before the page was rebuilt. */
  resume(): void {
    this.#saver.retryAll();
  }

  /** Goes to the next or the previous trajectory of the review queue. */
  walk(direction: 1 | -1): void {
    this.#review.walk(direction);
  }
  /** Marks this one as reviewed and goes on to the next that is not. */
  review(): void {
    this.#review.review();
  }

  #draw(s: State): void {
    const on = s.input.annotate === true,
      lockReason = on ? annotateRefusal(s) : undefined,
      { run, rollout } = s.input,
      open = on && lockReason === undefined && s.recorded !== undefined && run !== undefined;
    const target = open ? { run, rollout } : undefined;
    if (target?.run !== this.#target?.run || target?.rollout !== this.#target?.rollout) {
      this.#flush();
      this.#target = target;
      this.#review.moved();
      if (target) void this.#saver.ask(target);
    }
    if (target) void this.#readTags(target.run);
    if (target && s.input.queue && this.#review.lacks(target)) void this.#review.read();
    const out = target ? this.#saver.of(target) : box.empty,
      annotation = target && s.recorded ? this.#shown(out, s.recorded) : undefined;
    if (annotation !== s.annotation) {
      this.#io.dispatch({ type: 'annotation', annotation });
      s = this.#io.state();
    }
    this.#drawTrajectoryTools(s, target, out, annotation, lockReason);
    this.#drawStepTools(s, annotation);
    if (target && s.input.queue) this.#review.readAhead(s);
  }
  /** Over the trajectory: its outcome, tags and note, the review queue, replays and pool. */
  #drawTrajectoryTools(
    s: State,
    target: Target | undefined,
    out: box.Outbox,
    annotation: ReturnType<typeof box.shown>,
    lockReason: string | undefined,
  ): void {
    const on = s.input.annotate === true,
      { run, rollout } = s.input;
    const locked = annotation?.locked,
      error = target ? (out.failed ?? this.#saver.errorOf(target)) : undefined,
      { recorded } = s;
    this.#tools.element.hidden = !on || !recorded;
    if (on && recorded)
      this.#tools.update({
        recorded,
        view: annotation ? { ...annotation, parts: annotation.parts.filter((p) => p !== rollout) } : undefined,
        saved: box.saveState(out),
        revision: out.view?.revision ?? 0,
        elsewhere: target ? this.#saver.unsavedElsewhere(target) : 0,
        undo: box.canUndo(out),
        redo: box.canRedo(out),
        tags: this.#tags.all,
        error,
        locked: locked ? `${locked.message} ${locked.remedy}` : undefined,
        lockReason,
      });
    this.#verify.update(
      target && annotation && recorded
        ? { target, view: annotation, recorded, locked: locked !== undefined, saved: box.saveState(out) === 'saved' }
        : undefined,
    );
    this.#queue.update(
      on && s.input.queue && run !== undefined
        ? {
            rollout,
            ended: this.#review.ended,
            reviewed: annotation?.reviewed ?? false,
            locked: locked !== undefined,
            walk: this.#review.queue,
            error: this.#review.error,
          }
        : undefined,
    );
  }
  #drawStepTools(s: State, annotation: ReturnType<typeof box.shown>): void {
    const { recorded, view } = s,
      locked = annotation?.locked !== undefined;
    const step = annotation ? view?.steps[s.selected] : undefined,
      was = step && recorded?.steps.find((x) => x.index === step.index);
    this.#step.update(
      step && annotation && view ? { step, recorded: was, steps: view.steps, view: annotation, locked } : undefined,
    );
    this.#handles.update(
      step && !locked && s.shot === 'before' && !annotation?.deleted.includes(step.index) ? step.actions : none,
    );
  }
  #shownOf:
    | { readonly out: box.Outbox; readonly steps: TrajectoryView['steps']; readonly view: ReturnType<typeof box.shown> }
    | undefined;
  #shown(out: box.Outbox, recorded: TrajectoryView): ReturnType<typeof box.shown> {
    const old = this.#shownOf;
    if (old && old.out.view === out.view && old.out.jobs === out.jobs && old.steps === recorded.steps) return old.view;
    return (this.#shownOf = { out, steps: recorded.steps, view: box.shown(out, recorded.steps) }).view;
  }
  /** Many changes are drawn once; never while drawing. */
  #changed(): void {
    this.#io.keep();
    if (this.#asked) return;
    this.#asked = true;
    queueMicrotask(() => {
      this.#asked = false;
      this.update(this.#io.state());
    });
  }
  #edit(ops: readonly AnnotationOp[], words: string): void {
    const t = this.#target;
    if (!t || this.#io.state().annotation?.locked) return;
    this.#saver.edit(t, ops);
    this.#io.announce(words);
    this.#tags.seeOps(ops);
  }
  #moved(action: number, value: Action): void {
    const s = this.#io.state(),
      step = s.view?.steps[s.selected];
    if (step) this.#edit([{ op: 'action', step: step.index, action, value }], t('Point moved'));
  }
  #draft(field: string, op: AnnotationOp | undefined): void {
    if (!this.#target) return;
    this.#drafts.set(this.#target, field, op);
    // A draft that ends becomes an edit in this very turn: no state is kept that has neither, since the page may be
    // gone after any.
    if (op) this.#io.keep();
    else queueMicrotask(() => this.#io.keep());
  }
  #flush(): void {
    this.#tools.flush();
    this.#step.flush();
    this.#handles.flush();
  }
  #with(run: (t: Target) => void): void {
    if (this.#target && !this.#io.state().annotation?.locked) run(this.#target);
  }
  #open(rollout: string): void {
    const { run } = this.#io.state().input;
    if (run !== undefined) this.#io.act({ action: 'openTrajectory', run, rollout });
  }
  async #readTags(run: string): Promise<void> {
    if (await this.#tags.read(run)) this.update(this.#io.state());
  }
  get #place(): Place | undefined {
    return this.#target && { target: this.#target, step: this.#io.state().selected };
  }
  /** The annotations are there, or the page says why they are not. */
  get #isRead(): boolean {
    const t = this.#target;
    return t !== undefined && (this.#io.state().annotation !== undefined || this.#saver.errorOf(t) !== undefined);
  }
  #surface(): Omit<AnnotatorSurface, 'tools' | 'step' | 'verify'> {
    return {
      edit: (run) => {
        const place = this.#place;
        if (!place) return;
        if (this.#isRead) run();
        else this.#early.add(place, run);
      },
      toggle: () => this.toggle(),
      undo: () => this.undo(),
      redo: () => this.redo(),
      walk: (d) => this.walk(d),
      review: () => this.review(),
    };
  }
}
const none: readonly Action[] = [];
