/**
 * The model pool: several replicas behind one interface. Calls wait in one queue and go to a replica chosen by `route`;
 * `publish` updates replicas in the order of `planSync`; the calls of a replica that crashes are retried once on
 * another. The pool does not depend on how a replica is implemented; ReplicaFleet restarts the ones that die.
 */
import type { PolicyVersion, RunError } from '../domain/index.js';
import { StudioError, isLate, toRunError, cancelled } from '../domain/index.js';
import { settled } from '../concurrency/failures.js';
import type {
  AnswerBase,
  DecisionPool,
  ModelAnswer,
  Replica,
  ReplicaAnswer,
  ReplicaRequest,
  ReplicaSet,
  SyncReport,
  Versioned,
  WeightsRef,
} from '../policy/types.js';
import type { Slot } from './replicaFleet.js';
import { ReplicaFleet, viewOf } from './replicaFleet.js';
import { planSync, route } from './syncPlanner.js';
import { notify } from '../concurrency/notify.js';
import type { ModelPoolEvent, ModelPoolOptions, ModelPoolStatus } from './types.js';

interface Call<Q, A extends AnswerBase> {
  readonly request: Q;
  readonly session: string;
  readonly asked: number;
  attempts: number;
  settled: boolean;
  readonly resolve: (a: ModelAnswer<A>) => void;
  readonly reject: (e: unknown) => void;
}

export class ModelPool<Q = ReplicaRequest, A extends AnswerBase = ReplicaAnswer, W extends Versioned = WeightsRef>
  implements DecisionPool<Q, A>, ReplicaSet<W>
{
  readonly #o: Required<ModelPoolOptions<Q, A, W>>;
  readonly #fleet: ReplicaFleet<Q, A, W>;
  readonly #waiting: Call<Q, A>[] = [];
  /** The slot of each session, which takes its calls unless it is much busier than the others. */
  readonly #own = new Map<string, Slot<Q, A, W>>();
  readonly #listeners = new Set<(e: ModelPoolEvent) => void>();
  #target: PolicyVersion;
  #publishing: Promise<unknown> = Promise.resolve();
  /** Syncs that run or wait. */
  #syncs = 0;
  #changed: (() => void)[] = [];
  #failedInSync = 0;

  /** Starts every replica; rejects with the first error when one cannot start. */
  static async start<Q, A extends AnswerBase, W extends Versioned>(
    o: ModelPoolOptions<Q, A, W>,
  ): Promise<ModelPool<Q, A, W>> {
    const pool = new ModelPool<Q, A, W>(o);
    const started = await Promise.allSettled(pool.#fleet.slots.map((s) => pool.#fleet.bringUp(s)));
    const failed = started.find((r) => r.status === 'rejected');
    if (failed) {
      await pool.close();
      throw failed.reason;
    }
    return pool;
  }

  private constructor(o: ModelPoolOptions<Q, A, W>) {
    this.#o = {
      publishMode: 'per-replica',
      depth: 2,
      concurrency: 1,
      stickySlack: 1,
      callTimeoutMs: 30_000,
      restart: { baseMs: 200, maxMs: 10_000, attempts: 6 },
      ...o,
    };
    if (o.replicas.length === 0)
      throw new StudioError(
        'config.invalid',
        'A model pool needs at least one replica.',
        'Set policy.replicas to 1 or more.',
      );
    this.#target = o.weights.version;
    this.#fleet = new ReplicaFleet(this.#o, {
      emit: (e) => this.#emit(e),
      changed: () => this.#notify(),
      ready: () => this.#dispatch(),
      dead: () => {
        for (const c of this.#waiting.splice(0)) c.reject(noneLeft(this.#fleet.lastLoss));
      },
    });
  }

  decide(request: Q, o: { readonly session: string; readonly signal: AbortSignal }): Promise<ModelAnswer<A>> {
    return new Promise<ModelAnswer<A>>((resolve, reject) => {
      if (o.signal.aborted || this.#fleet.closed) return reject(cancelled('A decision'));
      if (this.#fleet.allDead) return reject(noneLeft(this.#fleet.lastLoss));
      const onAbort = (): void => {
        if (call.settled) return;
        const i = this.#waiting.indexOf(call);
        if (i >= 0) this.#waiting.splice(i, 1);
        call.reject(cancelled('A decision'));
      };
      const settle =
        <A>(f: (a: A) => void) =>
        (a: A): void => {
          if (!call.settled) {
            call.settled = true;
            o.signal.removeEventListener('abort', onAbort);
            f(a);
          }
        };
      const call: Call<Q, A> = {
        request,
        session: o.session,
        asked: this.#o.clock.now(),
        attempts: 0,
        settled: false,
        resolve: settle(resolve),
        reject: settle(reject),
      };
      o.signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(call);
      this.#dispatch();
    });
  }

  end(session: string): void {
    const s = this.#own.get(session);
    if (s) s.sessions--;
    this.#own.delete(session);
  }

  /**
   * Publishes these weights to every living replica; syncs run one after another. Rejects when the file is damaged; the
   * old weights then stay in use.
   */
  publish(weights: W): Promise<SyncReport> {
    this.#syncs++;
    const run = this.#publishing.then(() => this.#sync(weights));
    this.#publishing = settled(run).then(() => {
      this.#syncs--;
    });
    return run;
  }

  /**
   * The oldest version that a living replica answers with; lower than `status().version` while weights are being
   * published.
   */
  get oldest(): PolicyVersion {
    return this.#fleet.slots.reduce((v, s) => (s.phase === 'dead' ? v : Math.min(v, s.version)), this.#target);
  }

  status(): ModelPoolStatus {
    return {
      replicas: this.#fleet.slots.map((s) => ({
        ...viewOf(s),
        calls: s.calls,
        busyMs: s.busyMs,
        restarts: s.restarts,
        since: s.since,
      })),
      concurrency: this.#o.concurrency,
      waiting: this.#waiting.length,
      version: this.#target,
      publishing: this.#syncs > 0,
    };
  }

  onEvent(listener: (e: ModelPoolEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#fleet.stop();
    for (const c of this.#waiting.splice(0)) c.reject(cancelled('A decision'));
    this.#notify();
    await this.#fleet.close();
  }

  // Calls

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const call = this.#waiting[0]!;
      const slot = this.#fleet.slot(
        route(this.#fleet.views(), this.#own.get(call.session)?.id, {
          depth: this.#o.depth,
          slack: this.#o.stickySlack,
        }),
      );
      if (!slot?.replica) return;
      this.#waiting.shift();
      this.#stick(call.session, slot);
      void this.#run(call, slot, slot.replica);
    }
  }

  async #run(call: Call<Q, A>, slot: Slot<Q, A, W>, replica: Replica<Q, A, W>): Promise<void> {
    slot.inFlight++;
    try {
      const answer = await this.#fleet.bounded(slot, replica, replica.decide(call.request));
      slot.calls++;
      slot.busyMs += answer.computeMs;
      slot.strikes = 0;
      this.#emit({
        type: 'decided',
        replica: slot.id,
        session: call.session,
        version: answer.version,
        start: this.#o.clock.now() - answer.computeMs,
        ms: answer.computeMs,
      });
      call.resolve({
        answer,
        replica: slot.id,
        queueMs: Math.max(0, this.#o.clock.now() - call.asked - answer.computeMs),
      });
    } catch (e) {
      const error = toRunError(e);
      const syncing = slot.replica === replica && (slot.phase === 'draining' || slot.phase === 'swapping');
      const lost = error.kind === 'policy.lost';
      // A call that times out is retried once; after the second time-out the replica counts as hung.
      if (lost && !(isLate(error) && call.attempts === 0)) this.#fleet.lose(slot, replica, error);
      if (lost && call.attempts++ === 0 && !call.settled && !this.#fleet.closed) this.#waiting.unshift(call);
      else {
        if (syncing && !call.settled) this.#failedInSync++;
        call.reject(lost && this.#fleet.closed ? cancelled('A decision') : e);
      }
    } finally {
      // The slot no longer counts the calls of a replica that has been replaced.
      if (slot.replica === replica) slot.inFlight--;
      this.#notify();
      this.#dispatch();
    }
  }

  #stick(session: string, slot: Slot<Q, A, W>): void {
    const before = this.#own.get(session);
    if (before === slot) return;
    if (before) before.sessions--;
    slot.sessions++;
    this.#own.set(session, slot);
  }

  // Sync

  async #sync(weights: W): Promise<SyncReport> {
    const { clock, publishMode } = this.#o;
    this.#target = weights.version;
    const rows: SyncReport['replicas'][number][] = [];
    const drainBegan = new Map<Slot<Q, A, W>, number>();
    const failedBefore = this.#failedInSync;
    try {
      for (;;) {
        if (this.#fleet.closed) throw cancelled('Publishing weights');
        if (this.#fleet.allDead) throw noneLeft(this.#fleet.lastLoss);
        const inService = this.#fleet.slots.find(
          (s) => s.phase === 'admitting' && s.version !== weights.version && s.replica?.swapsInService,
        );
        if (inService) {
          await this.#swap(inService, weights, drainBegan, rows);
          continue;
        }
        const step = planSync(this.#fleet.views(), weights.version, publishMode);
        if (step.done) break;
        for (const id of step.drain) {
          const s = this.#fleet.slot(id)!;
          drainBegan.set(s, clock.now());
          this.#fleet.setPhase(s, 'draining');
        }
        if (step.swap.length > 0) {
          const swaps = await Promise.allSettled(
            step.swap.map((id) => this.#swap(this.#fleet.slot(id)!, weights, drainBegan, rows)),
          );
          for (const r of swaps) if (r.status === 'rejected') throw r.reason;
        } else if (step.drain.length === 0) await new Promise<void>((r) => this.#changed.push(r));
      }
    } catch (e) {
      this.#target = this.#fleet.lastGoodWeights.version;
      throw e;
    } finally {
      for (const s of this.#fleet.slots) if (s.phase === 'draining') this.#fleet.setPhase(s, 'admitting');
      this.#dispatch();
    }
    const report: SyncReport = { version: weights.version, replicas: rows, failed: this.#failedInSync - failedBefore };
    this.#emit({ type: 'published', report, at: clock.now() });
    return report;
  }

  async #swap(
    slot: Slot<Q, A, W>,
    weights: W,
    drainBegan: ReadonlyMap<Slot<Q, A, W>, number>,
    rows: SyncReport['replicas'][number][],
  ): Promise<void> {
    const replica = slot.replica!;
    const t0 = this.#o.clock.now();
    if (!replica.swapsInService) this.#fleet.setPhase(slot, 'swapping');
    try {
      await this.#fleet.bounded(slot, replica, replica.swap(weights));
    } catch (e) {
      const error = toRunError(e);
      // A replica that died is restarted and planned again; a damaged file ends this sync.
      if (error.kind === 'policy.lost') return this.#fleet.lose(slot, replica, error);
      if (slot.replica === replica) this.#fleet.setPhase(slot, 'admitting');
      throw e;
    }
    this.#fleet.lastGoodWeights = weights;
    if (slot.replica !== replica) return;
    slot.version = weights.version;
    rows.push({ replica: slot.id, drainMs: t0 - (drainBegan.get(slot) ?? t0), swapMs: this.#o.clock.now() - t0 });
    this.#fleet.setPhase(slot, 'admitting');
    this.#dispatch();
  }

  #notify(): void {
    for (const f of this.#changed.splice(0)) f();
  }
  #emit(e: ModelPoolEvent): void {
    notify(this.#listeners, e);
  }
}

/** The remedy is that of the last replica's error, which tells a process of ours from somebody's server. */
const noneLeft = (last: RunError | undefined): StudioError =>
  new StudioError(
    'policy.lost',
    `Every replica of the policy has died repeatedly${last ? `; the last one: ${last.message}` : '.'}`,
    last?.remedy ?? 'Look at the replica errors in the log, and run `dart-studio doctor`.',
  );
