/** The walk through a run's review queue: where it is, going on, and reading the next trajectory ahead. */
import type { AnnotationOp, TrajectoryRow, TrajectoryView } from '../../runtime/protocol/types.js';
import type { HostAction, HostError, InputOf, Requester } from '../protocol.js';
import type { State } from '../inspector/state.js';
import { t } from '../ui/words.js';
import { annotateRefusal } from './refusal.js';
import type { Saver, Target } from './saver.js';
import { begin, continued, limitAfter, mark, neighbour, placeOf, queueLimit, skipped, type Walk } from './walk.js';

export interface ReviewWalkIo extends Requester<'review/queue' | 'trajectory/get'> {
  readonly saver: Saver;
  state(): State;
  error(e: unknown): HostError;
  act(a: HostAction): void;
  announce(words: string): void;
  /** Shows another trajectory in this page. */
  go(input: InputOf<'inspector'>, known: TrajectoryView | undefined): void;
  /** Commits the text that is being typed as an edit. */
  flush(): void;
  edit(ops: readonly AnnotationOp[], words: string): void;
  /** The tools are to be drawn anew. */
  update(): void;
  sawRows(rows: readonly TrajectoryRow[]): void;
}

export class ReviewWalk {
  readonly #io: ReviewWalkIo;
  #queue: Walk | undefined;
  /** Run whose queue it is, or was asked for; '' before the first. */
  #run = '';
  /** It was asked for since the page shows this trajectory. */
  #asked = false;
  #ending = false;
  #error: string | undefined;
  #ended = false;
  /** The next of the queue, read ahead. */
  #ahead: TrajectoryView | undefined;
  #aheadOf = '';

  constructor(io: ReviewWalkIo) {
    this.#io = io;
  }
  get queue(): Walk | undefined {
    return this.#queue;
  }
  /** Whether it is to be read: it is another run's, or of before the trajectory shown was in it. */
  lacks({ run, rollout }: Target): boolean {
    return this.#run !== run || (!this.#asked && this.#queue !== undefined && placeOf(this.#queue, rollout) < 0);
  }
  /** Why the queue could not be read. */
  get error(): string | undefined {
    return this.#error;
  }
  get ended(): boolean {
    return this.#ended;
  }
  /** The page shows another trajectory. */
  moved(): void {
    this.#ended = false;
    this.#asked = false;
    // Without a queue there is nowhere to go on to.
    if (this.#queue) this.#error = undefined;
  }

  walk(direction: 1 | -1): void {
    const w = this.#queue,
      here = this.#io.state().input.rollout;
    if (!w || !this.#inQueue) return;
    const to = neighbour(w, here, direction);
    if (to) this.#goTo(to.row.rollout);
    else if (direction > 0) void this.#end();
    else this.#io.announce(t('This is the first of the queue'));
  }
  /**
   * Marks this one as reviewed and goes on to the next that is not. One that cannot be annotated is passed by; one that
   * is still loading, or locked, stays.
   */
  review(): void {
    const s = this.#io.state(),
      w = this.#queue;
    if (!w || !this.#inQueue || this.#ended) return;
    if (annotateRefusal(s) === undefined) {
      const { annotation } = s;
      if (!annotation || annotation.locked) {
        this.#io.announce((annotation?.locked ?? this.#unread(s))?.message ?? t('Loading…'));
        return;
      }
      this.#io.flush();
      if (!annotation.reviewed) this.#io.edit([{ op: 'reviewed', value: true }], t('Reviewed'));
      this.#mark(true);
    }
    const to = neighbour(this.#queue!, s.input.rollout, 1, true);
    if (to) this.#goTo(to.row.rollout);
    else void this.#end();
  }
  /** Why the trajectory or its annotations could not be read. */
  #unread({ input: { run, rollout }, error }: State): HostError | undefined {
    return error ?? (run === undefined ? undefined : this.#io.saver.errorOf({ run, rollout }));
  }
  get #inQueue(): boolean {
    const { input } = this.#io.state();
    return input.annotate === true && input.queue === true;
  }
  unreview(): void {
    this.#io.edit([{ op: 'reviewed', value: false }], t('Not reviewed'));
    this.#mark(false);
  }
  #mark(on: boolean): void {
    if (this.#queue) this.#queue = mark(this.#queue, this.#io.state().input.rollout, on);
    this.#io.update();
  }
  /** At the end of what was listed: goes on where the daemon lists more by now. */
  async #end(): Promise<void> {
    const { run, rollout } = this.#io.state().input;
    if (this.#ending || run === undefined) return;
    this.#ending = true;
    await this.#readOn(run);
    this.#ending = false;
    const { input } = this.#io.state(),
      stays = this.#inQueue && input.run === run && input.rollout === rollout,
      next = this.#queue && neighbour(this.#queue, rollout, 1, true);
    if (stays && next) {
      this.#goTo(next.row.rollout);
      return;
    }
    this.#ended = stays && this.#error === undefined;
    this.#io.update();
    if (stays) this.#io.announce(this.#error ?? t('The end of the review queue'));
  }
  /** What the daemon lists besides by now. */
  async #readOn(run: string): Promise<void> {
    const w = this.#queue;
    if (!w) return;
    try {
      const q = await this.#io.request('review/queue', { run, limit: limitAfter(w) });
      if (this.#run !== run || !this.#queue) return;
      this.#queue = continued(this.#queue, q);
      this.#error = undefined;
      this.#io.sawRows(q.items.map((i) => i.row));
    } catch (e) {
      this.#failed(e);
    }
  }
  /** Starts over with the skipped ones; the daemon may list more. */
  again(): void {
    const first = this.#queue && skipped(this.#queue)[0];
    this.#ended = false;
    if (first) this.#goTo(first.row.rollout);
    this.#run = '';
    this.#io.update();
  }
  #goTo(rollout: string): void {
    const { run } = this.#io.state().input;
    if (run === undefined) return;
    this.#io.flush();
    this.#ended = false;
    const known = this.#aheadOf === rollout ? this.#ahead : undefined;
    this.#io.go({ kind: 'inspector', run, rollout, annotate: true, queue: true }, known);
    this.#io.act({ action: 'moved', rollout });
  }
  async read(): Promise<void> {
    const { run } = this.#io.state().input;
    if (run === undefined) return;
    this.#run = run;
    this.#asked = true;
    try {
      const w = begin(await this.#io.request('review/queue', { run, limit: queueLimit }));
      if (this.#run === run) {
        this.#queue = w;
        this.#error = undefined;
        this.#io.sawRows(w.items.map((i) => i.row));
      }
    } catch (e) {
      this.#failed(e);
    }
    this.#io.update();
  }
  #failed(e: unknown): void {
    const x = this.#io.error(e);
    this.#error = `${x.message} ${x.remedy}`;
  }
  /** Reads the next of the queue while the person looks at this one. */
  readAhead(s: State): void {
    const next =
      this.#queue && s.input.run !== undefined ? neighbour(this.#queue, s.input.rollout, 1, true) : undefined;
    if (!next || this.#aheadOf === next.row.rollout || s.input.run === undefined || !s.view) return;
    const { rollout } = next.row,
      t = { run: s.input.run, rollout };
    this.#aheadOf = rollout;
    this.#ahead = undefined;
    void this.#io.saver.ask(t);
    this.#io.request('trajectory/get', t).then(
      (v) => {
        if (this.#aheadOf === rollout) this.#ahead = v;
      },
      () => {
        if (this.#aheadOf === rollout) this.#aheadOf = '';
      },
    );
  }
}
