/**
 * The life cycle of a model pool's replicas: started, lost, restarted after growing pauses, given up, closed. It
 * decides nothing about calls or weights; `hooks` tell the pool what changed.
 */
import type { PolicyVersion, ReplicaId, RunError } from '../domain/index.js';
import { StudioError, toRunError } from '../domain/index.js';
import { growingMs } from '../concurrency/pause.js';
import type { AnswerBase, Replica, Versioned } from '../policy/types.js';
import type { ReplicaPhase, ReplicaView } from './syncPlanner.js';
import type { ModelPoolEvent, ModelPoolOptions } from './types.js';

/** The position of one replica in the fleet; the process behind it may be replaced. */
export interface Slot<Q, A extends AnswerBase, W extends Versioned> {
  readonly id: ReplicaId;
  phase: ReplicaPhase;
  version: PolicyVersion;
  inFlight: number;
  sessions: number;
  /** When its phase began. */
  since: number;
  replica: Replica<Q, A, W> | undefined;
  calls: number;
  /** Total ms of computing. */
  busyMs: number;
  restarts: number;
  /** Starts in a row after which no call was answered. */
  strikes: number;
}

export interface FleetHooks {
  readonly emit: (e: ModelPoolEvent) => void;
  /** A phase changed; waiters check again. */
  readonly changed: () => void;
  /** A replica takes calls. */
  readonly ready: () => void;
  /** Every replica is given up. */
  readonly dead: () => void;
}

export class ReplicaFleet<Q, A extends AnswerBase, W extends Versioned> {
  readonly slots: readonly Slot<Q, A, W>[];
  /** The weights that a replica starts with: the newest that some replica has read. */
  lastGoodWeights: W;
  closed = false;
  readonly #o: Required<ModelPoolOptions<Q, A, W>>;
  readonly #hooks: FleetHooks;
  readonly #timers = new Set<() => void>();

  constructor(o: Required<ModelPoolOptions<Q, A, W>>, hooks: FleetHooks) {
    this.#o = o;
    this.#hooks = hooks;
    this.lastGoodWeights = o.weights;
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

  /** Why the latest replica was lost, or could not be started. */
  lastLoss: RunError | undefined;

  get allDead(): boolean {
    return this.slots.every((s) => s.phase === 'dead');
  }

  views(): ReplicaView[] {
    return this.slots.map((s) => ({ ...viewOf(s), limit: s.replica?.limit }));
  }

  slot(id: ReplicaId | undefined): Slot<Q, A, W> | undefined {
    return this.slots.find((s) => s.id === id);
  }

  setPhase(slot: Slot<Q, A, W>, phase: ReplicaPhase): void {
    if (slot.phase === phase) return;
    slot.phase = phase;
    slot.since = this.#o.clock.now();
    this.#hooks.emit({ type: 'phase', replica: slot.id, phase, version: slot.version, at: slot.since });
    this.#hooks.changed();
  }

  /** Starts the slot's replica. Rejects with the error of the factory. */
  async bringUp(slot: Slot<Q, A, W>): Promise<void> {
    const weights = this.lastGoodWeights;
    const replica = await this.#o.factory(slot.id, weights);
    if (this.closed) {
      await replica.close();
      return;
    }
    slot.replica = replica;
    slot.version = weights.version;
    slot.inFlight = 0;
    replica.onLost((e) => this.lose(slot, replica, e));
    this.setPhase(slot, 'admitting');
    this.#hooks.ready();
  }

  /** Takes the replica out of its slot and starts another, unless that has happened already. */
  lose(slot: Slot<Q, A, W>, replica: Replica<Q, A, W>, error: RunError): void {
    if (slot.replica !== replica || this.closed) return;
    slot.replica = undefined;
    slot.inFlight = 0;
    this.#lost(slot, error);
    this.setPhase(slot, 'down');
    this.#restart(slot);
  }

  /** The work of a replica; one that does not answer in time counts as lost. */
  bounded<T>(slot: Slot<Q, A, W>, replica: Replica<Q, A, W>, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = this.#timer(this.#o.callTimeoutMs, () => {
        const hung = new StudioError(
          'policy.lost',
          `Replica ${slot.id} did not answer for ${this.#o.callTimeoutMs} ms.`,
          'It is restarted automatically.',
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
          reject(e);
        },
      );
    });
  }

  /** Stops restarts and closes every replica. */
  async close(): Promise<void> {
    this.stop();
    await Promise.all(
      this.slots.map(async (s) => {
        const r = s.replica;
        s.replica = undefined;
        this.setPhase(s, 'dead');
        await r?.close();
      }),
    );
  }

  /** Cancels every delayed restart and every time limit. */
  stop(): void {
    this.closed = true;
    for (const stop of [...this.#timers]) stop();
    this.#timers.clear();
  }

  #lost(slot: Slot<Q, A, W>, error: RunError): void {
    this.lastLoss = error;
    this.#hooks.emit({ type: 'lost', replica: slot.id, error, at: this.#o.clock.now() });
  }

  #restart(slot: Slot<Q, A, W>): void {
    const { restart } = this.#o;
    if (slot.strikes >= restart.attempts) {
      this.setPhase(slot, 'dead');
      if (this.allDead) this.#hooks.dead();
      return;
    }
    this.#timer(growingMs(restart, slot.strikes++), () => {
      slot.restarts++;
      this.bringUp(slot).catch((e: unknown) => {
        if (this.closed) return;
        this.#lost(slot, toRunError(e));
        this.#restart(slot);
      });
    });
  }

  #timer(ms: number, fn: () => void): () => void {
    const stop = this.#o.clock.after(ms, () => {
      this.#timers.delete(stop);
      fn();
    });
    this.#timers.add(stop);
    return () => {
      this.#timers.delete(stop);
      stop();
    };
  }
}

export const viewOf = (s: ReplicaView): ReplicaView => ({
  id: s.id,
  phase: s.phase,
  version: s.version,
  inFlight: s.inFlight,
  sessions: s.sessions,
});
