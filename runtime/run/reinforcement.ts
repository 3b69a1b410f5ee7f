import type { RolloutOrder } from '../data/types.js';
import { gateOptions, regimeGate, type RegimeGate } from '../rollout/regime.js';
import type { EvaluationPhases } from './evaluationPhases.js';
import { OrderQueue } from './orders.js';
import type { RunParts } from './parts.js';
import { trainLoop } from './trainLoop.js';

/** The source of the next rollouts, and what holds them back. */
interface Begun {
  readonly orders: OrderQueue;
  readonly gate: RegimeGate;
}

/**
 * The reinforcement learning phase. The scheduler asks it for rollouts from the start of the run; it has none before
 * `run` begins and none after it ends.
 */
export class Reinforcement {
  #begun: Begun | undefined;
  #running = false;

  /** Rollouts that may start now. */
  get ready(): number {
    return this.#running ? (this.#begun?.orders.ready ?? 0) : 0;
  }
  take(): RolloutOrder | undefined {
    return this.#begun?.orders.take();
  }

  /**
   * Runs rollouts, updates and evaluations concurrently until the run ends. When it rejects it may be called again:
   * orders and running rollouts are kept, and none begins in between.
   */
  async run(r: RunParts, evaluations: EvaluationPhases): Promise<void> {
    const { learner, replicas } = r.engine;
    r.state.phase = 'training';
    const { orders, gate } = (this.#begun ??= this.#begin(r));
    this.#running = true;
    orders.wake();
    evaluations.repeat();
    try {
      // A policy without a learner rolls out until the run ends.
      if (learner && replicas) await trainLoop(r, { learner, replicas }, { orders, gate, between: evaluations });
      else await aborted(r.ending);
    } finally {
      this.#running = false;
      await evaluations.endRepeat();
    }
    // Orders that will not start are retired now: the last evaluation must not count them.
    await orders.close();
  }

  /** Orders that were never started are retired. */
  async close(): Promise<void> {
    await this.#begun?.orders.close();
  }

  #begin(r: RunParts): Begun {
    const { replicas } = r.engine,
      { deterministic } = r.config.run,
      gate = regimeGate(gateOptions(r.config), deterministic ? r.data.groups() : undefined);
    r.monitor.restart();
    const orders = new OrderQueue(r.data, {
      // Two more than there are desktops, so that a freed desktop finds its next order waiting. In a deterministic run
      // one at a time, because the next order must not depend on when it was asked for.
      limit: deterministic ? 1 : r.config.desktops.count + 2,
      version: () => r.state.version,
      behavior: () => replicas?.oldest ?? r.state.version,
      gate,
      onReady: () => r.scheduler.wake(),
      onFault: (e) => r.log.fault(e),
    });
    return { orders, gate };
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
