/** The daemon's end of a replica process. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { EmbeddedPolicySpec, PolicyVersion, ReplicaId, RunError } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import { StudioError, internalError } from '../../domain/index.js';
import { inRole } from '../../concurrency/process.js';
import { Pulse, type WorkOf } from '../../concurrency/pulse.js';
import type { Replica, ReplicaAnswer, ReplicaRequest, WeightsRef } from '../types.js';
import type { FromReplica, ToReplica } from './replicaWire.js';

export interface ReplicaOptions {
  readonly id: ReplicaId;
  readonly entry: ProcessEntry;
  readonly spec: EmbeddedPolicySpec;
  /** The policy graph (.onnx with a `theta` input). */
  readonly graph: string;
  readonly weights: WeightsRef;
  /** Alternatives reported per choice (default 5) and per position choice (default 32, enough for a heat map). */
  readonly top?: number;
  readonly topPlaces?: number;
  /** Tells a process that hangs from one that computes; without it silence alone counts. */
  readonly workOf?: WorkOf;
}

/** How long a replica may take to exit before it is killed. */
const CLOSE_MS = 3000;
/** How much of the end of standard error goes into the error of a lost replica, in characters. */
const STDERR_KEPT = 2000;

type Answered = Extract<FromReplica, { type: 'answer' | 'swapped' }>;
interface Call {
  readonly resolve: (m: Answered) => void;
  readonly reject: (e: Error) => void;
}

/**
 * Starts a replica; resolves when it can decide. Rejects with `engine.unavailable`, `store.damaged` or `policy.lost`.
 */
export async function startReplica(o: ReplicaOptions): Promise<Replica> {
  const { args, detached } = inRole(o.entry, '__replica', process.platform),
    child = fork(o.entry.file, args, {
      detached,
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
  const replica = new ReplicaProcess(o.id, child, o.weights.version, o.workOf);
  await replica.open({
    type: 'open',
    spec: o.spec,
    graph: o.graph,
    weights: o.weights,
    top: o.top ?? 5,
    topPlaces: o.topPlaces ?? 32,
  });
  return replica;
}

class ReplicaProcess implements Replica {
  readonly id: ReplicaId;
  version: PolicyVersion;
  /** Public so that tests can end it. */
  readonly child: ChildProcess;
  readonly #calls = new Map<number, Call>();
  readonly #listeners = new Set<(e: RunError) => void>();
  readonly #gone: Promise<void>;
  #opening: { resolve: () => void; reject: (e: Error) => void } | undefined;
  #nextCall = 1;
  #stderr = '';
  #lost: StudioError | undefined;
  #closing = false;
  /** Why it was killed for hanging; undefined otherwise. */
  #hung: string | undefined;
  readonly #pulse: Pulse;

  constructor(id: ReplicaId, child: ChildProcess, version: PolicyVersion, workOf?: WorkOf) {
    this.id = id;
    this.child = child;
    this.version = version;
    // A stopped process does not hear a polite signal.
    this.#pulse = new Pulse({
      pid: child.pid,
      workOf,
      hung: (why) => {
        this.#hung = why;
        child.kill('SIGKILL');
      },
    });
    child.on('message', (m) => this.#receive(m as FromReplica));
    child.stderr?.on('data', (d: Buffer) => {
      this.#stderr = (this.#stderr + d.toString('utf8')).slice(-STDERR_KEPT);
    });
    child.on('error', (e) => this.#fail(e.message));
    this.#gone = new Promise((resolve) => {
      const end = (code: number | null, signal: string | null): void => {
        this.#pulse.stop();
        this.#fail(this.#hung ?? (signal ? `it was ended by ${signal}` : `it ended with code ${code}`));
        resolve();
      };
      // 'close' comes after the last of stderr; a child that never started has only 'error'.
      child.on('close', end);
      child.on('error', () => {
        if (child.pid !== undefined) return;
        this.#pulse.stop();
        resolve();
      });
    });
  }

  open(m: ToReplica): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#opening = { resolve, reject };
      this.#send(m, reject);
    });
  }

  async decide(request: ReplicaRequest): Promise<ReplicaAnswer> {
    const m = await this.#call((call) => ({ type: 'decide', call, request }));
    if (m.type === 'answer') return m.answer;
    throw internalError(`Replica ${this.id} answered a decision with '${m.type}'.`);
  }

  async swap(weights: WeightsRef): Promise<void> {
    await this.#call((call) => ({ type: 'swap', call, weights }));
    this.version = weights.version;
  }

  onLost(listener: (e: RunError) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls already made are answered first. */
  async close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      if (this.child.connected) this.child.send({ type: 'close' } satisfies ToReplica, () => undefined);
    }
    const kill = setTimeout(() => this.child.kill('SIGKILL'), CLOSE_MS);
    await this.#gone;
    clearTimeout(kill);
  }

  #call(make: (call: number) => ToReplica): Promise<Answered> {
    if (this.#lost) return Promise.reject(this.#lost);
    if (this.#closing)
      return Promise.reject(new StudioError('policy.lost', `Replica ${this.id} is closed.`, 'Start it again.'));
    const call = this.#nextCall++;
    return new Promise<Answered>((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      this.#send(make(call), (e) => {
        if (this.#calls.delete(call)) reject(e);
      });
    });
  }

  #send(m: ToReplica, failed: (e: Error) => void): void {
    // A failed send means the process is ending; 'close' follows and says why.
    this.child.send(m, (e) => {
      if (e) void this.#gone.then(() => failed(this.#lost ?? e));
    });
  }

  #receive(m: FromReplica): void {
    this.#pulse.beat();
    if (m.type === 'alive') return;
    if (m.type === 'ready') {
      this.#opening?.resolve();
      this.#opening = undefined;
      return;
    }
    if (m.type === 'error' && m.call === undefined) {
      this.#opening?.reject(asError(m.error));
      this.#opening = undefined;
      return;
    }
    const call = this.#calls.get(m.call!);
    this.#calls.delete(m.call!);
    if (m.type === 'error') call?.reject(asError(m.error));
    else call?.resolve(m);
  }

  #fail(how: string): void {
    if (this.#lost) return;
    const expected = this.#closing && this.#calls.size === 0;
    const detail = this.#stderr.trim();
    this.#lost = new StudioError(
      'policy.lost',
      `Replica ${this.id} is gone: ${how}.`,
      'It is restarted automatically. If this repeats, see its last output in the details.',
      { details: { stderr: detail } },
    );
    this.#opening?.reject(this.#lost);
    for (const c of this.#calls.values()) c.reject(this.#lost);
    this.#calls.clear();
    if (!expected) for (const l of [...this.#listeners]) l(this.#lost.error);
  }
}

const asError = (e: RunError): StudioError =>
  new StudioError(e.kind, e.message, e.remedy, e.details ? { details: { ...e.details } } : undefined);
