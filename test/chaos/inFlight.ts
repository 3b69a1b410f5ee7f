import type { Found } from './journal.js';

/** How many steps a fault may cost: those of rollouts that were under way while it lasted. */
export interface Cost {
  readonly redone: number;
  readonly inFlight: number;
}

/** Which rollouts are under way, and which were cut short: their steps are done again. */
export class InFlight {
  /** Steps of each rollout that is under way. */
  readonly #running = new Map<string, number>();
  /** Steps of those that were under way at some time since the fault began. */
  #during = new Map<string, number>();
  #redone = 0;
  #inFault = false;

  take(e: Found['event']): void {
    const rollout = String(e['rollout']);
    switch (e.type) {
      case 'rollout.started':
        this.#is(rollout, 0);
        return;
      case 'rollout.step':
        if (this.#running.has(rollout)) this.#is(rollout, this.#running.get(rollout)! + 1);
        return;
      case 'trajectory.recorded': {
        const { id, outcome } = e['head'] as { id: string; outcome: { kind: string } };
        this.#ended(id, outcome.kind === 'error');
        return;
      }
      case 'rollout.retired':
        this.#ended(rollout, e['reason'] === 'lost' && e['cause'] !== 'corrupt');
        return;
      default:
    }
  }
  #is(rollout: string, steps: number): void {
    this.#running.set(rollout, steps);
    if (this.#inFault || this.#during.has(rollout)) this.#during.set(rollout, steps);
  }
  #ended(rollout: string, again: boolean): void {
    if (again) this.#redone += this.#running.get(rollout) ?? 0;
    this.#running.delete(rollout);
  }

  /** A fault is made from now on. */
  begin(): void {
    this.#during = new Map(this.#running);
    this.#redone = 0;
    this.#inFault = true;
  }
  /** It has ended or was found: what starts now is none of its cost. */
  over(): void {
    this.#inFault = false;
  }
  /** Since `begin`. */
  cost(): Cost {
    return { redone: this.#redone, inFlight: [...this.#during.values()].reduce((a, b) => a + b, 0) };
  }
}
