import { assisted, type ErrorKind } from '../domain/index.js';
import type { PoolEvent } from '../cluster/types.js';
import type { ModelPoolEvent, ModelPoolStatus, SchedulerEvent } from '../rollout/types.js';
import type { Measured } from './bounds.js';
import { BusyShare, Rolling } from '../domain/stats.js';
import { UnpausedTime } from './unpausedTime.js';

/** Rollouts of one point of the success curve, at first, and the most points it has. */
const POINT_EVERY = 32,
  MOST_POINTS = 512;
/** Window of the rates, ms, and the fewest rollouts in it that a bound is computed from. */
const RATES_MS = 120_000,
  FEW = 8;
/** Error kinds that are nobody's fault. */
const NO_FAULT: ReadonlySet<ErrorKind> = new Set(['cancelled', 'rollout.diverged']);
const DESKTOP_WORK = new Set(['setup', 'observe', 'perform', 'settle', 'verify']);
/**
 * How a desktop counts in a phase: whether it is leased, and whether it works itself. Time for deciding is the policy's
 * (loose and strict utilisation, runtime/rollout/README.md#throughput-bound).
 */
export const desktopUse = (phase: string): { readonly leased: boolean; readonly working: boolean } => ({
  leased: phase !== 'idle' && phase !== 'released',
  working: DESKTOP_WORK.has(phase),
});

interface Recent {
  readonly at: number;
  readonly steps: number;
  /** How long it kept a desktop; absent where a person helped. */
  ms?: number;
}

/**
 * Rates and utilisation of a run, fed by events; times are ms of one clock. Rates are of the last two minutes; shares and
 * what is told per minute are of the time since the beginning, without pauses.
 */
export class Meters {
  readonly #startedAt: number;
  readonly #time: UnpausedTime;
  /** Work of the replicas before the time that is measured, in evaluations and lessons, ms. */
  readonly #busyBefore: number;
  readonly #leased = new BusyShare();
  readonly #working = new BusyShare();
  readonly #trainer = new BusyShare();
  readonly #recent: Recent[] = [];
  readonly success = new Rolling(64);
  readonly curve: number[] = [];
  #sinceCurve = 0;
  #perPoint = POINT_EVERY;
  rollouts = 0;
  steps = 0;
  /** Error of the newest training rollout that a fault ended. */
  newestError: string | undefined;
  trainedActions = 0;
  updates = 0;
  trainedTrajectories = 0;
  #updateMs = 0;
  #own = 0;
  #rolloutMs = 0;
  #rolloutSteps = 0;
  #decideMs = 0;
  #decides = 0;
  constructor(startedAt: number, replicas?: ModelPoolStatus) {
    this.#startedAt = startedAt;
    this.#time = new UnpausedTime(startedAt);
    this.#busyBefore = busyMs(replicas);
  }

  pause(at: number): void {
    this.#time.pause(at);
  }
  resume(at: number): void {
    this.#time.resume(at);
  }

  onScheduler(e: SchedulerEvent): void {
    if (e.type === 'lane') {
      const { leased, working } = desktopUse(e.phase),
        at = this.#time.of(e.at);
      this.#leased.set(e.desktop, leased, at);
      this.#working.set(e.desktop, working, at);
    } else if (e.type === 'step') {
      this.steps++;
      if (e.step.timings.decide > 0) {
        this.#decideMs += e.step.timings.decide;
        this.#decides++;
      }
    } else if (e.type === 'ended') {
      if (e.kind !== 'rollout') return;
      const { outcome } = e.trajectory;
      if (outcome.kind === 'error') {
        if (!NO_FAULT.has(outcome.error.kind)) this.newestError = outcome.error.message;
        return;
      }
      this.rollouts++;
      const { steps, resetMs, verifyMs, hindsight } = e.trajectory;
      const recent: Recent = { at: e.at, steps: steps.length };
      this.#recent.push(recent);
      if (this.#recent.length > 2000) this.#recent.shift();
      // Neither the outcome nor the pace of a rollout that a person helped is the policy's.
      if (assisted(e.trajectory)) return;
      // T = r + L (e + g) + v.
      recent.ms = steps.reduce(
        (a, { timings: t }) => a + t.observe + t.queue + t.decide + t.perform + t.settle,
        resetMs + verifyMs + (hindsight?.ms ?? 0),
      );
      this.#rolloutMs += recent.ms;
      this.#rolloutSteps += steps.length;
      this.#own++;
      // The outcome of a branch estimates the value of the state it began in, not the success rate of the task.
      if (e.trajectory.branch) return;
      this.success.add(outcome.kind === 'success' ? 1 : 0);
      if (++this.#sinceCurve >= this.#perPoint) {
        this.#sinceCurve = 0;
        this.curve.push(this.success.mean);
        if (this.curve.length >= MOST_POINTS) this.#thin();
      }
    }
  }
  /** Drops every second point, so that the curve of a week is no longer than that of an hour. */
  #thin(): void {
    const kept = this.curve.filter((_, i) => i % 2 === 1);
    this.curve.length = 0;
    this.curve.push(...kept);
    this.#perPoint *= 2;
  }
  /** A reset counts for the rollout that it prepares: T = r + ... includes it, and so do both utilisations. */
  onPool(e: PoolEvent): void {
    if (e.type !== 'state' || e.state === 'leased') return;
    for (const m of [this.#leased, this.#working]) m.set(e.desktop, e.state === 'resetting', this.#time.of(e.at));
  }
  trainer(busy: boolean, at: number): void {
    this.#trainer.set('trainer', busy, this.#time.of(at));
  }

  trained(actions: number, trajectories: number, ms: number): void {
    this.trainedActions += actions;
    this.trainedTrajectories += trajectories;
    this.updates++;
    this.#updateMs += ms;
  }

  /**
   * The values that the bound X* is computed from; `share`: ended rollouts that curation let through
   * (runtime/rollout/README.md#throughput-bound).
   */
  measured(
    o: { readonly desktops: number; readonly replicas: number; readonly share: number | undefined },
    now: number,
  ): Measured {
    const n = Math.max(1, this.#own),
      newest = this.#newest(now);
    return {
      desktops: o.desktops,
      rolloutSeconds: this.#rolloutMs / n / 1000,
      steps: this.#rolloutSteps / n,
      replicas: o.replicas,
      decisionsPerSecond: this.#decides === 0 ? 0 : (1000 * this.#decides) / this.#decideMs,
      trainer:
        this.updates > 0 && o.share !== undefined
          ? {
              perUpdate: this.trainedTrajectories / this.updates,
              seconds: this.#updateMs / this.updates / 1000,
              share: o.share,
            }
          : undefined,
      trainedPerRollout: this.trainedActions / n,
      ...(newest ? { newest } : {}),
    };
  }
  /** Undefined with too few rollouts. */
  #newest(now: number): Measured['newest'] {
    const own = this.#lately(now).filter((r) => r.ms !== undefined),
      mean = (of: (r: (typeof own)[number]) => number): number => own.reduce((a, r) => a + of(r), 0) / own.length;
    if (own.length < FEW) return undefined;
    return { rolloutSeconds: mean((r) => r.ms!) / 1000, steps: mean((r) => r.steps) };
  }

  #lately(now: number): Recent[] {
    return this.#recent.filter((r) => r.at >= now - RATES_MS);
  }

  /** Rates over the last two minutes. */
  rates(now: number): { rolloutsPerHour: number; stepsPerMinute: number } {
    const span = Math.max(1, Math.min(now - this.#startedAt, RATES_MS)),
      recent = this.#lately(now);
    return {
      rolloutsPerHour: (recent.length * 3.6e6) / span,
      stepsPerMinute: (recent.reduce((a, r) => a + r.steps, 0) * 6e4) / span,
    };
  }
  utilisation(
    now: number,
    desktops: number,
    replicas: ModelPoolStatus,
  ): { desktops: number; desktopsStrict: number; replicas: number; trainer: number } {
    const ran = this.#time.of(now),
      // A replica that was replaced begins at 0.
      computed = Math.max(0, busyMs(replicas) - this.#busyBefore);
    return {
      desktops: this.#leased.share(0, ran, desktops),
      desktopsStrict: this.#working.share(0, ran, desktops),
      // At most 1: decisions under way when a pause begins are still computed during it.
      replicas: Math.min(
        1,
        computed / (Math.max(1, ran) * Math.max(1, replicas.replicas.length) * replicas.concurrency),
      ),
      trainer: this.#trainer.share(0, ran, 1),
    };
  }
  minutesRun(now: number): number {
    return Math.max(1e-9, this.#time.of(now) / 6e4);
  }
}

const busyMs = (s: ModelPoolStatus | undefined): number => s?.replicas.reduce((sum, r) => sum + r.busyMs, 0) ?? 0;

/** The cost of a sync, as metrics. */
export function syncMetrics(e: Extract<ModelPoolEvent, { type: 'published' }>): Record<string, number> {
  const r = e.report.replicas;
  return {
    failed: e.report.failed,
    replicas: r.length,
    drainMs: r.reduce((a, x) => a + x.drainMs, 0),
    swapMs: r.reduce((a, x) => a + x.swapMs, 0),
  };
}
