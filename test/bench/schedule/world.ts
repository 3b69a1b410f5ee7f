/**
 * Desktops, replicas and tasks of the simulator, behind the production contracts, on virtual time. Times inside are ms.
 */
import { StudioError, id } from '../../../runtime/domain/index.js';
import type {
  Action,
  DesktopId,
  EncodedState,
  FamilyId,
  Frame,
  FrameRef,
  Outcome,
  ReplicaId,
  RolloutId,
  RunError,
} from '../../../runtime/domain/index.js';
import type { Desktop, DesktopPool, Lease, SettleReport } from '../../../runtime/cluster/types.js';
import type { FrameStore, RolloutOrder } from '../../../runtime/data/types.js';
import type {
  Decision,
  DecisionPool,
  Policy,
  Replica,
  ReplicaAnswer,
  ReplicaRequest,
  WeightsRef,
} from '../../../runtime/policy/types.js';
import type { Task, TaskEngine } from '../../../runtime/tasks/types.js';
import type { EventClock } from './eventClock.js';
import type { Trace, Workload } from './workload.js';
import { logNormal } from './workload.js';

const SCREEN = { width: 1920, height: 1080 };
const FRAME: Frame = { ...SCREEN, data: Buffer.alloc(0), capturedAt: 0 };
const REF: FrameRef = { ...SCREEN, hash: '0'.repeat(64) };
const RESTED: SettleReport = { settled: true, ms: 0, detector: 'exact' };
const CLICK: readonly Action[] = [{ type: 'click', at: { x: 1, y: 1 } }],
  FINISHED: readonly Action[] = [{ type: 'finished' }];
const LOGPROBS = Float32Array.of(-0.5);
const STATE: EncodedState = { obs: new Uint8Array(0), instruction: new Int32Array(0), history: new Int32Array(0) };
const unused = (): Promise<never> => Promise.reject(new Error('the simulator does not have this'));

export interface SimTask extends Task {
  readonly trace: Trace;
}
export const taskFor = (o: RolloutOrder, trace: Trace): SimTask => ({
  id: o.task,
  family: o.family,
  // The pool refuses a success whose instruction is not known.
  instruction: `Do ${o.task}.`,
  config: [],
  evaluator: { func: 'exact_match' },
  relatedApps: [],
  infeasible: false,
  trace,
});

/** A desktop spends the whole of a step's time before it shows the next screen. */
class SimDesktop implements Desktop {
  readonly id: DesktopId;
  readonly provider = 'local';
  readonly screen = SCREEN;
  trace: Trace | undefined;
  steps = 0;
  readonly #clock: EventClock;
  readonly #w: Workload;
  constructor(n: number, clock: EventClock, w: Workload) {
    this.id = id<DesktopId>(`d${String(n).padStart(4, '0')}`);
    this.#clock = clock;
    this.#w = w;
  }
  begin(trace: Trace): void {
    this.trace = trace;
    this.steps = 0;
  }
  async observe(): Promise<Frame> {
    const t = this.trace!;
    await this.#clock.sleep(this.#w.step * 1000 * logNormal(this.#w.spread, t.noise));
    if (this.steps++ === t.faultAt)
      throw new StudioError('desktop.lost', 'The desktop died.', 'It is replaced by itself.');
    return FRAME;
  }
  perform(): Promise<void> {
    return Promise.resolve();
  }
  settle(): Promise<SettleReport> {
    return Promise.resolve(RESTED);
  }
  exec = unused;
  spawn = unused;
  readFile = unused;
  writeFile = unused;
  onEvent(): () => void {
    return () => undefined;
  }
}

type OnReset = (desktop: DesktopId, busy: boolean, broken: boolean) => void;

/**
 * First come, first served. A desktop is reset as soon as it is given back, whatever the regime; a broken one is
 * replaced.
 */
export class SimDesktops implements Pick<DesktopPool, 'lease'> {
  readonly #free: SimDesktop[] = [];
  readonly #waiting: { readonly give: (l: Lease) => void; readonly signal: AbortSignal }[] = [];
  readonly #clock: EventClock;
  readonly #w: Workload;
  readonly #onReset: OnReset;
  constructor(clock: EventClock, w: Workload, onReset: OnReset) {
    this.#clock = clock;
    this.#w = w;
    this.#onReset = onReset;
    for (let i = 0; i < w.desktops; i++) this.#free.push(new SimDesktop(i, clock, w));
  }
  lease({ signal }: { signal: AbortSignal }): Promise<Lease> {
    return new Promise((give, reject) => {
      const entry = { give, signal };
      signal.addEventListener(
        'abort',
        () => {
          const i = this.#waiting.indexOf(entry);
          if (i >= 0) {
            this.#waiting.splice(i, 1);
            reject(new StudioError('cancelled', 'The lease was given up.', 'Ask again.'));
          }
        },
        { once: true },
      );
      this.#waiting.push(entry);
      this.#serve();
    });
  }
  #serve(): void {
    while (this.#free.length > 0 && this.#waiting.length > 0) {
      const desktop = this.#free.shift()!,
        resetMs = this.#w.reset * 1000;
      let over = false;
      this.#waiting.shift()!.give({
        desktop,
        resetMs,
        release: (o) => {
          if (over) return;
          over = true;
          const broken = o?.broken === true;
          this.#onReset(desktop.id, true, broken);
          this.#clock.after(broken ? this.#w.replace * 1000 : resetMs, () => {
            this.#onReset(desktop.id, false, broken);
            this.#free.push(desktop);
            this.#serve();
          });
        },
      });
    }
  }
}

export const simFrames: FrameStore = { put: () => Promise.resolve(REF), get: unused, read: unused };

/** Setting up is part of the reset; verifying takes its time and knows the trace. */
export function simTasks(clock: EventClock, w: Workload): TaskEngine {
  return {
    check: () => [],
    setup: (task, desktop) => {
      (desktop as SimDesktop).begin((task as SimTask).trace);
      return Promise.resolve();
    },
    async verify(task, desktop): Promise<Extract<Outcome, { kind: 'success' | 'failure' }>> {
      await clock.sleep(w.verify * 1000);
      const { trace } = task as SimTask,
        ended = (desktop as SimDesktop).steps >= trace.length;
      return trace.success && ended
        ? { kind: 'success', reward: 1, truncated: false }
        : { kind: 'failure', reward: 0, truncated: !ended };
    },
  };
}

/**
 * A policy that goes through the production model pool and ends where the trace ends. `traceOf`: of rollouts that run.
 */
export function simPolicy(models: DecisionPool, traceOf: (r: RolloutId) => Trace): Policy {
  return {
    open({ rollout }) {
      const trace = traceOf(rollout);
      let steps = 0;
      return {
        async decide(_frame, signal): Promise<Decision> {
          const request = {
            state: STATE,
            greedy: false,
            temperature: 1,
            seed: 0,
            copyable: 0,
            noise: trace.noise,
          } as ReplicaRequest;
          const { answer, replica, queueMs } = await models.decide(request, { session: rollout, signal });
          const last = ++steps >= trace.length;
          return {
            actions: last ? FINISHED : CLICK,
            version: answer.version,
            replica,
            queueMs,
            computeMs: answer.computeMs,
            tokens: { logprobs: LOGPROBS, entropies: answer.entropies },
          };
        },
        acted: () => undefined,
        close: () => models.end(rollout),
      };
    },
  };
}

/**
 * A replica that answers up to the pool's depth of calls side by side, each in its own time. Killed, it fails what it
 * has and is gone.
 */
export class SimReplica implements Replica {
  readonly id: ReplicaId;
  version: number;
  readonly #clock: EventClock;
  readonly #w: Workload;
  readonly #killed: (calls: number) => void;
  readonly #calls = new Set<(e: StudioError) => void>();
  readonly #lost = new Set<(e: RunError) => void>();
  constructor(rid: ReplicaId, version: number, clock: EventClock, w: Workload, killed: (calls: number) => void) {
    this.id = rid;
    this.version = version;
    this.#clock = clock;
    this.#w = w;
    this.#killed = killed;
  }

  decide(r: ReplicaRequest): Promise<ReplicaAnswer> {
    const { noise } = r as ReplicaRequest & { readonly noise: Trace['noise'] };
    const computeMs = this.#w.decide * 1000 * logNormal(this.#w.spread, noise),
      entropies = Float32Array.of(noise.next()),
      { version } = this;
    return new Promise((resolve, reject) => {
      const stop = this.#clock.after(computeMs, () => {
        this.#calls.delete(fail);
        resolve({ choices: NO_CHOICES, logprobs: LOGPROBS, entropies, version, computeMs });
      });
      const fail = (e: StudioError): void => {
        stop();
        reject(e);
      };
      this.#calls.add(fail);
    });
  }
  async swap(w: WeightsRef): Promise<void> {
    await this.#clock.sleep(this.#w.swap * 1000);
    this.version = w.version;
  }
  onLost(l: (e: RunError) => void): () => void {
    this.#lost.add(l);
    return () => this.#lost.delete(l);
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
  kill(): void {
    const e = new StudioError('policy.lost', 'The engine was killed to load new weights.', 'It is started again.');
    this.#killed(this.#calls.size);
    for (const fail of [...this.#calls]) fail(e);
    this.#calls.clear();
    for (const l of [...this.#lost]) l(e.error);
  }
}
const NO_CHOICES = new Int32Array(0);

/** One family is one task, as in OSWorld. */
export const taskIdOf = (f: FamilyId): RolloutOrder['task'] => id<RolloutOrder['task']>(f);
