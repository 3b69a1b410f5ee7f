import type { RunConfig } from '../config/index.js';
import type { StateCounts } from '../data/dataStats.js';
import type { Clock } from '../rollout/clock.js';
import { UnpausedTime } from './unpausedTime.js';

const MINUTE_MS = 60_000;

export interface RunBudgetOptions {
  readonly limits: RunConfig['budget'];
  readonly clock: Clock;
  /** ms that earlier parts of the run took: a resumed run continues with the rest of its budget. */
  readonly elapsedMs: number;
  /** Updates and rollouts so far, earlier parts included. */
  readonly counts: () => BudgetCounts;
}
export interface BudgetCounts {
  /** Rollouts that ended in success or failure; those interrupted by a kill or a stop do not count. */
  readonly rollouts: number;
  /** Rollouts that ended with an error. */
  readonly errors: number;
  readonly updates: number;
  /** Updates under way; one interrupted by a kill, a stop or a damaged record is repeated. */
  readonly updating: number;
}
export const budgetCounts = ({ ledger, trained, claimed }: StateCounts): BudgetCounts => ({
  rollouts: ledger.judged,
  errors: ledger.retired.error ?? 0,
  updates: trained,
  updating: claimed,
});

/**
 * Rollouts that count against the limit on rollouts. An error says nothing about the policy and is not counted, until
 * there are as many errors as the limit: a run in which everything fails ends, too.
 */
const counted = ({ rollouts, errors }: BudgetCounts, limit: number): number => rollouts + Math.max(0, errors - limit);

/**
 * How much a run may use and has used: minutes, rollouts, updates. Whichever limit is reached first ends the current
 * phase. Paused time does not count. Its only side effect is one timer.
 */
export class RunBudget {
  readonly #limits: RunConfig['budget'];
  readonly #clock: Clock;
  readonly #earlierMs: number;
  readonly #counts: RunBudgetOptions['counts'];
  readonly #time: UnpausedTime;
  readonly #over = new AbortController();
  #watching = false;
  #stopTimer: (() => void) | undefined;

  constructor(o: RunBudgetOptions) {
    this.#limits = o.limits;
    this.#clock = o.clock;
    this.#earlierMs = o.elapsedMs;
    this.#counts = o.counts;
    this.#time = new UnpausedTime(o.clock.now());
  }

  /** ms the run has taken, earlier parts included and pauses left out. */
  get elapsedMs(): number {
    return this.#earlierMs + this.#time.of(this.#clock.now());
  }
  /** Total ms that the run may take; undefined without a limit. */
  get limitMs(): number | undefined {
    return this.#limits.minutes === undefined ? undefined : this.#limits.minutes * MINUTE_MS;
  }
  /** Limits besides time. */
  get limits(): { readonly rollouts?: number; readonly updates?: number } {
    const { rollouts, updates } = this.#limits;
    return { ...(rollouts === undefined ? {} : { rollouts }), ...(updates === undefined ? {} : { updates }) };
  }
  /** ms that are left; Infinity without a limit. */
  get leftMs(): number {
    return this.limitMs === undefined ? Infinity : this.limitMs - this.elapsedMs;
  }
  /**
   * Used share of the limit that is reached first, an update under way included; more than 1 when overdrawn, 0 without a
   * limit.
   */
  get used(): number {
    const { updates, updating } = this.#counts();
    return this.#share(updates + updating);
  }
  get spent(): boolean {
    return this.#share(this.#counts().updates) >= 1;
  }
  /** Fires once, when the budget is spent; needs `watch`. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get paused(): boolean {
    return this.#time.paused;
  }
  pause(): void {
    this.#time.pause(this.#clock.now());
    this.#arm();
  }
  resume(): void {
    if (!this.paused) return;
    this.#time.resume(this.#clock.now());
    this.#arm();
  }

  /** From now on `signal` fires as soon as the time is up; call `check` for the other limits. */
  watch(): void {
    this.#watching = true;
    this.check();
  }
  /** Call after rollouts or updates were counted: fires `signal` when the budget is spent. */
  check(): void {
    if (!this.#watching || this.#over.signal.aborted) return;
    if (this.spent) {
      this.close();
      this.#over.abort();
    } else if (!this.#stopTimer) this.#arm();
  }
  /** Stops watching and clears the timer. */
  close(): void {
    this.#watching = false;
    this.#arm();
  }

  #share(made: number): number {
    const { rollouts, updates } = this.#limits;
    return Math.max(
      this.limitMs === undefined ? 0 : this.elapsedMs / this.limitMs,
      rollouts === undefined ? 0 : counted(this.#counts(), rollouts) / rollouts,
      updates === undefined ? 0 : made / updates,
    );
  }
  #arm(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (!this.#watching || this.paused || !Number.isFinite(this.leftMs)) return;
    // A timer may fire a little early: `check` arms it again for the rest.
    this.#stopTimer = this.#clock.after(Math.max(0, this.leftMs), () => {
      this.#stopTimer = undefined;
      this.check();
    });
  }
}
