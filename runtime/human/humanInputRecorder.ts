import { isTerminal, StudioError, type Action, type Frame, type InputEvent } from '../domain/index.js';
import { ignoreFailure, settled as over } from '../concurrency/failures.js';
import type { Desktop, SettleOptions } from '../cluster/types.js';
import type { FrameStore } from '../data/types.js';
import type { Clock } from '../rollout/clock.js';
import type { HumanStep } from '../rollout/steering.js';
import { changedShare } from './frames.js';
import { Segmenter, type Cut, type SegmentOptions } from './segment.js';
import { Tidy, type TidyEvent } from './tidy.js';

export interface RecorderDeps {
  readonly desktop: Desktop;
  readonly frames: Pick<FrameStore, 'put'>;
  readonly clock: Clock;
  readonly settle: SettleOptions;
  readonly segment?: SegmentOptions;
  /** Steps in the order in which they were done, each complete. */
  readonly onStep: (s: HumanStep) => void;
  /** The action in the making, in words. */
  readonly onDoing: (what: string | undefined) => void;
  /** Something is about to be done, or was begun. */
  readonly onBegin?: () => void;
  /** The desktop, or the disk, failed; nothing more is recorded. */
  readonly onFault: (e: unknown) => void;
}

/**
 * A larger change of the screen since it came to rest makes it another screen than the person saw. A smaller one is the
 * pointer, and what lights up under it.
 */
const OTHER_SCREEN = 0.02;
/** A drawing this long after the last event is not the pointer's doing. */
const BY_ITSELF_MS = 1000;
/** Waiting shorter than this is no action. */
const WAIT_MS = 500,
  LONGEST_WAIT_MS = 60_000;
/** Most batches under way to the desktop: a slow link slows the sender down, not a double click. */
const UNDER_WAY = 8;
/** The screen is looked at for changes of its own at most so often. */
const LOOK_MS = 100;

interface Seen {
  readonly frame: Frame;
  readonly at: number;
}
interface Pending {
  readonly gen: number;
  settle(s: { readonly settled: boolean; readonly ms: number }): void;
}

/**
 * Forwards a person's input to a desktop and records it as steps. A step's screen is the settled one before
 * its action with the pointer where the last action left it, as the policy would have seen it; only when much of the
 * screen has changed since is it the newest. Input never waits for a screen to settle: who is quicker than the desktop
 * has steps that say that it did not.
 */
export class HumanInputRecorder {
  readonly #d: RecorderDeps;
  readonly #tidy: Tidy;
  readonly #segmenter: Segmenter;
  readonly #closed = new AbortController();
  #turn: Promise<unknown> = Promise.resolve();
  #out: Promise<unknown> = Promise.resolve();
  /** Counts what was done to the desktop; `rest` is the screen after the first `restGen` of it. */
  #gen = 0;
  #restGen = -1;
  #rest: Seen | undefined;
  #settling: Promise<void> | undefined;
  /** Batches that were sent, oldest first: each resolves when the desktop has taken it. */
  readonly #sent: Promise<void>[] = [];
  /** The newest that did more than move the pointer. */
  #deed: Promise<void> = Promise.resolve();
  readonly #pending: Pending[] = [];
  /** The screen before the action in the making. */
  #frozen: Seen | undefined;
  /** Page time and our time of the newest event. */
  #last = { at: 0, here: 0 };
  #selfChanged: number | undefined;
  #stopTimer: () => void = () => undefined;
  #fault: unknown;
  #watching = false;
  #working = 0;
  #quiet: (() => void)[] = [];

  constructor(d: RecorderDeps) {
    this.#d = d;
    this.#tidy = new Tidy(d.desktop.screen);
    this.#segmenter = new Segmenter(d.segment);
  }

  /**
   * The desktop is the person's: for the first time, or again after somebody else acted. Resolves when it is at rest.
   */
  async begin(): Promise<void> {
    this.#touched();
    if (!this.#watching) {
      this.#watching = true;
      ignoreFailure(this.#watch(), 'a desktop that is lost fails the next step, which says so');
    }
    await this.#settling;
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** Resolves when no action is in the making and every step was reported. */
  async idle(): Promise<void> {
    do {
      if (this.#busy)
        await new Promise<void>((r) => {
          this.#quiet.push(r);
        });
      await this.#told();
    } while (this.#busy && this.#fault === undefined && !this.#closed.signal.aborted);
  }
  get #busy(): boolean {
    return this.#segmenter.busy || this.#working > 0;
  }

  /** Resolves when they are on their way to the desktop, and all but the newest few batches were taken by it. */
  async input(events: readonly InputEvent[]): Promise<void> {
    await this.#inTurn(() => this.#take(this.#tidy.take(events)));
    while (this.#sent.length >= UNDER_WAY) await this.#sent.shift();
  }

  /** An action as a whole. A terminal one is recorded and not carried out. */
  act(action: Action): Promise<void> {
    return this.#inTurn(async () => {
      await this.#flush();
      this.#d.onBegin?.();
      const seen = await this.#before(),
        began = this.#d.clock.now();
      if (!isTerminal(action)) {
        await this.#d.desktop.perform(action);
        this.#touched();
      }
      this.#cut({ action, began, ended: this.#d.clock.now() }, seen);
      await this.#told();
    });
  }

  /** Everything begun is complete, its step told, and nothing is held down. */
  complete(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#flush();
      await this.#told();
    });
  }

  /** As `complete`, whatever state the desktop is in; afterwards the recorder no longer touches it. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    const done = over(this.complete());
    this.#closed.abort();
    await done;
    this.#stopTimer();
    await this.#settling;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed.signal.aborted) return Promise.reject(new Error('the recorder is closed'));
    this.#working++;
    const run = async (): Promise<T> => {
      try {
        if (this.#fault !== undefined) throw this.#fault;
        return await work();
      } catch (e) {
        this.#failed(e);
        throw e;
      } finally {
        this.#working--;
        if (!this.#busy) for (const q of this.#quiet.splice(0)) q();
      }
    };
    const p = this.#turn.then(run, run);
    this.#turn = over(p);
    return p;
  }
  #failed(e: unknown): void {
    // An action that cannot be said to a desktop is the caller's mistake.
    if (this.#fault !== undefined || (e instanceof StudioError && e.kind === 'policy.invalid')) return;
    this.#fault = e;
    this.#stopTimer();
    for (const p of this.#pending.splice(0)) p.settle({ settled: false, ms: 0 });
    for (const q of this.#quiet.splice(0)) q();
    this.#d.onFault(e);
  }

  async #take(events: readonly TidyEvent[]): Promise<void> {
    const { clock } = this.#d,
      waiting: TidyEvent[] = [];
    for (const e of events) {
      this.#last = { at: e.at, here: clock.now() };
      for (const c of this.#segmenter.due(e.at)) this.#cut(c, this.#frozen!);
      const busy = this.#segmenter.busy,
        frozen = busy ? this.#frozen : undefined,
        cuts = this.#segmenter.push(e);
      // A release ends what its press began; anything else begins something of its own.
      let fresh: Seen | undefined,
        hasty = false;
      const begins =
        !(e.type === 'button' && !e.down) &&
        e.type !== 'move' &&
        (cuts.length > (frozen ? 1 : 0) || (this.#segmenter.busy && (!frozen || cuts.length > 0)));
      if (begins) {
        this.#forward(waiting.splice(0));
        this.#d.onBegin?.();
        hasty = this.#restGen !== this.#gen;
        fresh = await this.#before();
      }
      waiting.push(e);
      for (const [i, c] of cuts.entries()) {
        // The first action ended because another begins; the others end with this very event.
        const before = i === 0 && frozen !== undefined && fresh !== undefined;
        this.#cut(c, (i === 0 ? frozen : undefined) ?? fresh ?? frozen ?? (await this.#before()), !before);
        if (before && hasty) this.#hasty();
      }
      this.#frozen = this.#segmenter.busy ? ((cuts.length > 0 ? undefined : frozen) ?? fresh ?? frozen) : undefined;
    }
    this.#forward(waiting);
    this.#d.onDoing(this.#segmenter.doing);
    this.#arm();
  }

  /**
   * Sends them on without waiting until the desktop has taken them: over a slow link that is too late for a double click.
   */
  #forward(events: readonly TidyEvent[]): void {
    if (events.length === 0) return;
    const taken = this.#d.desktop.input!(events);
    this.#sent.push(taken);
    const over = taken.catch((e: unknown) => {
      this.#failed(e);
    });
    if (events.every((e) => e.type === 'move')) return;
    this.#deed = over;
    this.#touched();
  }

  /** Sets the timer that completes an action for which no further input comes. */
  #arm(): void {
    this.#stopTimer();
    const deadline = this.#segmenter.deadline;
    if (deadline === undefined || this.#closed.signal.aborted) return;
    this.#stopTimer = this.#d.clock.after(Math.max(0, deadline - this.#now()), () => {
      const cutDue = this.#inTurn(() => {
        for (const c of this.#segmenter.due(this.#now() + 1)) this.#cut(c, this.#frozen!);
        if (!this.#segmenter.busy) this.#frozen = undefined;
        this.#d.onDoing(this.#segmenter.doing);
        this.#arm();
        return Promise.resolve();
      });
      ignoreFailure(cutDue, 'it is reported to onFault');
    });
  }
  /** The present time on the page's clock. */
  #now(): number {
    return this.#last.at + this.#d.clock.now() - this.#last.here;
  }

  async #flush(): Promise<void> {
    this.#stopTimer();
    const frozen = this.#frozen;
    const cuts = this.#segmenter.flush(this.#now());
    for (const c of cuts) this.#cut(c, frozen ?? (await this.#before()), true);
    this.#frozen = undefined;
    await this.#d.desktop.input?.([{ type: 'release' }]);
    if (cuts.length > 0) this.#touched();
    this.#d.onDoing(undefined);
  }
  /** Resolves when every step so far was reported to `onStep`. */
  async #told(): Promise<void> {
    while (this.#settling) await this.#settling;
    await this.#out;
  }

  /** The screen an action that begins now is decided on; first, what the person waited for becomes a step. */
  async #before(): Promise<Seen> {
    const { desktop, clock } = this.#d,
      rest = this.#restGen === this.#gen ? this.#rest : undefined;
    await this.#deed;
    const now: Seen = { frame: await desktop.observe(), at: clock.now() };
    if (!rest) {
      this.#hasty();
      return now;
    }
    if (changedShare(rest.frame, now.frame) <= OTHER_SCREEN) {
      desktop.recycle?.(now.frame);
      return rest;
    }
    const waited = (this.#selfChanged ?? rest.at) - rest.at;
    if (waited >= WAIT_MS)
      this.#cut(
        {
          action: { type: 'wait', ms: Math.min(LONGEST_WAIT_MS, Math.round(waited)) },
          began: rest.at,
          ended: this.#selfChanged!,
        },
        rest,
      );
    this.#rest = now;
    this.#selfChanged = undefined;
    return now;
  }

  /** The person acts before the desktop is at rest: pending steps are recorded as not settled. */
  #hasty(): void {
    for (const p of this.#pending.splice(0)) p.settle({ settled: false, ms: 0 });
  }

  /**
   * A step in the making: told once its screen is stored and the desktop has come to rest, or something else was begun.
   * `coming`: its last event is yet to be forwarded.
   */
  #cut(c: Cut, seen: Seen, coming = false): void {
    const stored = this.#d.frames.put(seen.frame);
    ignoreFailure(stored, 'it is awaited with the step');
    const rested =
      !coming && this.#restGen === this.#gen
        ? Promise.resolve({ settled: true, ms: 0 })
        : new Promise<{ settled: boolean; ms: number }>((settle) => {
            this.#pending.push({ gen: this.#gen, settle });
          });
    this.#out = this.#out
      .then(async () => {
        const [frame, { settled, ms }] = [await stored, await rested];
        if (this.#fault !== undefined) return;
        this.#d.onStep({
          frame,
          actions: [c.action],
          settled,
          timings: { observe: 0, decide: 0, queue: 0, perform: Math.max(0, c.ended - c.began), settle: ms },
        });
      })
      .catch((e: unknown) => {
        this.#failed(e);
      });
  }

  /** Something was done to the desktop: the next screen at rest is a new one. */
  #touched(): void {
    this.#gen++;
    this.#settling ??= this.#settle()
      .catch((e: unknown) => {
        this.#failed(e);
      })
      .finally(() => {
        this.#settling = undefined;
      });
  }
  async #settle(): Promise<void> {
    const { desktop, clock } = this.#d;
    for (;;) {
      const gen = this.#gen;
      await this.#deed;
      const { settled, ms } = await desktop.settle(this.#d.settle);
      if (gen !== this.#gen) continue;
      const frame = await desktop.observe();
      if (gen !== this.#gen) continue;
      this.#rest = { frame, at: clock.now() };
      this.#restGen = gen;
      this.#selfChanged = undefined;
      for (const p of this.#pending.splice(0)) p.settle({ settled, ms });
      return;
    }
  }

  /** Notes when the screen last changed by itself. */
  async #watch(): Promise<void> {
    const { desktop, clock } = this.#d,
      { signal } = this.#closed;
    while (!signal.aborted && desktop.changes) {
      const change = await desktop.changes(signal);
      await change.drawn;
      const now = clock.now();
      if (!this.#settling && now - this.#last.here >= BY_ITSELF_MS) this.#selfChanged = now;
      await new Promise<void>((r) => {
        const stop = clock.after(LOOK_MS, go);
        function go(): void {
          stop();
          signal.removeEventListener('abort', go);
          r();
        }
        signal.addEventListener('abort', go, { once: true });
      });
    }
  }
}
