/**
 * One rollout on one leased desktop: setup, then [observe, decide, perform, settle] until the policy ends it or the cap
 * of n model turns is used up, then verify. Faults of the environment or an engine become an error outcome, which has
 * no reward; a policy that twice in a row does not answer with an action has failed by its own doing
 * (runtime/rollout/README.md#outcomes): failure, reward 0, not verified.
 */
import type {
  Action,
  Frame,
  FrameRef,
  Outcome,
  Provenance,
  RunError,
  Step,
  StepTimings,
  TokenTrace,
  Trajectory,
} from '../domain/index.js';
import { StudioError, isTerminal, toRunError } from '../domain/index.js';
import type { Lease, SettleOptions } from '../cluster/types.js';
import type { FrameStore, RolloutOrder } from '../data/types.js';
import type { Decision, Policy, PolicySession, Sampling } from '../policy/types.js';
import type { Task, TaskEngine } from '../tasks/types.js';
import type { Clock } from './clock.js';
import { abortable, cancelled } from './clock.js';
import type { HumanStep, Steering } from './steering.js';

export interface EpisodeDeps {
  readonly policy: Policy;
  readonly tasks: TaskEngine;
  readonly frames: FrameStore;
  readonly clock: Clock;
  readonly settle?: SettleOptions;
  /** A desktop that does not answer one call for so long is taken for lost. Default 30 s. */
  readonly desktopTimeoutMs?: number;
  /** A rollout that takes longer, from setup to verdict, is an error of kind `timeout`. Default: no limit. */
  readonly timeoutMs?: number;
}
/** What a decision says of itself besides the step it makes. */
export type StepAbout = Pick<Decision, 'labels' | 'places' | 'replica'>;
export type EpisodePhase = 'setup' | 'observe' | 'decide' | 'perform' | 'settle' | 'verify';
export interface EpisodeRequest {
  readonly order: RolloutOrder;
  readonly task: Task;
  readonly provenance: Provenance;
  readonly sampling: Sampling;
  readonly signal: AbortSignal;
  /** Called with each step as soon as it is complete. */
  readonly onStep: (step: Step, alternatives?: Decision['alternatives'], about?: StepAbout) => void;
  readonly onPhase: (phase: EpisodePhase) => void;
  /** A person may take the wheel at any decision. */
  readonly steering?: Steering;
}
export interface EpisodeResult {
  readonly trajectory: Trajectory;
  /** The desktop must be replaced, not reset. */
  readonly broken: boolean;
}

/**
 * After an abort, how long a call that is still running on the desktop is waited for before the desktop counts as
 * broken.
 */
const LINGER_MS = 5000;

/**
 * Never rejects for a foreseeable reason: what went wrong is the trajectory's outcome. The lease stays with the caller.
 */
export async function runEpisode(deps: EpisodeDeps, lease: Lease, r: EpisodeRequest): Promise<EpisodeResult> {
  const { clock, tasks } = deps;
  const { desktop } = lease;
  const { task, order } = r;
  const limit = timeLimit(deps, r.signal),
    { signal } = limit;
  const guard = new DesktopGuard(deps, signal);
  const startedAt = clock.now();
  const steps: Step[] = [];
  let session: PolicySession | undefined;
  let setupMs = 0,
    verifyMs = 0;
  let last: FrameRef | undefined;
  let outcome: Outcome, error: RunError | undefined;
  try {
    if (signal.aborted) throw cancelled('The rollout');
    r.onPhase('setup');
    await guard.free(tasks.setup(task, desktop, signal), 'Setting up the task');
    await guard.call(desktop.settle(deps.settle), 'settle');
    setupMs = clock.now() - startedAt;
    session = deps.policy.open({
      rollout: order.rollout,
      instruction: task.instruction,
      screen: desktop.screen,
      sampling: r.sampling,
    });
    const end = await turns(session);
    if (end.how === 'invalid') {
      outcome = {
        kind: 'failure',
        reward: 0,
        truncated: false,
        report: {
          checks: [{ what: 'the policy answers with an action', expected: 'an action', found: end.message, score: 0 }],
        },
      };
    } else {
      // A terminal action changes nothing: its own screen is the last. After the step cap there is one more to see.
      if (end.how === 'cap') {
        const frame = await guard.call(desktop.observe(), 'observe');
        last = await guard.free(deps.frames.put(frame), 'Storing a frame');
        desktop.recycle?.(frame);
      }
      r.onPhase('verify');
      const t0 = clock.now();
      const judged = await guard.free(tasks.verify(task, desktop, end.last, signal), 'Verifying the task');
      verifyMs = clock.now() - t0;
      outcome = { ...judged, truncated: end.how === 'cap' };
    }
  } catch (e) {
    error = limit.expired() ?? toRunError(e);
    outcome = { kind: 'error', error };
  } finally {
    session?.close();
    limit.stop();
  }
  const idle = await guard.quiet();
  const trajectory: Trajectory = {
    id: order.rollout,
    task: task.id,
    family: order.family,
    instruction: task.instruction,
    ...(r.provenance.kind === 'rollout' ? { group: order.group } : {}),
    provenance: r.provenance,
    steps,
    outcome,
    cap: order.cap,
    startedAt,
    endedAt: clock.now(),
    resetMs: lease.resetMs + setupMs,
    verifyMs,
    ...(last ? { last } : {}),
  };
  return { trajectory, broken: !idle || guard.timedOut || (error?.kind.startsWith('desktop.') ?? false) };

  /** The turns of the model, and of a person who holds the rollout. The cap counts the model's alone. */
  async function turns(
    policy: PolicySession,
  ): Promise<{ how: 'ended' | 'cap'; last: Action | undefined } | { how: 'invalid'; message: string }> {
    let last: Action | undefined;
    const add = (step: Step, alternatives?: Decision['alternatives'], about?: StepAbout): void => {
      steps.push(step);
      r.onStep(step, alternatives, about);
    };
    const record = (human: HumanStep): void => {
      policy.acted(human.actions);
      last = human.actions.at(-1) ?? last;
      add({ ...human, index: steps.length, origin: 'human' });
    };
    for (let turn = 0; ;) {
      const person = r.steering?.person;
      let proposing = false;
      if (person) {
        r.onPhase('perform');
        const end = await limit.standStill(
          guard.free(
            person.act({ index: steps.length, left: order.cap - turn, signal, record }),
            'The turn of a person',
          ),
        );
        if (end.next === 'end') return { how: 'ended', last: end.last };
        proposing = end.next === 'propose';
      }
      if (turn >= order.cap) return { how: 'cap', last };
      const t0 = clock.now(),
        index = steps.length;
      r.onPhase('observe');
      const frame = await guard.call(desktop.observe(), 'observe');
      const observe = clock.now() - t0;
      // Storing the screen, deciding on it and acting go on side by side; the step is told when all have ended.
      const stored = deps.frames.put(frame);
      stored.catch(() => undefined);
      r.onPhase('decide');
      const decided = await decideOrInvalid(policy, frame, signal);
      // Decided on and, once stored: nobody reads these pixels any more.
      stored.then(
        () => desktop.recycle?.(frame),
        () => undefined,
      );
      const invalid = decided instanceof StudioError;
      if (person && proposing) {
        const decision = invalid ? { ...answerOf(decided), actions: [] } : decided;
        if (
          !(await limit.standStill(
            guard.free(person.consent({ index, left: order.cap - turn, signal, decision }), 'The consent of a person'),
          ))
        ) {
          if (!invalid) policy.retract?.();
          continue;
        }
      }
      turn++;
      const complete = async (d: Partial<Decision>, settled: boolean, timings: StepTimings): Promise<void> =>
        add(
          {
            index,
            frame: await guard.free(stored, 'Storing a frame'),
            actions: d.actions ?? [],
            origin: 'policy',
            settled,
            timings,
            ...(d.thought !== undefined ? { thought: d.thought } : {}),
            ...(d.tokens ? { tokens: d.tokens } : {}),
            ...(d.version !== undefined ? { version: d.version } : {}),
          },
          d.alternatives,
          {
            ...(d.labels ? { labels: d.labels } : {}),
            ...(d.places ? { places: d.places } : {}),
            ...(d.replica ? { replica: d.replica } : {}),
          },
        );
      if (invalid) {
        await complete(answerOf(decided), true, { observe, decide: 0, queue: 0, perform: 0, settle: 0 });
        return { how: 'invalid', message: decided.message };
      }
      let perform = 0,
        settle = 0,
        settled = true,
        ended = false;
      for (const action of decided.actions) {
        last = action;
        if (isTerminal(action)) {
          ended = true;
          break;
        }
        const t1 = clock.now();
        r.onPhase('perform');
        await guard.call(desktop.perform(action), 'perform');
        const t2 = clock.now();
        r.onPhase('settle');
        settled = (await guard.call(desktop.settle(deps.settle), 'settle')).settled;
        perform += t2 - t1;
        settle += clock.now() - t2;
      }
      await complete(decided, settled, { observe, decide: decided.computeMs, queue: decided.queueMs, perform, settle });
      if (ended) return { how: 'ended', last };
    }
  }
}

interface TimeLimit {
  readonly signal: AbortSignal;
  expired(): RunError | undefined;
  /** The time that this takes does not count. */
  standStill<T>(work: Promise<T>): Promise<T>;
  stop(): void;
}

/** The rollout's own signal: the caller's, and the time limit. */
function timeLimit(deps: EpisodeDeps, outer: AbortSignal): TimeLimit {
  const own = new AbortController(),
    { timeoutMs, clock } = deps;
  const onAbort = (): void => own.abort();
  let late: RunError | undefined,
    left = timeoutMs ?? Infinity,
    since = 0,
    cancel: () => void = () => undefined;
  if (outer.aborted) own.abort();
  outer.addEventListener('abort', onAbort, { once: true });
  const go = (): void => {
    if (timeoutMs === undefined) return;
    since = clock.now();
    cancel = clock.after(left, () => {
      if (!own.signal.aborted)
        late = new StudioError(
          'timeout',
          `The rollout took longer than ${timeoutMs / 1000} s.`,
          'It is retried; raise rollout.taskTimeoutS if its task needs more time.',
        ).error;
      own.abort();
    });
  };
  go();
  return {
    signal: own.signal,
    expired: () => late,
    stop: () => {
      cancel();
      outer.removeEventListener('abort', onAbort);
    },
    async standStill(work) {
      cancel();
      left -= clock.now() - since;
      try {
        return await work;
      } finally {
        go();
      }
    },
  };
}

/**
 * Asks once more when the answer is not an action: a sampled answer can be one by accident. The second time the error
 * is the result.
 */
async function decideOrInvalid(
  policy: PolicySession,
  frame: Frame,
  signal: AbortSignal,
): Promise<Decision | StudioError> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await abortable(policy.decide(frame, signal), signal, 'A decision');
    } catch (e) {
      if (!(e instanceof StudioError) || e.kind !== 'policy.invalid') throw e;
      if (attempt === 1) return e;
    }
  }
}

/**
 * What an invalid answer's error says about it (`details`: text, tokens, version), so that the trainer can push it
 * down.
 */
function answerOf(e: StudioError): Partial<Decision> {
  const d = e.error.details as { text?: string; tokens?: TokenTrace; version?: number } | undefined;
  return {
    actions: [],
    ...(d?.text !== undefined ? { thought: d.text } : {}),
    ...(d?.tokens ? { tokens: d.tokens } : {}),
    ...(d?.version !== undefined ? { version: d.version } : {}),
  };
}

/**
 * Calls into the desktop: cancelled with the rollout, bounded in time, and known to be over before the desktop is given
 * back.
 */
class DesktopGuard {
  timedOut = false;
  private readonly clock: Clock;
  private readonly timeoutMs: number;
  private readonly signal: AbortSignal;
  private readonly pending = new Set<Promise<unknown>>();

  constructor(deps: EpisodeDeps, signal: AbortSignal) {
    this.clock = deps.clock;
    this.timeoutMs = deps.desktopTimeoutMs ?? 30_000;
    this.signal = signal;
  }

  /** A call to the desktop itself. */
  call<T>(work: Promise<T>, what: string): Promise<T> {
    const bounded = new Promise<T>((resolve, reject) => {
      const stop = this.clock.after(this.timeoutMs, () => {
        this.timedOut = true;
        reject(
          new StudioError(
            'desktop.lost',
            `The desktop did not answer ${what} for ${this.timeoutMs} ms.`,
            'It is replaced by itself and the rollout is retried.',
          ),
        );
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
    return this.free(bounded, what);
  }

  /** Work with its own time limits (setup, verify, storage). */
  free<T>(work: Promise<T>, what: string): Promise<T> {
    this.pending.add(work);
    const over = (): void => {
      this.pending.delete(work);
    };
    work.then(over, over);
    return abortable(work, this.signal, what);
  }

  /** Waits until nothing runs on the desktop any more; false when that takes too long. */
  async quiet(): Promise<boolean> {
    if (this.pending.size === 0) return true;
    return new Promise<boolean>((resolve) => {
      const stop = this.clock.after(LINGER_MS, () => resolve(false));
      void Promise.allSettled([...this.pending]).then(() => {
        stop();
        resolve(true);
      });
    });
  }
}
