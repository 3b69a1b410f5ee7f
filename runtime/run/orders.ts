import type { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';
import type { PolicyVersion } from '../domain/index.js';
import type { RegimeGate } from '../rollout/regime.js';
import { regimeGate } from '../rollout/regime.js';

export type OrderSource = Pick<DataManager, 'nextOrder' | 'capacity' | 'retire' | 'onChange' | 'isOpen'>;
export interface OrderQueueOptions {
  /** Rollouts queued and running at once. */
  readonly limit: number;
  readonly version: () => PolicyVersion;
  /** Oldest version a replica may still answer with; default `version`. */
  readonly behavior?: () => PolicyVersion;
  readonly onReady: () => void;
  /** Fetching orders failed for good, e.g. because the journal cannot be written. */
  readonly onFault?: (e: unknown) => void;
  /** Barrier between rollouts; default none. */
  readonly gate?: RegimeGate;
  /**
   * How many orders to keep ready. Each counts as running under the staleness bound, so there are only as many as hide
   * the journal's latency. Default 8.
   */
  readonly ahead?: number;
}

/**
 * Orders fetched ahead of the scheduler, which needs them without waiting. An order is journalled before it gets here.
 * `ready` counts only what admission and the regime's gate allow, so it is also how many rollouts may start.
 */
export class OrderQueue {
  readonly #data: OrderSource;
  readonly #o: OrderQueueOptions;
  readonly #gate: RegimeGate;
  readonly #ahead: number;
  readonly #queue: RolloutOrder[] = [];
  #filling = false;
  #filled: Promise<void> = Promise.resolve();
  #again = false;
  #closed = false;
  readonly #off: () => void;

  constructor(data: OrderSource, o: OrderQueueOptions) {
    this.#data = data;
    this.#o = o;
    this.#gate = o.gate ?? regimeGate({ regime: 'rollout', slots: o.limit, groups: 1 });
    this.#ahead = o.ahead ?? 8;
    this.#off = data.onChange(() => {
      this.#settle();
      this.fill();
    });
  }
  get ready(): number {
    return this.#gate.admissible(this.#queue);
  }
  take(): RolloutOrder | undefined {
    const i = this.#gate.next(this.#queue),
      order = i < 0 ? undefined : this.#queue.splice(i, 1)[0];
    if (order) this.#gate.started(order);
    this.fill();
    return order;
  }

  /**
   * Fetches until enough orders are ready or admission refuses; called again on every change, it never runs twice at
   * once.
   */
  fill(): void {
    if (this.#filling || this.#closed) {
      this.#again = true;
      return;
    }
    if (!this.#wanting()) return;
    this.#filling = true;
    this.#filled = (async () => {
      try {
        do {
          this.#again = false;
          while (!this.#closed && this.#wanting()) {
            const order = await this.#data.nextOrder({ ...this.#room(), onlyOpen: !this.#gate.mayOpen(this.#queue) });
            if (!order) break;
            this.#queue.push(order);
            this.#o.onReady();
          }
        } while (this.#again && !this.#closed && this.#wanting() && this.#data.capacity(this.#room()) > 0);
      } catch (e) {
        this.#closed = true;
        this.#o.onFault?.(e);
      } finally {
        this.#filling = false;
      }
    })();
  }
  /** The regime's barrier was lifted (a batch was trained and published): look again. */
  wake(): void {
    this.fill();
    this.#o.onReady();
  }

  /** Retires orders that never started as stopped, including one that is being fetched. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#off();
    await this.#filled;
    for (const o of this.#queue.splice(0)) await this.#data.retire(o.rollout, 'stopped');
  }

  #wanting(): boolean {
    return this.ready < this.#ahead;
  }
  #room(): { readonly maxConcurrent: number; readonly version: PolicyVersion; readonly behavior?: PolicyVersion } {
    const { limit, version, behavior } = this.#o;
    return { maxConcurrent: limit, version: version(), behavior: behavior?.() };
  }
  /** Tells the gate which groups have ended. */
  #settle(): void {
    let opened = false;
    for (const g of [...this.#gate.open]) if (!this.#data.isOpen(g)) opened = this.#gate.closed(g) || opened;
    if (opened) this.#o.onReady();
  }
}
