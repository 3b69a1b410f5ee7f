import type { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';

/**
 * Orders fetched ahead of the scheduler, which wants them without waiting. An order is journalled before it gets here. As many are
 * kept as admission allows, so `ready` is also how many rollouts may start.
 */
export class OrderQueue {
  readonly #data: Pick<DataManager, 'nextOrder' | 'capacity' | 'retire' | 'onChange'>;
  readonly #limit: number;
  readonly #version: () => number;
  readonly #onReady: () => void;
  readonly #queue: RolloutOrder[] = [];
  readonly #onFault: ((e: unknown) => void) | undefined;
  #filling = false;
  #filled: Promise<void> = Promise.resolve();
  #again = false;
  #closed = false;
  readonly #off: () => void;

  /** `onFault`: no order can be had any more, e.g. because the journal cannot be written. */
  constructor(data: Pick<DataManager, 'nextOrder' | 'capacity' | 'retire' | 'onChange'>, o: { limit: number; version: () => number; onReady: () => void; onFault?: (e: unknown) => void }) {
    this.#data = data; this.#limit = o.limit; this.#version = o.version; this.#onReady = o.onReady; this.#onFault = o.onFault;
    this.#off = data.onChange(() => this.fill());
  }
  get ready(): number { return this.#queue.length; }
  take(): RolloutOrder | undefined { const o = this.#queue.shift(); this.fill(); return o; }

  /** Fetches until admission says stop; called again on every change, it never runs twice at once. */
  fill(): void {
    if (this.#filling || this.#closed) { this.#again = true; return; }
    this.#filling = true;
    this.#filled = (async () => {
      try {
        do {
          this.#again = false;
          for (;;) {
            if (this.#closed) return;
            const order = await this.#data.nextOrder({ maxConcurrent: this.#limit, version: this.#version() });
            if (!order) break;
            this.#queue.push(order);
            this.#onReady();
          }
        } while (this.#again && this.#data.capacity({ maxConcurrent: this.#limit, version: this.#version() }) > 0);
      } catch (e) { this.#closed = true; this.#onFault?.(e); } finally { this.#filling = false; }
    })();
  }
  /** Orders never started are retired as stopped, one that is just being made too. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#off();
    await this.#filled;
    for (const o of this.#queue.splice(0)) await this.#data.retire(o.rollout, 'stopped');
  }
}
