import type { RolloutOrder } from '../data/types.js';
import { gateOptions, regimeGate } from '../rollout/regime.js';
import type { Evaluations } from './evaluations.js';
import { OrderQueue } from './orders.js';
import type { RunParts } from './parts.js';
import { trainLoop } from './trainLoop.js';

/**
 * The phase of reinforcement learning. The scheduler asks it for rollouts to start from the first moment on; there are
 * none before `run` and none after it.
 */
export class Reinforcement {
  #orders: OrderQueue | undefined;
  #running = false;

  /** Rollouts that may start now. */
  get ready(): number {
    return this.#running ? (this.#orders?.ready ?? 0) : 0;
  }
  take(): RolloutOrder | undefined {
    return this.#orders?.take();
  }

  /** Rollouts, updates and evaluations beside each other until the run is to end. */
  async run(r: RunParts, evaluations: Evaluations): Promise<void> {
    const { trainer, models } = r.engine,
      gate = regimeGate(gateOptions(r.config));
    r.state.phase = 'training';
    r.monitor.restart();
    const orders = new OrderQueue(r.data, {
      // Two more than desktops: one that is freed finds its next order waiting.
      limit: r.config.desktops.count + 2,
      version: () => r.state.version,
      behavior: () => models?.oldest ?? r.state.version,
      gate,
      onReady: () => r.scheduler.wake(),
      onFault: (e) => r.log.fault(e),
    });
    this.#orders = orders;
    this.#running = true;
    orders.fill();
    r.scheduler.wake();
    evaluations.repeat();
    try {
      // Nothing trains a remote policy: it rolls out until the run is to end.
      if (trainer && models)
        await trainLoop(r, { trainer, models }, { orders, gate, hold: () => evaluations.between() });
      else await aborted(r.ending);
    } finally {
      this.#running = false;
      await evaluations.endRepeat();
    }
    // Orders nobody will start are given back now: the last evaluation must not count them.
    await orders.close();
  }

  /** Orders that were never started are retired. */
  async close(): Promise<void> {
    await this.#orders?.close();
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
