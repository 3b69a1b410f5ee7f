import type { RolloutId, RetireReason } from '../domain/index.js';
import type { LedgerMove } from './ledger.js';

/**
 * Steps of ended rollouts by their fate; generated = trained + masked + human + in flight + retired, as in the ledger
 * of rollouts. The steps that a branch acted out count for the rollout that generated them.
 */
export interface StepCounts {
  readonly generated: number;
  /** Trained steps of the run's own rollouts (injected ones were generated elsewhere, or earlier). */
  readonly trained: number;
  /** Left out by the high-entropy selection, in trajectories that were trained or kept for the baseline. */
  readonly masked: number;
  /**
   * Steps of taken-over rollouts that a person took or chose. At most they are imitated, whatever happens to the rollout.
   */
  readonly human: number;
  /** Rollouts with such steps. */
  readonly assisted: number;
  readonly inFlight: number;
  readonly retired: Readonly<Partial<Record<RetireReason, number>>>;
}

/**
 * Follows the ledger's moves with the lengths of the trajectories. Steps of rollouts that never ended are not counted.
 */
export class StepLedger {
  /** Own trajectories in flight: steps of the policy, and how many of them curation kept. */
  readonly #open = new Map<RolloutId, { readonly steps: number; readonly kept: number }>();
  #generated = 0;
  #trained = 0;
  #masked = 0;
  #human = 0;
  #assisted = 0;
  readonly #retired: Partial<Record<RetireReason, number>> = {};

  ended(rollout: RolloutId, steps: number, human = 0): void {
    const own = steps - human;
    this.#generated += steps;
    this.#human += human;
    if (human > 0) this.#assisted++;
    this.#open.set(rollout, { steps: own, kept: own });
  }
  kept(rollout: RolloutId, kept: number): void {
    const o = this.#open.get(rollout);
    if (o) this.#open.set(rollout, { steps: o.steps, kept });
  }

  /** Counts a rollout's steps when it ends; other moves do not matter. */
  moved({ rollout, to }: LedgerMove): void {
    const o = this.#open.get(rollout);
    if (!o || (to.at !== 'trained' && to.at !== 'retired')) return;
    this.#open.delete(rollout);
    if (to.at === 'trained') {
      this.#trained += o.kept;
      this.#masked += o.steps - o.kept;
    } else if (to.reason === 'masked') this.#masked += o.steps;
    else this.#retired[to.reason] = (this.#retired[to.reason] ?? 0) + o.steps;
  }

  counts(): StepCounts {
    let inFlight = 0;
    for (const o of this.#open.values()) inFlight += o.steps;
    return {
      generated: this.#generated,
      trained: this.#trained,
      masked: this.#masked,
      human: this.#human,
      assisted: this.#assisted,
      inFlight,
      retired: { ...this.#retired },
    };
  }
}
