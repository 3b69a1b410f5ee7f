import type { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';

/**
 * Orders fetched ahead of the scheduler, which wants them without waiting. An order is journalled before it gets here. As many are
 * kept as admission allows, so `ready` is also how many rollouts may start.
 */
export class OrderQueue {
  readonly #data: DataManager;
  readonly #limit: number;
  readonly #version: () => number;
  readonly #onReady: () => void;
  readonly #queue: RolloutOrder[] = [];
  #filling = false;
  #again = false;
  #closed = false;
  readonly #off: () => void;

  constructor(data: DataManager, o: { limit: number; version: () => number; onReady: () => void }) {
    this.#data = data; this.#limit = o.limit; this.#version = o.version; this.#onReady = o.onReady;
    this.#off = data.onChange(() => this.fill());
  }
  get ready(): number { return this.#queue.length; }
  take(): RolloutOrder | undefined { const o = this.#queue.shift(); this.fill(); return o; }

  /** Fetches until admission says stop; called again on every change, it never runs twice at once. */
  fill(): void {
    if (this.#filling || this.#closed) { this.#again = true; return; }
    this.#filling = true;
    void (async () => {
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
      } finally { this.#filling = false; }
    })().catch(() => { this.#closed = true; });
  }
  /** Orders never started are retired as stopped. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#off();
    for (const o of this.#queue.splice(0)) await this.#data.retire(o.rollout, 'stopped');
  }
}
