import { quarantineNote } from '../cluster/quarantine.js';
import type { RunConfig } from '../config/index.js';
import { mustBeTrainable } from '../config/trained.js';
import { toRunError, type RunId, type RunStatus as WireStatus } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { orUndefined } from '../concurrency/failures.js';
import { desktopContents, settleOf } from '../cluster/provide.js';
import { DataManager } from '../data/dataManager.js';
import { systemClock } from '../rollout/clock.js';
import { DesktopRegistry } from '../rollout/desktopRegistry.js';
import { probeSampling, trainingSampling } from '../rollout/sampling.js';
import { Scheduler } from '../rollout/scheduler.js';
import { budgetCounts, RunBudget } from './budget.js';
import { startingPoint, type SoundCheckpoint } from './checkpoints.js';
import { episodeOf } from './episodeOf.js';
import { startEngine, type Engine } from './engine.js';
import type { EvalPoint } from './evaluateEpisodes.js';
import { EvaluationPhases } from './evaluationPhases.js';
import { EvaluationSchedule } from './evaluationSchedule.js';
import { heldRollout } from './heldRollout.js';
import { hindsightOf } from './hindsight.js';
import { learnPhases } from './learnPhases.js';
import type { Reporter } from './reporter.js';
import { dataConfig } from '../data/fromConfig.js';
import { openTasks, type Tasks } from '../tasks/open.js';
import { RunMonitor } from './monitor.js';
import { Pauses } from './pauses.js';
import { instructionOf, type RunParts } from './parts.js';
import { joinPools, readPools, type PoolIntake } from './poolSources.js';
import { RolloutRecorder } from './recorder.js';
import { Reinforcement } from './reinforcement.js';
import { resumedNote, type Progress } from './resume.js';
import { Retention } from './retention.js';
import { earlierPart, saveStart, startState, startWeights, type StartWeights } from './startWeights.js';
import { RunLog } from './runLog.js';
import { RunState } from './runState.js';
import { endEach, endsWithin, unlessOverdue } from './stopping.js';
import { observeRun } from './observeRun.js';
import { Successes } from './successes.js';

export interface TrainRunOptions {
  readonly config: RunConfig;
  readonly dir: string;
  readonly run: RunId;
  readonly resume: boolean;
  readonly entry: ProcessEntry;
  readonly reporter: Reporter;
  /** First abort: end cleanly. */
  readonly signal: AbortSignal;
  /** Aborted as well: end without waiting for running rollouts. */
  readonly now?: AbortSignal;
  /** Trajectories that people worked on, of which `store.keep` removes nothing. */
  readonly annotated?: () => Promise<ReadonlySet<string>>;
}
export interface TrainResult {
  readonly points: readonly EvalPoint[];
  readonly version: number;
  readonly stopped: 'budget' | 'signal';
  readonly rollouts: number;
}

/** A status line a second: as fast as a person reads it. */
const STATUS_MS = 1000;
/** How long running rollouts may continue when the run ends by itself, and when a person stops it. */
const GRACE_MS = { ended: 10_000, stopped: 3_000 };
/** How long closing one of its parts may take. */
const CLOSE_MS = 20_000;

/** One training run from start (or resume) to a clean end. */
export const trainRun = async (o: TrainRunOptions): Promise<TrainResult> => (await openRun(o)).run();

/** Opens the run's folder for writing. Nothing has started yet; `run` must be called to release the folder. */
export async function openRun(o: TrainRunOptions): Promise<TrainingRun> {
  mustBeTrainable(o.config);
  const tasks = await openTasks(o.config, await desktopContents(o.config.desktops), o.entry),
    pools = (): Promise<PoolIntake> => readPools(o.config, new Set(tasks.families.map((f) => f.id)), o.entry);
  // Before there is a folder or a desktop, so that an unreadable pool or policy costs nothing.
  const asked = o.config.curation.pool.from.length > 0,
    intake = asked && !o.resume ? await pools() : undefined,
    { from } = o.config.warmStart;
  if (from !== undefined && !o.resume) await startingPoint(from);
  const data = await DataManager.open({
    dir: o.dir,
    config: dataConfig(o.config),
    families: tasks.families,
    taskOf: tasks.taskOf,
    store: { index: o.entry, create: { id: o.run, createdAt: Date.now(), name: o.config.name, config: o.config } },
  });
  try {
    const { progress, own } = await earlierPart(data);
    if (asked && !progress.pooled) {
      const said = await joinPools(data, intake ?? (await pools()));
      o.reporter.note(said);
      await data.note({ type: 'log', level: 'info', message: said });
    }
    return new TrainingRun(o, tasks, data, progress, own);
  } catch (e) {
    await orUndefined(data.close('failed'), 'what made the run fail is reported');
    throw e;
  }
}

/** One training run: creates its parts, goes through its phases, and closes everything. */
export class TrainingRun {
  readonly data: DataManager;
  readonly desktops = new DesktopRegistry();
  readonly #o: TrainRunOptions;
  readonly #config: RunConfig;
  readonly #tasks: Tasks;
  readonly #progress: Progress;
  readonly #own: SoundCheckpoint;
  readonly #state = new RunState();
  readonly #schedule: EvaluationSchedule;
  readonly #budget: RunBudget;
  readonly #log: RunLog;
  readonly #monitor: RunMonitor;
  readonly #pauses: Pauses;
  readonly #reinforcement = new Reinforcement();
  readonly #retention: Retention;
  /** Ends the current phase: for the budget, for a person, for a fault. */
  readonly #ending = new AbortController();
  #engine: Engine | undefined;
  #scheduler: Scheduler | undefined;
  #evaluations: EvaluationPhases | undefined;

  constructor(o: TrainRunOptions, tasks: Tasks, data: DataManager, progress: Progress, own: SoundCheckpoint) {
    this.#o = o;
    this.#config = o.config;
    this.#tasks = tasks;
    this.#progress = progress;
    this.#own = own;
    this.data = data;
    this.#schedule = new EvaluationSchedule(o.config.evaluation, progress.points);
    this.#budget = new RunBudget({
      limits: o.config.budget,
      clock: systemClock,
      elapsedMs: progress.elapsedMs,
      counts: () => budgetCounts(data.counts()),
    });
    this.#log = new RunLog(o.reporter, data, () => this.#ending.abort());
    this.#retention = new Retention(o.config, data, this.#log, o.annotated);
    this.#pauses = new Pauses((paused) => {
      for (const part of [this.#budget, this.#monitor, this.#evaluations, this.#scheduler])
        part?.[paused ? 'pause' : 'resume']();
    }, this.#log);
    this.#monitor = new RunMonitor({
      config: o.config,
      data,
      clock: systemClock,
      budget: this.#budget,
      state: this.#state,
      log: this.#log,
    });
  }

  /** First evaluation, reading lessons, demonstrations, warm start, reinforcement learning, last evaluation. */
  async run(): Promise<TrainResult> {
    let failure: unknown;
    const detach = this.#abortWhenOver(),
      stopObserving = observeRun(this.data, {
        ...this.#o,
        budget: this.#budget,
        state: this.#state,
        log: this.#log,
        ending: this.#ending,
      }),
      offRoom = this.data.room.onChange((full) => {
        this.#pauses.diskFull(full, this.#state);
        this.#scheduler?.holdProbes(full);
        if (full) void this.#retention.look();
      });
    const ticker = setInterval(() => this.#tick(), STATUS_MS);
    try {
      if (this.#o.resume) this.#log.note(resumedNote(this.data.recovery, this.data.store.recovery));
      this.#retention.start();
      const parts = await unlessOverdue('the start', this.#open(), this.#o),
        evaluations = (this.#evaluations = new EvaluationPhases(parts, this.#schedule));
      await this.#phase('the first evaluation', () => evaluations.untrained());
      await learnPhases(parts, {
        phase: (name, work) => this.#phase(name, work),
        evaluations,
        reinforcement: this.#reinforcement,
        stop: this.#o,
      });
      this.#monitor.end();
      this.#log.throwFault();
      await this.#monitor.noteProgress(this.#state.version);
      if (!this.#o.signal.aborted)
        await unlessOverdue('the last evaluation', evaluations.final(this.#o.signal), this.#o);
      this.#log.throwFault();
    } catch (e) {
      // Work cancelled by a stop is not a failure: the run ends normally.
      if (!(this.#o.signal.aborted && toRunError(e).kind === 'cancelled')) {
        failure = e;
        throw e;
      }
    } finally {
      detach();
      offRoom();
      await this.#close(failure, ticker).finally(stopObserving);
    }
    return {
      points: this.#schedule.points,
      version: this.#state.version,
      stopped: this.#o.signal.aborted ? 'signal' : 'budget',
      rollouts: this.data.counts().ledger.begun,
    };
  }

  /**
   * Starts no new rollouts; running ones end, the trainer continues with what it has, and the time budget stops
   * counting.
   */
  pause(): void {
    this.#pauses.add('person', 'Paused: no new rollouts.');
  }
  unpause(): void {
    this.#pauses.remove('person', 'Resumed after a pause.');
  }

  /** Evaluations that were made, those of earlier parts of the run included. */
  get evaluations(): number {
    return this.#schedule.points.length;
  }
  /** The status that a dashboard shows. */
  wireStatus(): WireStatus {
    return this.#monitor.wireStatus(this.#o.signal.aborted);
  }

  /** The rollout on this desktop, for a person to steer. */
  steer(desktop: string): ReturnType<typeof heldRollout> | undefined {
    const scheduler = this.#scheduler,
      engine = this.#engine,
      s = scheduler?.steerable(desktop);
    if (!s || !scheduler || !engine) return undefined;
    return heldRollout(s, {
      data: this.data,
      scheduler,
      instruction: instructionOf(this.#tasks)(s.order),
      frames: engine.frames,
      settle: settleOf(this.#config.desktops),
    });
  }

  /** Runs one phase, unless the run is ending; work cancelled by the end of the run is not a failure. */
  async #phase(name: string, work: () => Promise<void>): Promise<void> {
    if (this.#ending.signal.aborted) return;
    try {
      await unlessOverdue(name, work(), this.#o);
    } catch (e) {
      if (!(this.#ending.signal.aborted && toRunError(e).kind === 'cancelled')) throw e;
    } finally {
      this.#state.detail = undefined;
    }
    if (this.#budget.signal.aborted) this.#log.note(`The budget is used up: ${name} ended with it.`);
  }

  /** Ends the current phase when anything ends the run. Returns a function that detaches it. */
  #abortWhenOver(): () => void {
    const end = (): void => this.#ending.abort(),
      signals = [this.#o.signal, this.#budget.signal];
    for (const s of signals) {
      if (s.aborted) end();
      s.addEventListener('abort', end, { once: true });
    }
    const { rollouts, updates } = this.#config.budget,
      counted = rollouts !== undefined || updates !== undefined,
      off = counted ? this.data.onChange(() => this.#budget.check()) : () => undefined;
    this.#budget.watch();
    return () => {
      off();
      for (const s of signals) s.removeEventListener('abort', end);
      this.#budget.close();
    };
  }

  /** Starts the parts, from the run's own last checkpoint or from `warmStart.from`. */
  async #open(): Promise<RunParts> {
    const start = await startWeights(this.#own, this.#config.warmStart.from),
      engine = await this.#startEngine(start);
    engine.pool.onEvent((e) => {
      if (e.type === 'quarantined') this.#log.note(quarantineNote(e, this.#config.desktops.count));
    });
    this.#engine = engine;
    startState(this.#state, start, this.#progress);
    await saveStart(start, { data: this.data, learner: engine.learner, log: this.#log });
    const { pool, hindsight } = this.#config.curation,
      successes = await Successes.load(this.data, pool.maxPerFamily, hindsight.share);
    return {
      config: this.#config,
      dir: this.#o.dir,
      clock: systemClock,
      tasks: this.#tasks,
      data: this.data,
      engine,
      scheduler: this.#startScheduler(engine, successes),
      desktops: this.desktops,
      successes,
      monitor: this.#monitor,
      budget: this.#budget,
      progress: this.#progress,
      state: this.#state,
      log: this.#log,
      ending: this.#ending.signal,
    };
  }

  #startEngine({ base, version }: StartWeights): Promise<Engine> {
    return startEngine({
      config: this.#config,
      dir: this.#o.dir,
      run: this.#o.run,
      entry: this.#o.entry,
      frames: this.data.frames,
      desktops: this.desktops,
      signal: this.#o.signal,
      checkpoint: base && { ...base, version },
      version,
      onLesson: (step, steps, loss) => {
        this.#state.detail = `step ${step} of ${steps}, loss ${loss.toFixed(3)}`;
      },
      onStarting: (what) => {
        this.#state.detail = what;
      },
      onServed: (served) => this.#log.mustSucceed(this.data.note({ type: 'model.served', served })),
      onNote: (text) => this.#log.note(text),
      onFault: (e) => this.#log.fault(e),
    });
  }

  #startScheduler(engine: Engine, successes: Successes): Scheduler {
    const config = this.#config,
      { source } = this.#tasks,
      instruction = instructionOf(this.#tasks);
    const scheduler = new Scheduler(
      {
        pool: engine.pool,
        clock: systemClock,
        episode: { ...episodeOf(config, engine, this.#tasks), hindsight: hindsightOf(config, this.#tasks) },
        next: () => this.#reinforcement.take(),
        admit: () => this.#reinforcement.ready,
        taskOf: (order) => source.task(order.family, order.seed),
        sampling: trainingSampling(config.seed, config.policy.temperature),
        probeSampling: probeSampling(config.seed),
        before: this.data.before,
      },
      { slots: config.desktops.count },
    );
    const recorder = new RolloutRecorder({
      data: this.data,
      state: this.#state,
      log: this.#log,
      successes,
      replicas: engine.replicas,
      instructionOf: instruction,
      deterministic: config.run.deterministic,
    });
    this.#monitor.watch(engine, scheduler);
    scheduler.onEvent((e) => {
      recorder.onScheduler(e);
      this.desktops.onScheduler(e, (s) => instruction(s.order), this.#state.version);
    });
    this.#scheduler = scheduler;
    scheduler.start();
    if (this.#budget.paused) scheduler.pause();
    scheduler.holdProbes(this.data.room.full);
    return scheduler;
  }

  #tick(): void {
    this.#monitor.spans.flush(systemClock.now());
    this.#monitor.noteTime();
    this.#o.reporter.status(this.#monitor.status());
  }

  /** Ends rollouts or records them as stopped, writes the index, and ends processes and desktops. */
  async #close(failure: unknown, ticker: NodeJS.Timeout): Promise<void> {
    this.#state.phase = 'stopping';
    this.#monitor.end();
    const { signal, now, reporter } = this.#o,
      hurry = (): void => {
        void this.#scheduler?.stop({ graceMs: 0 });
      };
    let fault = failure;
    now?.addEventListener('abort', hurry, { once: true });
    await this.data.room.end();
    try {
      const graceMs = now?.aborted ? 0 : signal.aborted ? GRACE_MS.stopped : GRACE_MS.ended;
      const ended = await endEach(graceMs + CLOSE_MS, [
        () => this.#scheduler?.stop({ graceMs }),
        () => this.#reinforcement.close(),
        () => this.#retention.close(),
        () =>
          orUndefined(this.#monitor.noteProgress(this.#state.version), 'a journal that refuses is reported by close()'),
      ]);
      fault ??= ended;
    } finally {
      now?.removeEventListener('abort', hurry);
      clearInterval(ticker);
      await this.#engine?.close();
      this.#monitor.spans.flush(systemClock.now(), true);
      if (fault !== undefined) {
        const { message, ...details } = toRunError(fault);
        const noted = this.data.note({ type: 'log', level: 'error', message, details });
        await orUndefined(noted, 'the failure itself is what the run rejects with');
      }
      const reason = fault !== undefined ? 'failed' : signal.aborted ? 'stopped' : 'finished';
      await endsWithin(CLOSE_MS, this.data.close(reason)).catch((e: unknown) => {
        reporter.note(toRunError(e).message);
      });
      reporter.end();
    }
    if (failure === undefined && fault !== undefined) throw fault;
  }
}
