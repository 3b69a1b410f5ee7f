/**
 * The model pool: replicas behind one door. Calls wait in one line and go to a replica by `route`; `publish` refreshes
 * replicas by
 * `planSync`; a crashed replica is restarted and its calls are tried once more elsewhere. Nothing here knows what a
 * replica is made of.
 */
import type { PolicyVersion, ReplicaId, RunError } from '../domain/index.js';
import { StudioError, toRunError } from '../domain/index.js';
import type {
  DecisionPool,
  ModelAnswer,
  Replica,
  ReplicaRequest,
  ReplicaSet,
  SyncReport,
  WeightsRef,
} from '../policy/types.js';
import type { Clock } from './clock.js';
import { cancelled } from './clock.js';
import type { PublishMode, ReplicaPhase, ReplicaView } from './syncPlanner.js';
import { planSync, route } from './syncPlanner.js';
import { tell } from './tell.js';

export interface ModelPoolOptions {
  readonly replicas: readonly ReplicaId[];
  /** Starts (or restarts) a replica with these weights. */
  readonly factory: (id: ReplicaId, weights: WeightsRef) => Promise<Replica>;
  readonly weights: WeightsRef;
  readonly clock: Clock;
  /** Default 'per-replica'. */
  readonly publishMode?: PublishMode;
  /** Calls in a replica at once; 2 keeps it busy while answers travel. Default 2. */
  readonly depth?: number;
  /** How much busier than the idlest a session's own replica may be. Default 1. */
  readonly stickySlack?: number;
  /** A call without an answer for so long means that the replica hangs: it is replaced. Default 30 s. */
  readonly callTimeoutMs?: number;
  /** Pauses before restarts: base * 2^n, at most max; given up after `attempts` in a row without an answer. */
  readonly restart?: { readonly baseMs: number; readonly maxMs: number; readonly attempts: number };
}

export interface ModelPoolStatus {
  readonly replicas: readonly (ReplicaView & {
    readonly calls: number;
    /** ms of computing, in sum. */
    readonly busyMs: number;
    readonly restarts: number;
    /** When its phase began. */
    readonly since: number;
  })[];
  readonly waiting: number;
  /** The newest version published or being published. */
  readonly version: PolicyVersion;
  readonly publishing: boolean;
}
export type ModelPoolEvent =
  | {
      readonly type: 'phase';
      readonly replica: ReplicaId;
      readonly phase: ReplicaPhase;
      readonly version: PolicyVersion;
      readonly at: number;
    }
  /** A call was answered: it computed from `start` for `ms`. */
  | {
      readonly type: 'decided';
      readonly replica: ReplicaId;
      readonly session: string;
      readonly version: PolicyVersion;
      readonly start: number;
      readonly ms: number;
    }
  | { readonly type: 'lost'; readonly replica: ReplicaId; readonly error: RunError; readonly at: number }
  | { readonly type: 'published'; readonly report: SyncReport; readonly at: number };

interface Slot {
  readonly id: ReplicaId;
  phase: ReplicaPhase;
  version: PolicyVersion;
  inFlight: number;
  sessions: number;
  since: number;
  replica: Replica | undefined;
  calls: number;
  busyMs: number;
  restarts: number;
  strikes: number;
}
interface Call {
  readonly request: ReplicaRequest;
  readonly session: string;
  readonly asked: number;
  attempts: number;
  settled: boolean;
  readonly resolve: (a: ModelAnswer) => void;
  readonly reject: (e: Error) => void;
}

export class ModelPool implements DecisionPool, ReplicaSet {
  private readonly o: Required<ModelPoolOptions>;
  private readonly slots: Slot[];
  private readonly waiting: Call[] = [];
  private readonly own = new Map<string, Slot>();
  private readonly listeners = new Set<(e: ModelPoolEvent) => void>();
  private readonly timers = new Set<() => void>();
  private good: WeightsRef;
  private target: PolicyVersion;
  private publishing: Promise<unknown> = Promise.resolve();
  private busy = 0;
  private changed: (() => void)[] = [];
  private failedInSync = 0;
  private closed = false;

  /** Starts every replica; rejects with the first one's error when one cannot start. */
  static async start(o: ModelPoolOptions): Promise<ModelPool> {
    const pool = new ModelPool(o);
    const started = await Promise.allSettled(pool.slots.map((s) => pool.bringUp(s)));
    const failed = started.find((r) => r.status === 'rejected');
    if (failed) {
      await pool.close();
      throw failed.reason;
    }
    return pool;
  }

  private constructor(o: ModelPoolOptions) {
    this.o = {
      publishMode: 'per-replica',
      depth: 2,
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
    this.good = o.weights;
    this.target = o.weights.version;
    this.slots = o.replicas.map((id) => ({
      id,
      phase: 'down',
      version: o.weights.version,
      inFlight: 0,
      sessions: 0,
      since: o.clock.now(),
      replica: undefined,
      calls: 0,
      busyMs: 0,
      restarts: 0,
      strikes: 0,
    }));
  }

  decide(request: ReplicaRequest, o: { readonly session: string; readonly signal: AbortSignal }): Promise<ModelAnswer> {
    return new Promise<ModelAnswer>((resolve, reject) => {
      if (o.signal.aborted || this.closed) return reject(cancelled('A decision'));
      if (this.slots.every((s) => s.phase === 'dead')) return reject(noneLeft());
      const onAbort = (): void => {
        if (call.settled) return;
        const i = this.waiting.indexOf(call);
        if (i >= 0) this.waiting.splice(i, 1);
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
      const call: Call = {
        request,
        session: o.session,
        asked: this.o.clock.now(),
        attempts: 0,
        settled: false,
        resolve: settle(resolve),
        reject: settle(reject),
      };
      o.signal.addEventListener('abort', onAbort, { once: true });
      this.waiting.push(call);
      this.dispatch();
    });
  }

  end(session: string): void {
    const s = this.own.get(session);
    if (s) s.sessions--;
    this.own.delete(session);
  }

  /**
   * Gives every living replica these weights; syncs run one after another. Rejects (old weights stay in use) when the
   * file is damaged.
   */
  publish(weights: WeightsRef): Promise<SyncReport> {
    this.busy++;
    const run = this.publishing.then(() => this.sync(weights));
    this.publishing = run
      .catch(() => undefined)
      .then(() => {
        this.busy--;
      });
    return run;
  }

  /** Oldest weights a living replica answers with; behind `status().version` while weights are being published. */
  get oldest(): PolicyVersion {
    return this.slots.reduce((v, s) => (s.phase === 'dead' ? v : Math.min(v, s.version)), this.target);
  }

  status(): ModelPoolStatus {
    return {
      replicas: this.slots.map((s) => ({
        ...view(s),
        calls: s.calls,
        busyMs: s.busyMs,
        restarts: s.restarts,
        since: s.since,
      })),
      waiting: this.waiting.length,
      version: this.target,
      publishing: this.busy > 0,
    };
  }

  onEvent(listener: (e: ModelPoolEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const stop of [...this.timers]) stop();
    this.timers.clear();
    for (const c of this.waiting.splice(0)) c.reject(cancelled('A decision'));
    this.notify();
    await Promise.all(
      this.slots.map(async (s) => {
        const r = s.replica;
        s.replica = undefined;
        this.setPhase(s, 'dead');
        await r?.close();
      }),
    );
  }

  // Calls

  private dispatch(): void {
    while (this.waiting.length > 0) {
      const call = this.waiting[0]!;
      const slot = this.slot(
        route(this.slots.map(view), this.own.get(call.session)?.id, { depth: this.o.depth, slack: this.o.stickySlack }),
      );
      if (!slot?.replica) return;
      this.waiting.shift();
      this.stick(call.session, slot);
      void this.run(call, slot, slot.replica);
    }
  }

  private async run(call: Call, slot: Slot, replica: Replica): Promise<void> {
    slot.inFlight++;
    try {
      const answer = await this.bounded(slot, replica, replica.decide(call.request));
      slot.calls++;
      slot.busyMs += answer.computeMs;
      slot.strikes = 0;
      this.emit({
        type: 'decided',
        replica: slot.id,
        session: call.session,
        version: answer.version,
        start: this.o.clock.now() - answer.computeMs,
        ms: answer.computeMs,
      });
      call.resolve({
        answer,
        replica: slot.id,
        queueMs: Math.max(0, this.o.clock.now() - call.asked - answer.computeMs),
      });
    } catch (e) {
      const error = toRunError(e);
      const syncing = slot.replica === replica && (slot.phase === 'draining' || slot.phase === 'swapping');
      if (error.kind === 'policy.lost') this.lose(slot, replica, error);
      if (error.kind === 'policy.lost' && call.attempts++ === 0 && !call.settled && !this.closed)
        this.waiting.unshift(call);
      else {
        if (syncing && !call.settled) this.failedInSync++;
        call.reject(e as Error);
      }
    } finally {
      // A replaced replica's calls are no longer counted on its slot.
      if (slot.replica === replica) slot.inFlight--;
      this.notify();
      this.dispatch();
    }
  }

  private stick(session: string, slot: Slot): void {
    const before = this.own.get(session);
    if (before === slot) return;
    if (before) before.sessions--;
    slot.sessions++;
    this.own.set(session, slot);
  }

  // Sync

  private async sync(weights: WeightsRef): Promise<SyncReport> {
    const { clock, publishMode } = this.o;
    this.target = weights.version;
    const rows: SyncReport['replicas'][number][] = [];
    const drainBegan = new Map<Slot, number>();
    const failedBefore = this.failedInSync;
    try {
      for (;;) {
        if (this.closed) throw cancelled('Publishing weights');
        if (this.slots.every((s) => s.phase === 'dead')) throw noneLeft();
        const step = planSync(this.slots.map(view), weights.version, publishMode);
        if (step.done) break;
        for (const id of step.drain) {
          const s = this.slot(id)!;
          drainBegan.set(s, clock.now());
          this.setPhase(s, 'draining');
        }
        if (step.swap.length > 0) {
          const swaps = await Promise.allSettled(
            step.swap.map((id) => this.swap(this.slot(id)!, weights, drainBegan, rows)),
          );
          for (const r of swaps) if (r.status === 'rejected') throw r.reason;
        } else if (step.drain.length === 0) await new Promise<void>((r) => this.changed.push(r));
      }
    } catch (e) {
      this.target = this.good.version;
      throw e;
    } finally {
      for (const s of this.slots) if (s.phase === 'draining') this.setPhase(s, 'admitting');
      this.dispatch();
    }
    const report: SyncReport = { version: weights.version, replicas: rows, failed: this.failedInSync - failedBefore };
    this.emit({ type: 'published', report, at: clock.now() });
    return report;
  }

  private async swap(
    slot: Slot,
    weights: WeightsRef,
    drainBegan: ReadonlyMap<Slot, number>,
    rows: SyncReport['replicas'][number][],
  ): Promise<void> {
    const replica = slot.replica!;
    const t0 = this.o.clock.now();
    this.setPhase(slot, 'swapping');
    try {
      await this.bounded(slot, replica, replica.swap(weights));
    } catch (e) {
      const error = toRunError(e);
      // A replica that died is restarted and meets the planner again; a damaged file ends this sync.
      if (error.kind === 'policy.lost') return this.lose(slot, replica, error);
      if (slot.replica === replica) this.setPhase(slot, 'admitting');
      throw e;
    }
    this.good = weights;
    if (slot.replica !== replica) return;
    slot.version = weights.version;
    rows.push({ replica: slot.id, drainMs: t0 - (drainBegan.get(slot) ?? t0), swapMs: this.o.clock.now() - t0 });
    this.setPhase(slot, 'admitting');
    this.dispatch();
  }

  // Life of a replica

  private async bringUp(slot: Slot): Promise<void> {
    const weights = this.good;
    const replica = await this.o.factory(slot.id, weights);
    if (this.closed) {
      await replica.close();
      return;
    }
    slot.replica = replica;
    slot.version = weights.version;
    slot.inFlight = 0;
    replica.onLost((e) => this.lose(slot, replica, e));
    this.setPhase(slot, 'admitting');
    this.dispatch();
  }

  private lose(slot: Slot, replica: Replica, error: RunError): void {
    if (slot.replica !== replica || this.closed) return;
    slot.replica = undefined;
    slot.inFlight = 0;
    this.emit({ type: 'lost', replica: slot.id, error, at: this.o.clock.now() });
    this.setPhase(slot, 'down');
    this.restart(slot);
  }

  private restart(slot: Slot): void {
    const { baseMs, maxMs, attempts } = this.o.restart;
    if (slot.strikes >= attempts) {
      this.setPhase(slot, 'dead');
      if (this.slots.every((s) => s.phase === 'dead')) for (const c of this.waiting.splice(0)) c.reject(noneLeft());
      return;
    }
    this.timer(Math.min(maxMs, baseMs * 2 ** slot.strikes++), () => {
      slot.restarts++;
      this.bringUp(slot).catch((e: unknown) => {
        if (this.closed) return;
        this.emit({ type: 'lost', replica: slot.id, error: toRunError(e), at: this.o.clock.now() });
        this.restart(slot);
      });
    });
  }

  /** A replica that does not answer in time is taken for lost and replaced. */
  private bounded<T>(slot: Slot, replica: Replica, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = this.timer(this.o.callTimeoutMs, () => {
        const hung = new StudioError(
          'policy.lost',
          `Replica ${slot.id} did not answer for ${this.o.callTimeoutMs} ms.`,
          'It is restarted by itself.',
        );
        this.lose(slot, replica, hung.error);
        void replica.close();
        reject(hung);
      });
      work.then(
        (v) => {
          stop();
          resolve(v);
        },
        (e: unknown) => {
          stop();
          reject(e as Error);
        },
      );
    });
  }

  private timer(ms: number, fn: () => void): () => void {
    const stop = this.o.clock.after(ms, () => {
      this.timers.delete(stop);
      fn();
    });
    this.timers.add(stop);
    return () => {
      this.timers.delete(stop);
      stop();
    };
  }

  private slot(id: ReplicaId | undefined): Slot | undefined {
    return this.slots.find((s) => s.id === id);
  }

  private setPhase(slot: Slot, phase: ReplicaPhase): void {
    if (slot.phase === phase) return;
    slot.phase = phase;
    slot.since = this.o.clock.now();
    this.emit({ type: 'phase', replica: slot.id, phase, version: slot.version, at: slot.since });
    this.notify();
  }

  private notify(): void {
    for (const f of this.changed.splice(0)) f();
  }
  private emit(e: ModelPoolEvent): void {
    tell(this.listeners, e);
  }
}

const view = (s: Slot): ReplicaView => ({
  id: s.id,
  phase: s.phase,
  version: s.version,
  inFlight: s.inFlight,
  sessions: s.sessions,
});
const noneLeft = (): StudioError =>
  new StudioError(
    'policy.lost',
    'Every replica of the policy has died repeatedly.',
    'Look at the last replica error in the log; `dart-studio doctor` checks ONNX Runtime.',
  );
