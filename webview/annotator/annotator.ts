/**
 * Annotate mode of the inspector: puts the tools together and brings what a person does to the daemon. The page's state
 * stays with the page.
 */
import type { AnnotationOp, TrajectoryRow, TrajectoryView } from '../../runtime/protocol/types.js';
import type { HostAction, HostError, PageInput, PageMethod, Requester } from '../protocol.js';
import type { Action } from '../ui/actions.js';
import type { Command } from '../ui/commands.js';
import type { Pushed } from '../ui/host.js';
import type { Stage } from '../ui/stage.js';
import type { Change, State } from '../inspector/state.js';
import { t } from '../ui/words.js';
import { TrajectoryTools } from './trajectoryTools.js';
import { annotatorCommands } from './commands.js';
import { Drafts } from './drafts.js';
import { Handles } from './handles.js';
import * as box from './outbox.js';
import { QueueBar } from './queueBar.js';
import { Saver, type KeptBox, type Target } from './saver.js';
import { StepTools } from './stepTools.js';
import { Verify } from './verify.js';
import { annotateRefusal } from './refusal.js';
import { begin, mark, neighbour, queueLimit, skipped, type Walk } from './walk.js';

export interface AnnotatorIo extends Requester<PageMethod<'inspector'>> {
  readonly stage: Stage;
  readonly tools: HTMLElement;
  readonly stepSlot: HTMLElement;
  state(): State;
  dispatch(c: Change): void;
  error(e: unknown): HostError;
  act(a: HostAction): void;
  announce(words: string): void;
  /** Keeps what is not on disk, at once. */
  keep(): void;
  focusSteps(): void;
  /** Shows another trajectory in this page. */
  go(input: Extract<PageInput, { kind: 'inspector' }>, known: TrajectoryView | undefined): void;
}

export class Annotator {
  readonly commands: readonly Command[];
  readonly #io: AnnotatorIo;
  readonly #saver: Saver;
  readonly #tools: TrajectoryTools;
  readonly #queue: QueueBar;
  readonly #step: StepTools;
  readonly #handles: Handles;
  readonly #verify: Verify;
  readonly #drafts = new Drafts();
  #target: Target | undefined;
  #tags: readonly string[] = [];
  #tagsOf = '';
  #walk: Walk | undefined;
  #walkOf = '';
  #walkError: string | undefined;
  #ended = false;
  /** The next of the queue, read ahead. */
  #ahead: TrajectoryView | undefined;
  #aheadOf = '';
  #drawing = false;
  #asked = false;

  constructor(io: AnnotatorIo, kept: readonly KeptBox[] = []) {
    this.#io = io;
    this.#saver = new Saver(
      { request: (m, p) => io.request(m, p), error: io.error, changed: () => this.#changed() },
      kept,
    );
    const edit = (ops: readonly AnnotationOp[], words: string): void => this.#edit(ops, words),
      draft = (field: string, op: AnnotationOp | undefined): void => this.#draft(field, op),
      left = io.focusSteps,
      { announce } = io;
    this.#verify = new Verify({
      request: (m, p, s) => io.request(m, p, s),
      error: io.error,
      announce,
      left,
      watch: (desktop) => io.act({ action: 'command', command: 'watchDesktop', argument: desktop }),
      open: (rollout) => this.#open(rollout),
      replayed: (t) => void this.#saver.ask(t),
    });
    this.#tools = new TrajectoryTools(
      {
        edit,
        draft,
        left,
        announce,
        undo: () => this.undo(),
        redo: () => this.redo(),
        retry: () => this.#saver.retryAll(),
        rebase: () => this.#with((t) => this.#saver.rebase(t)),
        discard: () => this.#with((t) => this.#saver.discard(t)),
        open: (rollout) => this.#open(rollout),
      },
      this.#verify.element,
    );
    this.#queue = new QueueBar({
      go: (d) => this.walk(d),
      review: () => this.review(),
      unreview: () => {
        this.#edit([{ op: 'reviewed', value: false }], t('Not reviewed'));
        this.#mark(false);
      },
      again: () => this.#again(),
      retry: () => void this.#askQueue(),
      close: () => io.dispatch({ type: 'annotate', on: true, queue: false }),
    });
    this.#step = new StepTools({
      edit,
      draft,
      left,
      announce,
      move: () => {
        if (!this.#handles.focus()) announce(t('This step has no point to move'));
      },
    });
    this.#handles = new Handles({
      preview: (a) => io.stage.preview(a),
      moved: (action, value) => this.#moved(action, value),
      announce,
      left,
    });
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
  /** The page goes: what is typed becomes an edit, and is kept. */
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
        this.#io.announce(t('Done again'));
      } else this.#io.announce(t('Nothing to redo'));
    });
  }

  /** Draws the tools for the page's state, and asks for what it lacks. */
  update(s: State): void {
    if (this.#drawing) return;
    this.#drawing = true;
    try {
      this.#draw(s);
    } finally {
      this.#drawing = false;
    }
  }
  receive(m: Pushed): void {
    if (m.type === 'daemon' && m.state === 'ready') {
      this.#saver.retryAll();
      if (this.#walkError) void this.#askQueue();
    }
    if (m.type !== 'annotation') return;
    const t = { run: m.run, rollout: m.rollout };
    this.#verify.progress(t, m.replay);
    if (m.revision !== undefined) this.#saver.heard(t, m.revision);
    // A verdict makes no revision.
    else if (!m.replay) void this.#saver.ask(t);
  }
  /** Edits kept from before the page was made anew. */
  resume(): void {
    this.#saver.retryAll();
  }

  // the review queue
  walk(direction: 1 | -1): void {
    const w = this.#walk,
      here = this.#io.state().input.rollout;
    if (!w || !this.#inQueue) return;
    const to = neighbour(w, here, direction);
    if (to) this.#goTo(to.row.rollout);
    else if (direction > 0) this.#end();
    else this.#io.announce(t('This is the first of the queue'));
  }
  /** Marks this one as reviewed and goes on to the next that is not. */
  review(): void {
    const s = this.#io.state(),
      w = this.#walk;
    if (!w || !this.#inQueue || this.#ended) return;
    this.#flush();
    if (this.#target && !s.annotation?.locked && !s.annotation?.reviewed)
      this.#edit([{ op: 'reviewed', value: true }], t('Reviewed'));
    this.#mark(true);
    const to = neighbour(this.#walk!, s.input.rollout, 1, true);
    if (to) this.#goTo(to.row.rollout);
    else this.#end();
  }
  get #inQueue(): boolean {
    const { input } = this.#io.state();
    return input.annotate === true && input.queue === true;
  }
  #mark(on: boolean): void {
    if (this.#walk) this.#walk = mark(this.#walk, this.#io.state().input.rollout, on);
    this.update(this.#io.state());
  }
  #end(): void {
    this.#ended = true;
    this.update(this.#io.state());
    this.#io.announce(t('The end of the review queue'));
  }
  /** Through those that were passed by; the daemon may know of more. */
  #again(): void {
    const first = this.#walk && skipped(this.#walk)[0];
    this.#ended = false;
    if (first) this.#goTo(first.row.rollout);
    this.#walkOf = '';
    this.update(this.#io.state());
  }
  #goTo(rollout: string): void {
    const { run } = this.#io.state().input;
    if (run === undefined) return;
    this.#flush();
    this.#ended = false;
    const known = this.#aheadOf === rollout ? this.#ahead : undefined;
    this.#io.go({ kind: 'inspector', run, rollout, annotate: true, queue: true }, known);
    this.#io.act({ action: 'moved', rollout });
  }
  async #askQueue(): Promise<void> {
    const { run } = this.#io.state().input;
    if (run === undefined) return;
    this.#walkOf = run;
    try {
      const w = begin(await this.#io.request('review/queue', { run, limit: queueLimit }));
      if (this.#walkOf === run) {
        this.#walk = w;
        this.#walkError = undefined;
        this.#seeTags(w.items.map((i) => i.row));
      }
    } catch (e) {
      const x = this.#io.error(e);
      this.#walkError = `${x.message} ${x.remedy}`;
    }
    this.update(this.#io.state());
  }
  /** Reads the next of the queue while one looks at this one. */
  #readAhead(s: State): void {
    const next = this.#walk && s.input.run !== undefined ? neighbour(this.#walk, s.input.rollout, 1, true) : undefined;
    if (!next || this.#aheadOf === next.row.rollout || s.input.run === undefined || !s.view) return;
    const { rollout } = next.row,
      t = { run: s.input.run, rollout };
    this.#aheadOf = rollout;
    this.#ahead = undefined;
    void this.#saver.ask(t);
    this.#io.request('trajectory/get', t).then(
      (v) => {
        if (this.#aheadOf === rollout) this.#ahead = v;
      },
      () => {
        if (this.#aheadOf === rollout) this.#aheadOf = '';
      },
    );
  }

  #draw(s: State): void {
    const on = s.input.annotate === true,
      never = on ? annotateRefusal(s) : undefined,
      { run, rollout } = s.input,
      open = on && never === undefined && s.recorded !== undefined && run !== undefined;
    const target = open ? { run, rollout } : undefined;
    if (target?.run !== this.#target?.run || target?.rollout !== this.#target?.rollout) {
      this.#flush();
      this.#target = target;
      this.#ended = false;
      if (target) void this.#saver.ask(target);
    }
    if (target && this.#tagsOf !== target.run) void this.#askTags(target.run);
    if (open && s.input.queue && this.#walkOf !== target!.run) void this.#askQueue();
    const out = target ? this.#saver.of(target) : box.empty,
      annotation = target && s.recorded ? this.#shown(out, s.recorded) : undefined;
    if (annotation !== s.annotation) {
      this.#io.dispatch({ type: 'annotation', annotation });
      s = this.#io.state();
    }
    const locked = annotation?.locked,
      error = target ? (out.failed ?? this.#saver.errorOf(target)) : undefined,
      { recorded, view } = s;
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
        tags: this.#tags,
        error,
        locked: locked ? `${locked.message} ${locked.remedy}` : undefined,
        never,
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
            ended: this.#ended,
            reviewed: annotation?.reviewed ?? false,
            locked: locked !== undefined,
            walk: this.#walk,
            error: this.#walkError,
          }
        : undefined,
    );
    const step = annotation ? view?.steps[s.selected] : undefined,
      was = step && recorded?.steps.find((x) => x.index === step.index);
    this.#step.update(
      step && annotation && view
        ? { step, recorded: was, steps: view.steps, view: annotation, locked: locked !== undefined }
        : undefined,
    );
    this.#handles.update(
      step && !locked && s.shot === 'before' && !annotation?.deleted.includes(step.index) ? step.actions : none,
    );
    if (open && s.input.queue && this.#walk) this.#readAhead(s);
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
    for (const op of ops) if (op.op === 'tags') this.#tags = [...new Set([...this.#tags, ...op.tags])].sort();
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
  async #askTags(run: string): Promise<void> {
    this.#tagsOf = run;
    // Completion is a convenience: without an answer one types.
    try {
      this.#seeTags(
        (
          await this.#io.request('trajectory/list', {
            run,
            filter: { annotated: true },
            limit: 200,
          })
        ).rows,
      );
    } catch {
      return;
    }
    this.update(this.#io.state());
  }
  #seeTags(rows: readonly TrajectoryRow[]): void {
    this.#tags = [...new Set([...this.#tags, ...rows.flatMap((r) => r.annotated?.tags ?? [])])].sort();
  }
  #surface(): { on(): boolean; toggle(): void; undo(): void; redo(): void; walk(d: 1 | -1): void; review(): void } {
    return {
      on: () => this.#target !== undefined,
      toggle: () => this.toggle(),
      undo: () => this.undo(),
      redo: () => this.redo(),
      walk: (d) => this.walk(d),
      review: () => this.review(),
    };
  }
}
const none: readonly Action[] = [];
