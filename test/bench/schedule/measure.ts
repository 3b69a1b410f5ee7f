import type { DesktopId, PolicyVersion, RolloutId } from '../../../runtime/domain/index.js';
import type { ClaimedBatch } from '../../../runtime/data/claims.js';
import type { EventSink } from '../../../runtime/data/commits.js';
import type { JournalEvent } from '../../../runtime/data/events.js';
import { isError } from '../../../runtime/data/events.js';
import type { ModelPoolEvent, SchedulerEvent } from '../../../runtime/rollout/types.js';
import type { ModelPool } from '../../../runtime/rollout/modelPool.js';
import { desktopUse } from '../../../runtime/run/meters.js';
import { Demand } from './demand.js';
import type { EventClock } from './eventClock.js';
import type { Workload } from './workload.js';

/** Time during which each of several lanes was busy, in sum, since `restart`. */
class Lanes {
  readonly #since = new Map<string, number>();
  #ms = 0;
  begin(lane: string, at: number): void {
    if (!this.#since.has(lane)) this.#since.set(lane, at);
  }
  end(lane: string, at: number): void {
    const s = this.#since.get(lane);
    if (s !== undefined) {
      this.#ms += at - s;
      this.#since.delete(lane);
    }
  }
  restart(at: number): void {
    this.#ms = 0;
    for (const lane of this.#since.keys()) this.#since.set(lane, at);
  }
  total(at: number): number {
    let ms = this.#ms;
    for (const s of this.#since.values()) ms += at - s;
    return ms;
  }
}

/** What one simulated run showed between the end of its warm-up and its end; see `Measured`. */
export class Measure implements EventSink {
  readonly #clock: EventClock;
  readonly #w: Workload;
  readonly #eta: number;
  readonly #leased = new Lanes();
  readonly #working = new Lanes();
  readonly #resets = new Lanes();
  readonly #trainer = new Lanes();
  readonly #down = new Lanes();
  readonly #draining = new Lanes();
  readonly #demand = new Demand();
  readonly #out = new Set<string>();
  readonly #lags: number[] = [];
  readonly #poolLags: number[] = [];
  #injections = 0;
  /** Steps of rollouts that ended with an outcome, until they are resolved. */
  readonly #lengths = new Map<RolloutId, number>();
  readonly #candidates = new Set<RolloutId>();
  #t0 = 0;
  #windowTrained = 0;
  #windowUnused = 0;
  #busy0 = 0;
  #ended = 0;
  #steps = 0;
  #errors = 0;
  #updates = 0;
  #trainedRollouts = 0;
  #trainedActions = 0;
  #killed = 0;
  #failedInSync = 0;
  #minServing: number;
  /** Over the whole run, resolved rollouts only: what became of them. */
  readonly resolved = { trained: 0, unused: {} as Record<string, number>, error: 0 };
  readonly lengths = { resolved: [] as number[], candidates: [] as number[], trained: [] as number[] };

  constructor(clock: EventClock, w: Workload, eta: number) {
    this.#clock = clock;
    this.#eta = eta;
    this.#w = w;
    this.#minServing = w.replicas;
  }

  append(e: JournalEvent): Promise<void> {
    if (e.type === 'trajectory.recorded' && e.head.provenance.kind === 'rollout') {
      if (isError(e.head.outcome)) this.resolved.error++;
      else this.#lengths.set(e.head.id, e.head.steps);
    } else if (e.type === 'group.formed') {
      for (const m of e.members)
        if (m.injected) this.#injections++;
        else this.#candidates.add(m.rollout);
      for (const r of e.retired) this.#resolve(r.rollout, r.reason);
    } else if (e.type === 'group.dropped') for (const r of e.retired) this.#resolve(r.rollout, r.reason);
    else if (e.type === 'group.retired') for (const r of e.rollouts) this.#resolve(r, e.reason);
    else if (e.type === 'batch.trained') for (const r of e.rollouts) this.#resolve(r, undefined);
    else if (e.type === 'batch.claimed')
      for (const lag of e.poolLags ?? []) this.#poolLags[lag] = (this.#poolLags[lag] ?? 0) + 1;
    return DONE;
  }
  close(): Promise<void> {
    return DONE;
  }
  #resolve(rollout: RolloutId, reason: string | undefined): void {
    const steps = this.#lengths.get(rollout);
    if (steps === undefined) return;
    this.#lengths.delete(rollout);
    this.lengths.resolved.push(steps);
    if (this.#candidates.delete(rollout)) this.lengths.candidates.push(steps);
    if (reason === undefined) this.#windowTrained++;
    else this.#windowUnused++;
    if (reason === undefined) {
      this.resolved.trained++;
      this.lengths.trained.push(steps);
    } else this.resolved.unused[reason] = (this.resolved.unused[reason] ?? 0) + 1;
  }

  onScheduler(e: SchedulerEvent): void {
    this.#demand.onScheduler(e);
    if (e.type === 'lane') {
      const { leased, working } = desktopUse(e.phase);
      if (leased) this.#leased.begin(e.desktop, e.at);
      else this.#leased.end(e.desktop, e.at);
      if (working) this.#working.begin(e.desktop, e.at);
      else this.#working.end(e.desktop, e.at);
    } else if (e.type === 'ended') {
      if (isError(e.trajectory.outcome)) this.#errors++;
      else {
        this.#ended++;
        this.#steps += e.trajectory.steps.length;
      }
    }
  }
  onReset(desktop: DesktopId, busy: boolean, broken: boolean): void {
    this.#demand.onReset(desktop, busy, broken, this.#clock.now());
    if (busy) this.#resets.begin(desktop, this.#clock.now());
    else this.#resets.end(desktop, this.#clock.now());
  }
  onModels(e: ModelPoolEvent): void {
    this.#demand.onModels(e);
    if (e.type === 'published') {
      this.#failedInSync += e.report.failed;
      return;
    }
    if (e.type !== 'phase') return;
    const swap = e.phase === 'swapping' || e.phase === 'down';
    if (swap) this.#down.begin(e.replica, e.at);
    else this.#down.end(e.replica, e.at);
    if (e.phase === 'draining') this.#draining.begin(e.replica, e.at);
    else this.#draining.end(e.replica, e.at);
    if (e.phase === 'admitting') this.#out.delete(e.replica);
    else this.#out.add(e.replica);
    this.#minServing = Math.min(this.#minServing, this.#w.replicas - this.#out.size);
  }
  killed(calls: number): void {
    this.#killed += calls;
  }
  training(busy: boolean): void {
    if (busy) this.#trainer.begin('trainer', this.#clock.now());
    else this.#trainer.end('trainer', this.#clock.now());
  }
  batch(b: ClaimedBatch, version: PolicyVersion): void {
    this.#updates++;
    for (const g of b.groups) {
      for (const m of g.members) {
        if (m.injected) continue;
        const kept = m.trajectory.steps.filter((_, i) => m.keep[i]);
        if (kept.length > 0) this.#trainedRollouts++;
        this.#trainedActions += kept.length;
        for (const s of kept) {
          const lag = version - s.version!;
          this.#lags[lag] = (this.#lags[lag] ?? 0) + 1;
        }
      }
    }
  }

  /** The warm-up is over. */
  begin(models: ModelPool): void {
    const at = this.#clock.now();
    this.#t0 = at;
    for (const l of [this.#leased, this.#working, this.#resets, this.#trainer, this.#down, this.#draining])
      l.restart(at);
    this.#demand.begin(at);
    this.#busy0 = busyMs(models);
    this.#ended =
      this.#steps =
      this.#errors =
      this.#updates =
      this.#trainedRollouts =
      this.#trainedActions =
      this.#killed =
      this.#failedInSync =
      this.#windowTrained =
      this.#windowUnused =
        0;
    this.#minServing = this.#w.replicas;
    this.#lags.length = 0;
    this.#poolLags.length = 0;
  }

  end(models: ModelPool): Measured {
    const w = this.#w,
      at = this.#clock.now(),
      ms = at - this.#t0,
      s = ms / 1000;
    const desktops = ms * w.desktops,
      replicas = ms * w.replicas,
      { trained, unused, error } = this.resolved;
    const dropped = Object.values(unused).reduce((a, b) => a + b, 0);
    const length = this.#steps / Math.max(1, this.#ended),
      rate = this.#ended / s;
    const alpha = this.#windowTrained / Math.max(1, this.#windowTrained + this.#windowUnused);
    const { desktop, replica } = this.#demand.total(at),
      taken = { desktops: desktop, replicas: replica, trainer: this.#trainer.total(at) },
      /** Share of each resource that rollouts took; X/X* is the largest. */
      shares = {
        desktops: taken.desktops / desktops,
        replicas: taken.replicas / (replicas * w.depth),
        trainer: taken.trainer / ms,
      },
      ratio = Math.max(shares.desktops, shares.replicas, shares.trainer);
    const bounds = {
      desktops: rate / shares.desktops,
      replicas: rate / shares.replicas,
      trainer: rate / shares.trainer,
    };
    return {
      rate,
      bound: rate / ratio,
      bounds,
      shares,
      ratio,
      length,
      alpha,
      strictCap: (w.reset + w.verify + length * w.step) / (w.reset + w.verify + length * (w.step + w.decide)),
      loose: (this.#leased.total(at) + this.#resets.total(at)) / desktops,
      strict: (this.#working.total(at) + this.#resets.total(at)) / desktops,
      replicaBusy: (busyMs(models) - this.#busy0) / (replicas * w.depth),
      trainerIdle: 1 - this.#trainer.total(at) / ms,
      staleness: lagsOf(this.#lags),
      poolStaleness: lagsOf(this.#poolLags),
      injections: this.#injections,
      eta: this.#eta,
      updatesPerHour: this.#updates / (s / 3600),
      unused: dropped / Math.max(1, trained + dropped),
      unusedBy: { ...unused },
      gradientShare: trained / Math.max(1, trained + dropped + error),
      stale: unused['stale'] ?? 0,
      syncDown: this.#down.total(at) / replicas,
      syncDrain: this.#draining.total(at) / replicas,
      servingMin: this.#minServing / w.replicas,
      failed: this.#killed + this.#failedInSync,
      errors: this.#errors,
      generatedActions: this.#steps / (s / 60),
      trainedActions: this.#trainedActions / (s / 60),
      trainedRollouts: this.#trainedRollouts / (s / 60),
    };
  }
}

interface Resources {
  readonly desktops: number;
  readonly replicas: number;
  readonly trainer: number;
}
/** All rates per second of virtual time unless named otherwise. */
export interface Measured {
  /**
   * Trajectories with an outcome per second, and the bound X* of runtime/rollout/README.md#throughput-bound: what each
   * resource could serve if none ever waited, with what a trajectory of this run takes of it on average (demand.ts). So
   * X/X* is the share that was taken of the resource that ran out first, and never more than 1.
   */
  readonly rate: number;
  readonly bound: number;
  readonly bounds: Resources;
  readonly shares: Resources;
  readonly ratio: number;
  readonly length: number;
  /** Share of the rollouts resolved in the window that were trained. */
  readonly alpha: number;
  /** Most that strict utilisation can be: (r + v + Le) / (r + v + L(e+g)). */
  readonly strictCap: number;
  readonly loose: number;
  readonly strict: number;
  /** Work done by the replicas over their capacity. */
  readonly replicaBusy: number;
  readonly trainerIdle: number;
  /** Updates a trained step's version lags behind at the claim. */
  readonly staleness: { readonly mean: number; readonly p95: number; readonly max: number };
  /** The same of the policy's own successes that joined from the pool. */
  readonly poolStaleness: { readonly mean: number; readonly p95: number; readonly max: number };
  /** Successes of the pool that joined a group, over the whole run. */
  readonly injections: number;
  /** The staleness bound. */
  readonly eta: number;
  readonly updatesPerHour: number;
  /** Share of resolved rollouts with an outcome that were not trained, over the whole run, and why (counts). */
  readonly unused: number;
  readonly unusedBy: Readonly<Record<string, number>>;
  /**
   * Rollouts trained (their group's rewards differ) over all that were resolved, errors included, over the whole run.
   */
  readonly gradientShare: number;
  readonly stale: number;
  /** Shares of replica time: out of service for new weights, and finishing calls without taking new ones. */
  readonly syncDown: number;
  readonly syncDrain: number;
  /** Smallest share of replicas that took calls. */
  readonly servingMin: number;
  readonly failed: number;
  readonly errors: number;
  /** Per minute. */
  readonly generatedActions: number;
  readonly trainedActions: number;
  readonly trainedRollouts: number;
}

const DONE = Promise.resolve();
const busyMs = (models: ModelPool): number => models.status().replicas.reduce((a, r) => a + r.busyMs, 0);

function lagsOf(counts: readonly number[]): Measured['staleness'] {
  const all = Array.from(counts, (c) => c ?? 0),
    n = all.reduce((a, b) => a + b, 0);
  if (n === 0) return { mean: 0, p95: 0, max: 0 };
  let seen = 0;
  const p95 = all.findIndex((c) => (seen += c) >= 0.95 * n);
  return { mean: all.reduce((a, c, lag) => a + c * lag, 0) / n, p95, max: all.length - 1 };
}
