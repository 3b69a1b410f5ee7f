import { performance } from 'node:perf_hooks';
import type { SettleOptions, SettleReport } from '../types.js';
import type { Look } from './taskWatch.js';
import type { X11Client } from './x11Client.js';

/**
 * Poll timers due within this many ms count as activity: one GTK frame (16 ms) and a little.
 * runtime/cluster/README.md#settle
 */
export const HORIZON_MS = 20;
/** After a key: GTK shows a button that a key activates as pressed for 250 ms, and only then runs its action. */
export const KEY_HORIZON_MS = 250;
/** In a desktop without time-outs nothing may have run for this long: one GTK frame. */
export const HOLD_MS = 18;
/**
 * With a terminal nothing may have run for this long, because data in the kernel's terminal layer cannot be seen. It
 * usually takes under 1 ms.
 */
export const TERMINAL_HOLD_MS = 4;
export const MAX_MS = 2000;
/**
 * A scan of the tasks slower than this, ms (a desktop has many), is followed by a rest of REST_FACTOR times its own
 * length, because other desktops need the thread.
 */
const SLOW_SCAN_MS = 4,
  REST_FACTOR = 3;

/**
 * Programs that use a smaller share of a core than this for two horizons only poll, however often they wake
 * (LibreOffice: every 100 ms). Time-outs shorter than one frame belong to animations.
 */
export const IDLE_SHARE = 0.01;

export type Verdict = { readonly settled: true } | { readonly waitMs: number };

/** Decides from one look to the next whether the desktop has settled. Pure: looks and time are arguments. */
export class SettleJudge {
  #quietSince: number | undefined;
  #began: number | undefined;
  /** When the tasks' work was last measured, and how much it had been by then. */
  #measured: { readonly at: number; readonly ranMs: number } | undefined;
  /** The timers that were due did next to no work; reset when a task is seen working. */
  #idle = false;
  readonly #horizonMs: number;
  readonly #terminalHoldMs: number;
  constructor(horizonMs: number, terminalHoldMs = TERMINAL_HOLD_MS) {
    this.#horizonMs = horizonMs;
    this.#terminalHoldMs = terminalHoldMs;
  }

  judge(look: Look, nowMs: number): Verdict {
    this.#began ??= nowMs;
    // The longer it takes, the longer the pause before the next look: looking costs CPU that the desktops need.
    if (look.active) {
      this.#quietSince = undefined;
      this.#idle = false;
      return { waitMs: Math.min(Math.max(1, Math.floor((nowMs - this.#began) / 8)), 5) };
    }
    // The kernel tells the time-out as the call gave it: on average half of it is left.
    if (
      look.exact &&
      look.soonestMs !== undefined &&
      look.soonestMs <= this.#horizonMs &&
      !this.#onlyLooks(look.ranMs, nowMs)
    ) {
      if (look.ranSince) this.#quietSince = undefined;
      return { waitMs: Math.max(1, look.soonestMs / 2) };
    }
    if (look.ranSince || this.#quietSince === undefined) this.#quietSince = nowMs;
    // A horizon of 0 asks only whether something is working now.
    const holdMs = this.#horizonMs <= 0 ? 0 : !look.exact ? HOLD_MS : look.terminal ? this.#terminalHoldMs : 0;
    const left = holdMs - (nowMs - this.#quietSince);
    return left <= 0 ? { settled: true } : { waitMs: Math.min(left, 4) };
  }

  /** Whether the timers that are due keep coming back and do next to no work. */
  #onlyLooks(ranMs: number, nowMs: number): boolean {
    const span = 2 * this.#horizonMs,
      last = this.#measured;
    if (this.#horizonMs <= HORIZON_MS) return false;
    if (last !== undefined && nowMs - last.at < span) return this.#idle;
    this.#measured = { at: nowMs, ranMs };
    if (last === undefined) return false;
    const worked = ranMs - last.ranMs; // less than nothing where a task has ended
    this.#idle = worked >= 0 && worked <= IDLE_SHARE * (nowMs - last.at);
    return this.#idle;
  }
}

/** Waits for a desktop to come to rest. `x.sync()` first, so that the input has reached the applications. */
export interface Settler {
  settle(o?: SettleOptions): Promise<SettleReport>;
  close(): void;
}

export interface Watch {
  /** `dueMs`: whether a time-out is due within this is all that needs to be known. */
  look(dueMs?: number): Look;
  /** ms that each task has waited for a processor since it began. */
  waits(): ReadonlyMap<string, number>;
  close(): void;
}

/**
 * How long tasks waited for a processor, reported where a desktop does not come to rest. Measured over the second half of
 * the wait only, so that desktops that come to rest cost nothing.
 */
class Starvation {
  readonly #watch: Pick<Watch, 'waits'>;
  #from: { readonly at: number; readonly waits: ReadonlyMap<string, number> } | undefined;
  constructor(watch: Pick<Watch, 'waits'>) {
    this.#watch = watch;
  }
  begin(now: number): void {
    this.#from ??= { at: now, waits: this.#watch.waits() };
  }
  /** Share, 0 to 1, of the task that waited longest. */
  share(now: number): number {
    const { at, waits } = this.#from ?? { at: now, waits: new Map<string, number>() };
    let most = 0;
    for (const [task, ms] of this.#watch.waits()) most = Math.max(most, ms - (waits.get(task) ?? 0));
    return now > at ? Math.min(1, most / (now - at)) : 0;
  }
}

export function procSettler(x: X11Client, watch: Watch): Settler {
  return {
    async settle(o = {}) {
      const began = performance.now(),
        maxMs = o.maxMs ?? MAX_MS;
      const horizonMs = o.horizonMs ?? HORIZON_MS,
        judge = new SettleJudge(horizonMs, o.terminalHoldMs),
        starvation = new Starvation(watch),
        // With a longer horizon the work of all tasks shows whether a task that is due only polls.
        dueMs = horizonMs <= HORIZON_MS ? horizonMs : -1;
      await x.sync();
      for (;;) {
        const looked = performance.now(),
          look = watch.look(dueMs),
          now = performance.now(),
          restMs = now - looked > SLOW_SCAN_MS ? REST_FACTOR * (now - looked) : 0;
        const verdict = judge.judge(look, now);
        const detector = look.exact ? ('exact' as const) : ('hold' as const);
        if ('settled' in verdict) return { settled: true, ms: now - began, detector };
        if (now - began >= maxMs)
          return { settled: false, ms: now - began, detector, starved: starvation.share(performance.now()) };
        if (now - began >= maxMs / 2) starvation.begin(now);
        await delay(Math.min(Math.max(verdict.waitMs, restMs), Math.max(1, maxMs - (now - began))));
        if (x.isClosed) await x.sync(); // rejects: the desktop is gone
      }
    },
    close: () => watch.close(),
  };
}

const delay = (ms: number): Promise<void> =>
  new Promise((r) => {
    setTimeout(r, ms);
  });
