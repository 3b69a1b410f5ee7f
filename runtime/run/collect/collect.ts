import { desktopContents } from '../../cluster/provide.js';
import type { RunConfig } from '../../config/index.js';
import { poolConfigOf } from '../../data/collections.js';
import type { StoredEvent } from '../../data/events.js';
import { RunAppender } from '../../data/runAppender.js';
import type { RolloutOrder } from '../../data/types.js';
import {
  StudioError,
  id,
  type GroupId,
  type Outcome,
  type RolloutId,
  type RunError,
  type RunId,
  type Trajectory,
} from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import type { Policy } from '../../policy/types.js';
import { systemClock } from '../../rollout/clock.js';
import { probeSampling, trainingSampling } from '../../rollout/sampling.js';
import { Scheduler } from '../../rollout/scheduler.js';
import type { SchedulerEvent } from '../../rollout/types.js';
import { openTasks, type Tasks } from '../../tasks/open.js';
import { episodeOf } from '../episodeOf.js';
import { startEngine, type Engine } from '../engine.js';
import { schedulerNote } from '../schedulerNote.js';
import { openScratch } from '../../data/store/scratch.js';
import { sayRoom } from '../diskWords.js';
import { stepExtra } from '../stepExtra.js';
import { sameSettings } from './settings.js';
import { Attempts, type AttemptEnd, type Attempted, type AttemptRow } from './attempts.js';

export interface CollectRequest {
  /** The policy with its sampling settings (`settings.ts`), its tasks and desktops. */
  readonly config: RunConfig;
  /** Name of the policy that acts: a collection has one. */
  readonly policy: string;
  /** Weights of the policy, where it has some of its own. */
  readonly checkpoint?: { readonly version: number; readonly dir: string } | undefined;
  /** The collection: made, or gone on with. */
  readonly dir: string;
  readonly name: string;
  /** Verdicts of each task. */
  readonly attempts: number;
  /** Successes after which a task is left. */
  readonly stopAfter: number;
  /** Which tasks are attempted. */
  readonly choose: (tasks: Tasks) => readonly Attempted[];
  /**
   * The collection is for measuring and never trained on: its episodes are those of an evaluation, timeouts are not
   * tried again, and tasks and desktops must stay the same. Otherwise successes join its pool.
   */
  readonly measures: boolean;
  /** `tasks.families` were asked for (`openTasks`). */
  readonly asked?: boolean;
  /** The most probable choice always; default: sampled as in training, at `policy.temperature`. */
  readonly greedy?: boolean;
  /** Replaces the policy by a control. */
  readonly control?: ((policy: Policy) => Policy) | undefined;
  readonly entry: ProcessEntry;
  readonly signal: AbortSignal;
  readonly onProgress?: (rows: readonly AttemptRow[]) => void;
  readonly onNote?: (text: string) => void;
}
export interface CollectReport {
  readonly dir: string;
  readonly tasks: readonly AttemptRow[];
  /** Attempts of this and of earlier parts that have a verdict. */
  readonly attempts: number;
  readonly successes: number;
  /** Successes in the pool: of the same task, those that act alike count once. */
  readonly pooled: number;
  /** Task files that cannot run here. */
  readonly leftOut: number;
  readonly stopped: boolean;
}
/** A desktop or model server that fails so often in a row at one task will go on failing. */
const ERRORS = 4;
/** After this many episodes in a row without an answer of the policy it is away, and no task is to blame. */
const AWAY = 12;
/** Attempts under way may end when somebody stops. */
const GRACE_MS = 3000;

/**
 * Pre-collecting: rolls a model out on tasks and keeps every attempt; verified successes join the collection's pool,
 * which runs name in `curation.pool.from`. What an earlier part of the same collection did is not done again.
 */
export async function collect(r: CollectRequest): Promise<CollectReport> {
  const tasks = await openTasks(r.config, await desktopContents(r.config.desktops), r.entry, {
      asked: r.asked === true,
    }),
    attempts = new Attempts(chosen(r, tasks), { ...r, errors: ERRORS, remember: !r.measures }),
    earlier = new Earlier(attempts, r),
    { entry, config, name, policy } = r;
  const run = await RunAppender.open(r.dir, {
    index: entry,
    create: { id: id<RunId>(name), createdAt: Date.now(), name, config, collected: { policy } },
    pool: poolConfigOf,
    each: (e) => earlier.see(e),
  });
  try {
    check(run, r);
    await earlier.close(run);
    if (attempts.open > 0) await attempt(r, tasks, attempts, run, earlier.begun);
    return {
      dir: r.dir,
      tasks: attempts.rows(),
      ...sums(attempts.rows()),
      pooled: run.pool.entries().length,
      leftOut: tasks.leftOut ?? 0,
      stopped: r.signal.aborted,
    };
  } finally {
    await run.close();
  }
}
/** Rejects when there is nothing to attempt. */
function chosen(r: CollectRequest, tasks: Tasks): readonly Attempted[] {
  const all = r.choose(tasks);
  if (all.length > 0) return all;
  throw new StudioError(
    'config.invalid',
    'No task is held out in this way.',
    'Choose another --split, or other tasks.',
  );
}
const endOf = (o: Outcome, r: Pick<CollectRequest, 'measures'>): AttemptEnd => {
  if (o.kind !== 'error') return o.kind;
  if (o.error.kind === 'cancelled') return 'stopped';
  if (o.error.kind.startsWith('policy.')) return 'away';
  // A policy that is slow would get more time than another by being tried again.
  return r.measures && o.error.kind === 'timeout' ? 'unsolved' : 'error';
};
const asProbe = (t: Trajectory): Trajectory => ({ ...t, provenance: { kind: 'probe' }, group: undefined });
const studioError = (e: RunError): StudioError => new StudioError(e.kind, e.message, e.remedy);
const sums = (rows: readonly AttemptRow[]): Pick<CollectReport, 'attempts' | 'successes'> => ({
  attempts: rows.reduce((n, t) => n + t.successes + t.failures, 0),
  successes: rows.reduce((n, t) => n + t.successes, 0),
});

function check(run: RunAppender, r: CollectRequest): void {
  const { policy, name } = r,
    made = run.store.meta.collected;
  if (made?.policy === policy) {
    sameSettings(run.store.meta.config as RunConfig, r);
    return;
  }
  throw new StudioError(
    'config.invalid',
    made === undefined ? `${name} is no collection of this command.` : `${name} was collected with ${made.policy}.`,
    'Choose another name: success rates of two policies say nothing together.',
  );
}

function namedIn(e: StoredEvent): readonly RolloutId[] {
  if (e.type === 'rollout.queued') return [e.order.rollout];
  if (e.type === 'trajectory.recorded') return [e.head.id];
  if (e.type === 'pool.added') return [e.entry.id];
  if (e.type === 'frames.removed') return e.rollouts;
  return 'rollout' in e ? [e.rollout] : [];
}

/** The earlier parts of a collection, by its journal. */
export class Earlier {
  /** The highest number of an attempt: the next one's name has the number after it. */
  begun = 0;
  readonly #attempts: Attempts;
  readonly #r: Pick<CollectRequest, 'measures'>;
  readonly #open = new Map<RolloutId, GroupId>();

  constructor(attempts: Attempts, r: Pick<CollectRequest, 'measures'>) {
    this.#attempts = attempts;
    this.#r = r;
  }
  see(e: StoredEvent): void {
    // Any record may be the first of an attempt, where a damaged journal lacks those before.
    for (const r of namedIn(e)) this.begun = Math.max(this.begun, Number(/^c(\d+)$/.exec(r)?.[1] ?? 0));
    if (e.type === 'rollout.queued') {
      this.#open.set(e.order.rollout, e.order.group);
    } else if (e.type === 'rollout.retired') this.#open.delete(e.rollout);
    else if (e.type === 'trajectory.recorded' && this.#open.delete(e.head.id))
      this.#attempts.seen(e.head.task, endOf(e.head.outcome, this.#r));
  }
  /** Attempts that a crash cut off are over. */
  async close({ store }: RunAppender): Promise<void> {
    for (const [rollout, group] of this.#open)
      await store.append({ type: 'rollout.retired', rollout, group, reason: 'lost' });
  }
}

/** Starts policy and desktops and makes the attempts that are left. */
async function attempt(
  r: CollectRequest,
  tasks: Tasks,
  attempts: Attempts,
  run: RunAppender,
  begun: number,
): Promise<void> {
  const scratch = await openScratch(r.dir, 'collection'),
    offRoom = sayRoom(run.store.room, r.dir, r.onNote),
    fault = new AbortController();
  let engine: Engine | undefined;
  try {
    engine = await startEngine({
      temporary: true,
      config: r.config,
      dir: scratch.dir,
      run: r.name,
      entry: r.entry,
      frames: run.store.frames,
      signal: r.signal,
      checkpoint: r.checkpoint,
      onServed: (served) =>
        ignoreFailure(run.store.append({ type: 'model.served', served }), 'the next record fails as well, and says so'),
      onNote: r.onNote,
      onFault: (e) => fault.abort(e),
    });
    await drive(r, { engine, tasks, attempts, run, begun, fault });
    if (fault.signal.aborted) throw fault.signal.reason;
  } finally {
    offRoom();
    await engine?.close();
    await scratch.remove();
  }
}

interface Parts {
  readonly engine: Engine;
  readonly tasks: Tasks;
  readonly attempts: Attempts;
  readonly run: RunAppender;
  readonly begun: number;
  /** Fires with what makes going on useless. */
  readonly fault: AbortController;
}
async function drive(r: CollectRequest, p: Parts): Promise<void> {
  const { config } = r,
    { attempts, engine, tasks, fault } = p,
    writer = new Writer(r, p),
    sampled = trainingSampling(config.seed, config.policy.temperature);
  let { begun } = p,
    over: () => void = () => undefined;
  const ended = new Promise<void>((done) => {
    over = done;
  });
  const scheduler = new Scheduler(
    {
      pool: engine.pool,
      clock: systemClock,
      episode: episodeOf(config, { ...engine, policy: r.control?.(engine.policy) ?? engine.policy }, tasks),
      next: () => {
        const t = attempts.next();
        if (!t) return undefined;
        const order = orderOf(t, ++begun, config.rollout.maxSteps);
        writer.queued(order);
        return order;
      },
      admit: () => attempts.open,
      taskOf: (order) => tasks.source.task(order.family, order.seed),
      sampling: (order) => ({ ...sampled(order), greedy: r.greedy === true }),
      probeSampling: probeSampling(config.seed),
    },
    { slots: config.desktops.count },
  );
  scheduler.onEvent((e) => {
    writer.on(e);
    if (e.type === 'ended') r.onProgress?.(attempts.rows());
    if (attempts.done) over();
  });
  const ends = [r.signal, fault.signal];
  for (const s of ends) s.addEventListener('abort', over, { once: true });
  if (ends.some((s) => s.aborted)) over();
  scheduler.start();
  await ended;
  for (const s of ends) s.removeEventListener('abort', over);
  // After an end nothing may wait for room on the disk.
  if (ends.some((s) => s.aborted)) await p.run.store.room.end();
  await scheduler.stop({ graceMs: fault.signal.aborted ? 0 : GRACE_MS });
  await writer.written();
}

const orderOf = (t: Attempted, number: number, cap: number): RolloutOrder => ({
  rollout: id<RolloutId>(`c${String(number).padStart(6, '0')}`),
  group: id<GroupId>(`collect/${t.task}`),
  family: t.family,
  task: t.task,
  seed: t.seed,
  cap: Math.min(cap, t.cap ?? cap),
  groupSize: 1,
});

/** Journals what the scheduler says. Writes are in the order of the calls. */
class Writer {
  readonly #r: CollectRequest;
  readonly #p: Parts;
  readonly #extras = new Map<RolloutId, (ReturnType<typeof stepExtra> | undefined)[]>();
  #last: Promise<unknown> = Promise.resolve();
  /** Episodes in a row that the policy's engine did not answer. */
  #away = 0;

  constructor(r: CollectRequest, p: Parts) {
    this.#r = r;
    this.#p = p;
  }
  queued(order: RolloutOrder): void {
    this.#write(() => this.#p.run.store.append({ type: 'rollout.queued', order }));
  }
  on(e: SchedulerEvent): void {
    const { run } = this.#p;
    if (e.type === 'started') {
      const { rollout } = e.order;
      this.#extras.set(rollout, []);
      this.#write(() =>
        run.store.append({ type: 'rollout.started', rollout, version: run.version, desktop: e.desktop }),
      );
    } else if (e.type === 'step') this.#extras.get(e.rollout)?.push(stepExtra(e.desktop, e.alternatives, e.about));
    else if (e.type === 'ended') this.#ended(e);
    else {
      const note = schedulerNote(e);
      if (note) this.#r.onNote?.(note);
    }
  }
  /** Resolves when everything is on disk. */
  async written(): Promise<void> {
    await this.#last;
  }

  #ended({ order, trajectory: t }: Extract<SchedulerEvent, { type: 'ended' }>): void {
    const { run, attempts } = this.#p,
      extras = this.#extras.get(t.id);
    this.#extras.delete(t.id);
    const how = endOf(t.outcome, this.#r);
    attempts.ended(order.task, how);
    if (t.outcome.kind === 'error' && how !== 'stopped')
      this.#r.onNote?.(`${order.task}: ${t.outcome.error.message} ${t.outcome.error.remedy}`);
    this.#away = how === 'away' ? this.#away + 1 : 0;
    if (this.#away >= AWAY && t.outcome.kind === 'error') this.#p.fault.abort(studioError(t.outcome.error));
    this.#write(() =>
      how === 'stopped'
        ? run.store.append({ type: 'rollout.retired', rollout: t.id, group: order.group, reason: 'stopped' })
        : run.record(this.#r.measures ? asProbe(t) : t, this.#r.measures ? 'never' : 'auto', undefined, extras),
    );
  }
  #write(write: () => Promise<unknown>): void {
    this.#last = this.#last.then(write);
    this.#last.catch((e: unknown) => this.#p.fault.abort(e));
  }
}
