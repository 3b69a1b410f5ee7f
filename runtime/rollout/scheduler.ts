/**
 * Rollout-wise scheduler: leases desktops from the pool, gives each free one the planner's next order at once, and
 * reports everything as events. `nextMove` (admission.ts) decides; this is the asynchronous shell. The planner handles
 * retries.
 */
import type { DesktopId, RolloutId, RunError, Step, Trajectory } from '../domain/index.js';
import { cancelled, toRunError } from '../domain/index.js';
import { notify } from '../concurrency/notify.js';
import type { Lease } from '../cluster/types.js';
import type { RolloutOrder } from '../data/types.js';
import type { Sampling } from '../policy/types.js';
import { nextMove } from './admission.js';
import { runEpisode } from './episode.js';
import { GrowingPause } from './growingPause.js';
import { lookBack } from './hindsight.js';
import { IdleLeases } from './idleLeases.js';
import { Steering } from './steering.js';
import type {
  EpisodePhase,
  EpisodeResult,
  RolloutKind,
  SchedulerDeps,
  SchedulerEvent,
  SchedulerStatus,
  Steerable,
} from './types.js';

interface Probe {
  readonly order: RolloutOrder;
  readonly sampling: Sampling;
  readonly done: (t: Trajectory) => void;
  readonly cancelled: (e: Error) => void;
}
interface Running extends Steerable {
  readonly abort: AbortController;
  readonly since: number;
  readonly steps: Step[];
  phase: EpisodePhase;
}

/**
 * After this many errors in a row (per slot, but at least `least`) the cause is taken to be common to all rollouts,
 * such as an engine that refuses every call.
 */
const FAILING = { perSlot: 2, least: 8 };

/** Kinds of errors that concern one rollout only. */
const SINGLE: ReadonlySet<RunError['kind']> = new Set(['cancelled', 'timeout', 'rollout.diverged']);

export class Scheduler {
  readonly #d: SchedulerDeps;
  #slots: number;
  readonly #leaseRequests = new Set<AbortController>();
  readonly #idle = new IdleLeases((lease, fault) => {
    this.#release(lease, true, fault);
    this.#pump();
  });
  readonly #probes: Probe[] = [];
  readonly #runs = new Set<Running>();
  readonly #listeners = new Set<(e: SchedulerEvent) => void>();
  #paused = true;
  #probesHeld = false;
  #stopping = false;
  /** The planner had no order; it is not asked again until something changes. */
  #plannerEmpty = false;
  /** Leasing failed (the pool is not merely busy). */
  readonly #leasePause: GrowingPause;
  /** Rollouts end in errors, one after another. */
  readonly #errorPause: GrowingPause;
  #errorsInARow = 0;
  #pumping = false;
  #quiet: (() => void)[] = [];

  constructor(d: SchedulerDeps, o: { readonly slots: number }) {
    this.#d = d;
    this.#slots = o.slots;
    this.#leasePause = new GrowingPause(d.clock, () => this.#pump());
    this.#errorPause = new GrowingPause(d.clock, () => this.#pump());
  }

  /** Begin, or continue after `pause`. Probes run while paused, too, unless they are held. */
  start(): void {
    this.#paused = false;
    this.#errorPause.cancel();
    this.wake();
  }
  resume(): void {
    this.start();
  }
  /** Start no more training rollouts; those running end normally. */
  pause(): void {
    this.#paused = true;
    this.#pump();
  }
  /** Whether probes wait, too: while their screens cannot be stored. */
  holdProbes(held: boolean): void {
    this.#probesHeld = held;
    this.#pump();
  }
  /** More slots are used at once; fewer take effect as rollouts end. */
  resize(slots: number): void {
    this.#slots = slots;
    this.#pump();
  }
  /** Admission or the planner may have changed (new version, claimed group, new tasks). */
  wake(): void {
    this.#plannerEmpty = false;
    this.#pump();
  }

  /**
   * Evaluation rollouts on the same desktops, before any training rollout: sampled at `temperature`, or, without one, the
   * most probable choice always. Resolves with one trajectory per order, in order; errors are outcomes like any other.
   * Rejects with `cancelled` when `signal` fires or the scheduler stops before the last one has ended.
   */
  runProbe(
    orders: readonly RolloutOrder[],
    o: { readonly temperature?: number | undefined; readonly signal?: AbortSignal } = {},
  ): Promise<Trajectory[]> {
    if (this.#stopping) return Promise.reject(cancelled('An evaluation'));
    const mine: Probe[] = [];
    const all = orders.map(
      (order) =>
        new Promise<Trajectory>((done, fail) => {
          mine.push({ order, done, cancelled: fail, sampling: this.#d.probeSampling(order, o.temperature) });
        }),
    );
    this.#probes.push(...mine);
    const onAbort = (): void => {
      for (const p of mine) {
        const i = this.#probes.indexOf(p);
        if (i >= 0) {
          this.#probes.splice(i, 1);
          p.cancelled(cancelled('An evaluation'));
        }
        for (const r of this.#runs) if (r.order === p.order) r.abort.abort();
      }
    };
    o.signal?.addEventListener('abort', onAbort, { once: true });
    if (o.signal?.aborted) onAbort();
    this.#pump();
    return Promise.all(all).finally(() => o.signal?.removeEventListener('abort', onAbort));
  }

  /**
   * Starts no new work; running rollouts get `graceMs` to end, then they are stopped (outcome error `cancelled`).
   * Resolves when every desktop is released.
   */
  async stop(o: { readonly graceMs: number }): Promise<void> {
    this.#stopping = true;
    for (const p of this.#probes.splice(0)) p.cancelled(cancelled('An evaluation'));
    this.#leasePause.cancel();
    this.#errorPause.cancel();
    this.#pump();
    const abortAll = (): void => {
      for (const r of this.#runs) r.abort.abort();
    };
    const cancelGrace = o.graceMs > 0 ? this.#d.clock.after(o.graceMs, abortAll) : (abortAll(), () => undefined);
    while (this.#runs.size > 0 || this.#leaseRequests.size > 0) await new Promise<void>((r) => this.#quiet.push(r));
    cancelGrace();
  }

  status(): SchedulerStatus {
    return {
      slots: this.#slots,
      leasing: this.#leaseRequests.size,
      idle: this.#idle.length,
      probesWaiting: this.#probes.length,
      paused: this.#paused,
      stopping: this.#stopping,
      running: [...this.#runs].map((r) => ({
        rollout: r.order.rollout,
        kind: r.kind,
        desktop: r.desktop.id,
        order: r.order,
        steps: r.steps.length,
        phase: r.phase,
        since: r.since,
      })),
    };
  }

  /** The rollout or probe on this desktop. */
  steerable(desktop: string): Steerable | undefined {
    for (const r of this.#runs) if (r.desktop.id === desktop) return r;
    return undefined;
  }

  onEvent(listener: (e: SchedulerEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Carries out `nextMove` until there is nothing to do. Re-entrant calls (from listeners) are folded into the running
   * one.
   */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      for (let again = true; again;) {
        const m = nextMove({
          slots: this.#slots,
          leasing: this.#leaseRequests.size,
          idle: this.#idle.length,
          running: this.#runs.size,
          probesWaiting: this.#probesHeld ? 0 : this.#probes.length,
          admit: this.#plannerEmpty ? 0 : this.#d.admit(),
          paused: this.#paused || this.#errorPause.on,
          stopping: this.#stopping,
        });
        let moved = m.cancelLeases + m.releaseIdle;
        for (let i = 0; i < m.startProbes; i++, moved++) {
          const p = this.#probes.shift()!;
          this.#begin('probe', p.order, p.sampling, p);
        }
        for (let i = 0; i < m.startRollouts; i++, moved++) {
          const order = this.#d.next();
          if (!order) {
            this.#plannerEmpty = true;
            moved++;
            break;
          }
          this.#begin('rollout', order, this.#d.sampling(order));
        }
        if (!this.#leasePause.on) for (let i = 0; i < m.requestLeases; i++) this.#requestLease();
        for (const a of [...this.#leaseRequests].slice(this.#leaseRequests.size - m.cancelLeases)) {
          this.#leaseRequests.delete(a);
          a.abort();
        }
        for (const lease of this.#idle.drop(m.releaseIdle)) this.#release(lease, false);
        again = moved > 0;
      }
    } finally {
      this.#pumping = false;
    }
    if (this.#runs.size === 0 && this.#leaseRequests.size === 0) for (const f of this.#quiet.splice(0)) f();
  }

  #requestLease(): void {
    const abort = new AbortController();
    this.#leaseRequests.add(abort);
    const t0 = this.#d.clock.now();
    this.#d.pool.lease({ signal: abort.signal }).then(
      (lease) => {
        // The request was cancelled, but the pool had already answered.
        if (!this.#leaseRequests.delete(abort)) {
          lease.release();
          return;
        }
        this.#leasePause.reset();
        this.#idle.add(lease, this.#d.clock.now() - t0);
        this.#lane(lease.desktop.id, 'idle');
        this.#pump();
      },
      (e: unknown) => {
        if (!this.#leaseRequests.delete(abort) || this.#stopping) {
          this.#pump();
          return;
        }
        this.#emit({ type: 'leaseFailed', error: toRunError(e), at: this.#d.clock.now() });
        this.#leasePause.begin();
        this.#pump();
      },
    );
  }

  #begin(kind: RolloutKind, order: RolloutOrder, sampling: Sampling, probe?: Probe): void {
    const { lease, waitMs } = this.#idle.take(),
      { clock } = this.#d;
    const run: Running = {
      kind,
      order,
      desktop: lease.desktop,
      abort: new AbortController(),
      since: clock.now(),
      steps: [],
      steering: new Steering(),
      phase: 'setup',
    };
    this.#runs.add(run);
    this.#emit({ type: 'started', kind, order, desktop: lease.desktop.id, leaseWaitMs: waitMs, at: run.since });
    void this.#episode(run, lease, sampling)
      .catch((e: unknown): EpisodeResult => ({
        trajectory: failedBefore(order, kind, toRunError(e), run.since, clock.now(), lease.resetMs),
        broken: false,
      }))
      .then((result) => this.#ended(run, lease, result, probe));
  }

  async #episode(run: Running, lease: Lease, sampling: Sampling): Promise<EpisodeResult> {
    const { kind, order } = run,
      desktop = lease.desktop.id,
      task = this.#d.taskOf(order);
    const ended = await runEpisode(this.#d.episode, lease, {
      order,
      task,
      provenance: { kind },
      sampling,
      signal: run.abort.signal,
      steering: run.steering,
      before: order.branch && this.#d.before?.(order),
      onStep: (step, alternatives, about) => {
        run.steps.push(step);
        const at = this.#d.clock.now();
        this.#emit({ type: 'step', kind, rollout: order.rollout, desktop, step, alternatives, about, at });
      },
      onPhase: (phase) => {
        run.phase = phase;
        this.#lane(desktop, phase, order.rollout);
      },
    });
    return lookBack(this.#d.episode, lease.desktop, { task, ended, signal: run.abort.signal });
  }

  /** Releases the desktop, reports the end, and begins the next rollout. */
  #ended(
    run: Running,
    lease: Lease,
    { trajectory, broken, relabelled }: EpisodeResult,
    probe: Probe | undefined,
  ): void {
    const { kind, order } = run;
    this.#runs.delete(run);
    this.#release(lease, broken, desktopFault(trajectory));
    const versions = [...new Set(trajectory.steps.flatMap((s) => (s.version === undefined ? [] : [s.version])))].sort(
      (a, b) => a - b,
    );
    // A rollout's end may give the planner a new order (a group is complete, a cap changed).
    this.#plannerEmpty = false;
    this.#emit({ type: 'ended', kind, order, trajectory, relabelled, versions, at: this.#d.clock.now() });
    if (!probe) this.#noteOutcome(trajectory);
    // A probe that was interrupted is not the policy's failure and is left out of the measurement.
    else if (run.abort.signal.aborted && trajectory.outcome.kind === 'error')
      probe.cancelled(cancelled('An evaluation'));
    else probe.done(trajectory);
    this.#pump();
  }

  /** After errors in a row no rollout begins for a while; the first rollout that ends otherwise lifts this. */
  #noteOutcome({ outcome }: Trajectory): void {
    if (outcome.kind !== 'error') {
      this.#errorsInARow = 0;
      this.#errorPause.reset();
      this.#errorPause.cancel();
      return;
    }
    const { kind } = outcome.error;
    // An error in one task says nothing about the next task.
    if (this.#stopping || SINGLE.has(kind) || kind.startsWith('task.')) return;
    const { perSlot, least } = FAILING;
    if (++this.#errorsInARow < Math.max(least, perSlot * this.#slots)) return;
    const pauseMs = this.#errorPause.begin();
    if (pauseMs > 0)
      this.#emit({
        type: 'failing',
        inARow: this.#errorsInARow,
        error: outcome.error,
        pauseMs,
        at: this.#d.clock.now(),
      });
  }

  #release(lease: Lease, broken: boolean, fault?: RunError): void {
    // Reported before the release, because the pool begins the reset at once and listeners should see that next.
    this.#lane(lease.desktop.id, 'released');
    lease.release(broken ? { broken: true, ...(fault ? { fault } : {}) } : undefined);
  }

  #lane(desktop: DesktopId, phase: EpisodePhase | 'idle' | 'released', rollout?: RolloutId): void {
    this.#emit({ type: 'lane', desktop, phase, rollout, at: this.#d.clock.now() });
  }
  #emit(e: SchedulerEvent): void {
    notify(this.#listeners, e);
  }
}

/** The error of a desktop that ended a rollout. */
function desktopFault({ outcome }: Trajectory): RunError | undefined {
  return outcome.kind === 'error' && outcome.error.kind.startsWith('desktop.') ? outcome.error : undefined;
}

/** A rollout that failed before its episode began: its task could not be created, or the runtime has a fault. */
function failedBefore(
  order: RolloutOrder,
  kind: RolloutKind,
  error: RunError,
  startedAt: number,
  endedAt: number,
  resetMs: number,
): Trajectory {
  return {
    id: order.rollout,
    task: order.task,
    family: order.family,
    instruction: '',
    group: kind === 'rollout' ? order.group : undefined,
    provenance: { kind },
    ...(order.branch ? { branch: order.branch } : {}),
    steps: [],
    outcome: { kind: 'error', error },
    cap: order.cap,
    startedAt,
    endedAt,
    resetMs,
    verifyMs: 0,
  };
}
