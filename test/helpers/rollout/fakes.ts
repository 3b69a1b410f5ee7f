/** Fakes for the rollout service: replicas, desktops, tasks and a policy, all on virtual time. */
import type {
  Action,
  DesktopId,
  EncodedState,
  FamilyId,
  Frame,
  FrameRef,
  GroupId,
  Outcome,
  ReplicaId,
  RolloutId,
  RunError,
  TaskId,
} from '../../../runtime/domain/index.js';
import { StudioError, id } from '../../../runtime/domain/index.js';
import type { Desktop, DesktopEvent, DesktopPool, Lease } from '../../../runtime/cluster/types.js';
import type { FrameStore, RolloutOrder } from '../../../runtime/data/types.js';
import type {
  Decision,
  Policy,
  Replica,
  ReplicaAnswer,
  ReplicaRequest,
  WeightsRef,
} from '../../../runtime/policy/types.js';
import type { Task, TaskEngine } from '../../../runtime/tasks/types.js';
import type { VirtualClock } from './virtualClock.js';

export const weightsRef = (version: number): WeightsRef => ({
  version,
  path: `/w/${version}`,
  sha256: String(version),
});
const state: EncodedState = { obs: new Uint8Array(0), instruction: new Int32Array(0), history: new Int32Array(0) };
export const request = (seed = 0): ReplicaRequest => ({ state, greedy: false, temperature: 1, seed, copyable: 0 });

/**
 * A replica that takes `serviceMs()` per call, one after another, and can be killed. It fails the test's invariants
 * itself: no call during a swap.
 */
export class FakeReplica implements Replica {
  readonly id: ReplicaId;
  version: number;
  inFlight = 0;
  swapping = false;
  closed = false;
  readonly violations: string[] = [];
  readonly #clock: VirtualClock;
  readonly #times: { serviceMs: () => number; swapMs: () => number };
  readonly #rejecters = new Set<(e: Error) => void>();
  readonly #listeners = new Set<(e: RunError) => void>();
  #dead: StudioError | undefined;
  /** Set: the next swap is refused with this. */
  refuse: StudioError | undefined;

  constructor(
    rid: ReplicaId,
    version: number,
    clock: VirtualClock,
    times: { serviceMs: () => number; swapMs: () => number },
  ) {
    this.id = rid;
    this.version = version;
    this.#clock = clock;
    this.#times = times;
  }

  async decide(_r: ReplicaRequest): Promise<ReplicaAnswer> {
    if (this.swapping) this.violations.push(`${this.id}: a call during a swap`);
    this.inFlight++;
    const version = this.version;
    try {
      const ms = this.#times.serviceMs();
      await this.#work(ms);
      return {
        choices: new Int32Array([0]),
        logprobs: new Float32Array([0]),
        entropies: new Float32Array([0]),
        version,
        computeMs: ms,
      };
    } finally {
      this.inFlight--;
    }
  }
  async swap(w: WeightsRef): Promise<void> {
    if (this.inFlight > 0) this.violations.push(`${this.id}: swapped with ${this.inFlight} calls in flight`);
    if (this.refuse) throw this.refuse;
    this.swapping = true;
    try {
      await this.#work(this.#times.swapMs());
      this.version = w.version;
    } finally {
      this.swapping = false;
    }
  }
  onLost(l: (e: RunError) => void): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }
  async close(): Promise<void> {
    this.closed = true;
  }
  crash(): void {
    if (this.#dead) return;
    this.#dead = new StudioError('policy.lost', `${this.id} crashed`, 'wait');
    for (const r of [...this.#rejecters]) r(this.#dead);
    for (const l of [...this.#listeners]) l(this.#dead.error);
  }
  #work(ms: number): Promise<void> {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const off = (): void => {
        this.#rejecters.delete(fail);
      };
      const stop = this.#clock.after(ms, () => {
        off();
        resolve();
      });
      const fail = (e: Error): void => {
        off();
        stop();
        reject(e);
      };
      this.#rejecters.add(fail);
    });
  }
}

export const order = (n: number | string, o: Partial<RolloutOrder> = {}): RolloutOrder => ({
  rollout: id<RolloutId>(`r${n}`),
  group: id<GroupId>('g1'),
  family: id<FamilyId>('f1'),
  task: id<TaskId>('t1'),
  seed: 1,
  cap: 5,
  groupSize: 4,
  ...o,
});
export const task = (o: Partial<Task> = {}): Task => ({
  id: id<TaskId>('t1'),
  family: id<FamilyId>('f1'),
  instruction: 'do it',
  config: [],
  evaluator: { func: 'exact_match' },
  relatedApps: [],
  infeasible: false,
  ...o,
});

/** A desktop whose calls take virtual time; `fail` makes the named call reject, `hang` makes it never answer. */
export class FakeDesktop implements Desktop {
  readonly id: DesktopId;
  readonly provider = 'local';
  readonly screen = { width: 640, height: 400 };
  readonly log: string[] = [];
  readonly performed: Action[] = [];
  active = 0;
  fail: { call: string; error: StudioError; after?: number } | undefined;
  hang: string | undefined;
  readonly #listeners = new Set<(e: DesktopEvent) => void>();
  readonly #clock: VirtualClock;
  readonly #ms: Readonly<Record<string, number>>;
  constructor(name: string, clock: VirtualClock, ms: Readonly<Record<string, number>> = {}) {
    this.id = id<DesktopId>(name);
    this.#clock = clock;
    this.#ms = { observe: 1, answers: 1, perform: 5, settle: 20, ...ms };
  }
  async observe(): Promise<Frame> {
    await this.#call('observe');
    return { ...this.screen, data: Buffer.from([this.performed.length]), capturedAt: this.#clock.now() };
  }
  async perform(a: Action): Promise<void> {
    await this.#call('perform');
    this.performed.push(a);
  }
  async settle(): Promise<{ settled: boolean; ms: number; detector: 'exact' }> {
    await this.#call('settle');
    return { settled: true, ms: 20, detector: 'exact' };
  }
  answers(): Promise<void> {
    return this.#call('answers');
  }
  exec(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
  spawn(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
  readFile(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
  writeFile(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
  onEvent(l: (e: DesktopEvent) => void): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }
  get listeners(): number {
    return this.#listeners.size;
  }
  lose(error: RunError): void {
    for (const l of [...this.#listeners]) l({ type: 'lost', error });
  }
  sleep(ms: number): Promise<void> {
    return this.#clock.sleep(ms);
  }
  async #call(name: string): Promise<void> {
    this.log.push(name);
    this.active++;
    try {
      if (this.hang === name) await new Promise(() => undefined);
      await this.#clock.sleep(this.#ms[name]!);
      if (this.fail?.call === name && (this.fail.after ?? 0) <= this.performed.length) throw this.fail.error;
    } finally {
      this.active--;
    }
  }
}

/** First come, first served leases over fake desktops, with a reset time; counts what is wrong. */
export class FakePool implements Pick<DesktopPool, 'lease'> {
  readonly free: FakeDesktop[] = [];
  readonly waiting: { give: (l: Lease) => void; signal: AbortSignal }[] = [];
  readonly broken: DesktopId[] = [];
  /** Those that were said of them. */
  readonly faults: RunError[] = [];
  readonly violations: string[] = [];
  leased = 0;
  maxLeased = 0;
  refuse: StudioError | undefined;
  readonly #clock: VirtualClock;
  readonly #resetMs: number;
  constructor(n: number, clock: VirtualClock, resetMs = 100, ms: Readonly<Record<string, number>> = {}) {
    this.#clock = clock;
    this.#resetMs = resetMs;
    for (let i = 0; i < n; i++) this.free.push(new FakeDesktop(`d${i}`, clock, ms));
  }
  lease({ signal }: { signal: AbortSignal }): Promise<Lease> {
    return new Promise((give, reject) => {
      const refused = (): void => reject(new StudioError('cancelled', 'cancelled', ''));
      if (signal.aborted) return refused();
      if (this.refuse) return reject(this.refuse);
      const entry = { give, signal };
      signal.addEventListener('abort', () => {
        const i = this.waiting.indexOf(entry);
        if (i >= 0) {
          this.waiting.splice(i, 1);
          refused();
        }
      });
      this.waiting.push(entry);
      this.#serve();
    });
  }
  #serve(): void {
    while (this.free.length > 0 && this.waiting.length > 0) {
      const desktop = this.free.shift()!,
        w = this.waiting.shift()!;
      this.leased++;
      this.maxLeased = Math.max(this.maxLeased, this.leased);
      let over = false;
      w.give({
        desktop,
        resetMs: this.#resetMs,
        release: (o) => {
          if (over) return;
          over = true;
          this.leased--;
          if (desktop.active > 0 && !o?.broken) this.violations.push(`${desktop.id} was given back while it worked`);
          if (o?.broken) this.broken.push(desktop.id);
          if (o?.fault) this.faults.push(o.fault);
          this.#clock.after(this.#resetMs, () => {
            this.free.push(desktop);
            this.#serve();
          });
        },
      });
    }
  }
}

export const fakeFrames = (clock: VirtualClock, ms = 2): FrameStore & { stored: number } => ({
  stored: 0,
  async put(f: Frame): Promise<FrameRef> {
    await clock.sleep(ms);
    this.stored++;
    return { width: f.width, height: f.height, hash: `frame${f.data[0]}` };
  },
  get: () => Promise.reject(new Error('unused')),
  read: () => Promise.reject(new Error('unused')),
});

export const fakeTasks = (
  clock: VirtualClock,
  o: {
    verdict?: () => Extract<Outcome, { kind: 'success' | 'failure' }>;
    setup?: StudioError;
    /** Default 50. */
    setupMs?: number;
    verify?: StudioError;
    /** Whether it has ended by itself. */
    over?: () => boolean;
    /** What it says mid-episode, and how long that takes; by default it is not asked. */
    progress?: { readonly held: () => number | undefined; readonly ms?: number };
    /** Known once it is set up. */
    instruction?: string;
  } = {},
): TaskEngine & { verified: (Action | undefined)[] } => ({
  verified: [],
  check: () => [],
  ...(o.progress
    ? {
        async progress() {
          await clock.sleep(o.progress!.ms ?? 20);
          return o.progress!.held();
        },
      }
    : {}),
  ...(o.over ? { over: () => Promise.resolve(o.over!()) } : {}),
  ...(o.instruction === undefined ? {} : { instruction: () => o.instruction! }),
  async setup() {
    await clock.sleep(o.setupMs ?? 50);
    if (o.setup) throw o.setup;
  },
  async verify(_t, _d, last) {
    await clock.sleep(30);
    if (o.verify) throw o.verify;
    this.verified.push(last);
    return o.verdict?.() ?? { kind: 'success', reward: 1, truncated: false };
  },
});

/** A policy that plays a script; a StudioError in it is thrown. */
export function scriptedPolicy(
  clock: VirtualClock,
  script: readonly (readonly Action[] | StudioError)[],
  ms: () => number = () => 10,
): Policy & { opened: { rollout: RolloutId; sampling: { greedy: boolean; seed: number } }[]; closed: number } {
  return {
    opened: [],
    closed: 0,
    open(o) {
      this.opened.push(o);
      let i = 0;
      return {
        decide: async (): Promise<Decision> => {
          await clock.sleep(ms());
          const next = script[Math.min(i++, script.length - 1)]!;
          if (next instanceof StudioError) throw next;
          return {
            actions: next,
            version: 3,
            queueMs: 1,
            computeMs: 9,
            tokens: { logprobs: new Float32Array([-1]), entropies: new Float32Array([1]), ids: new Int32Array([0]) },
          };
        },
        acted: () => undefined,
        close: () => {
          this.closed++;
        },
      };
    },
  };
}
