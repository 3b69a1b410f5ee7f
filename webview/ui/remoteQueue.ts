/**
 * Input on its way to a desktop: in order, one request under way, a batch per animation frame. Only
 * redundant events are dropped: of moves with no button down the newest counts; of a drag its path stays, at most a point per
 * frame, thinned when the answers are slow.
 */
import type { InputEvent } from '../../runtime/protocol/types.js';

export interface QueueOptions {
  send(events: readonly InputEvent[]): Promise<unknown>;
  /** Runs once, in the next animation frame. */
  frame(run: () => void): void;
  /**
   * A batch was refused; `lost` will never arrive, those behind it included: what follows a gap is not what was meant.
   */
  failed(why: unknown, lost: readonly InputEvent[]): void;
}
const mostInBatch = 256,
  mostInPath = 64;

export class InputQueue {
  readonly #o: QueueOptions;
  #waiting: InputEvent[] = [];
  /** Events before this index were there in an earlier frame: a drag's path keeps them. */
  #sealed = 0;
  #down = 0;
  #asked = false;
  /** Whether queued input leaves with the next answer, not with a frame: there may be none. */
  #hasty = false;
  #flying: readonly InputEvent[] = [];
  #empty: (() => void)[] = [];
  constructor(o: QueueOptions) {
    this.#o = o;
  }

  get idle(): boolean {
    return this.#waiting.length === 0 && this.#flying.length === 0;
  }

  push(e: InputEvent): void {
    const last = this.#waiting.at(-1);
    if (e.type === 'button') this.#down = Math.max(0, this.#down + (e.down ? 1 : -1));
    if (e.type === 'move' && last?.type === 'move' && (this.#down === 0 || this.#waiting.length > this.#sealed))
      this.#waiting[this.#waiting.length - 1] = e;
    else this.#waiting.push(e);
    if (e.type === 'move' && this.#down > 0) this.#thin();
    this.#ask();
  }
  /** Sends at once, without waiting for a frame: a hidden page has none. */
  flush(): void {
    this.#hasty = true;
    this.#leave();
  }
  #leave(): void {
    this.#sealed = this.#waiting.length;
    if (this.#flying.length) return;
    const batch = this.#waiting.splice(0, mostInBatch);
    this.#hasty &&= this.#waiting.length > 0;
    if (!batch.length) return;
    this.#flying = batch;
    this.#sealed = this.#waiting.length;
    this.#o.send(batch).then(
      () => this.#landed(),
      (e: unknown) => {
        const lost = [...this.#flying, ...this.#waiting];
        this.#waiting = [];
        this.#sealed = 0;
        this.#down = 0;
        this.#landed();
        this.#o.failed(e, lost);
      },
    );
  }
  /** Everything pushed so far was answered, or will never be. */
  async drained(): Promise<void> {
    this.flush();
    if (!this.idle) await new Promise<void>((r) => this.#empty.push(r));
  }

  #landed(): void {
    this.#flying = [];
    if (this.#waiting.length === 0) {
      for (const r of this.#empty.splice(0)) r();
      return;
    }
    if (this.#hasty || this.#empty.length) this.flush();
    else this.#ask();
  }
  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.#o.frame(() => {
      this.#asked = false;
      this.#leave();
    });
  }
  /** Every second point of the path at the end goes when it gets long; its first and its last stay. */
  #thin(): void {
    let from = this.#waiting.length;
    while (from > 0 && this.#waiting[from - 1]!.type === 'move') from--;
    const path = this.#waiting.length - from;
    if (path <= mostInPath) return;
    this.#waiting = this.#waiting.filter((_, i) => i < from || i === this.#waiting.length - 1 || (i - from) % 2 === 0);
    this.#sealed = Math.min(this.#sealed, this.#waiting.length);
  }
}
