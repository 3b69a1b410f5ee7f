import { join } from 'node:path';
import type { RunConfig } from '../config/index.js';
import {
  StudioError,
  random,
  toRunError,
  type ProcessEntry,
  type RolloutId,
  type RunId,
  type Trajectory,
  type RunStatus as WireStatus,
} from '../domain/index.js';
import { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';
import { systemClock } from '../rollout/clock.js';
import { regimeGate, gateOptions } from '../rollout/regime.js';
import { dataConfig } from '../data/fromConfig.js';
import { openTasks, type Tasks } from '../tasks/open.js';
import { Scheduler, trainingSampling, type SchedulerEvent } from '../rollout/scheduler.js';
import { bounds } from './bounds.js';
import { DesktopRegistry } from '../rollout/desktopRegistry.js';
import { settleOf } from '../cluster/provide.js';
import { startEngine, type Engine } from './engine.js';
import { evaluateNow, type EvalPoint } from './evaluation.js';
import { heldRollout } from './held.js';
import type { HeldRollout } from './runAccess.js';
import { SpanRecorder } from './lanes.js';
import { demonstrations, readingLessons, warmStart, type LessonRun } from './lessons.js';
import type { Reporter, RunProgress } from './live.js';
import { Meters } from './meters.js';
import { OrderQueue } from './orders.js';
import { joinPools, readPools, type PoolIntake } from './poolSources.js';
import { lastCheckpoint, loadSuccesses, progressOf, pruneCheckpoints, startingPoint, type Progress } from './resume.js';
import { rateText } from '../domain/stats.js';
import { stepExtra } from './stepExtra.js';
import { trainLoop } from './trainLoop.js';

export interface TrainRunOptions {
  readonly config: RunConfig;
  readonly dir: string;
  readonly run: RunId;
  readonly resume: boolean;
  readonly entry: ProcessEntry;
  readonly reporter: Reporter;
  /** First abort: end cleanly. */
  readonly signal: AbortSignal;
  /** Aborted too: without waiting for rollouts under way. */
  readonly now?: AbortSignal;
}
export interface TrainResult {
  readonly points: readonly EvalPoint[];
  readonly version: number;
  readonly stopped: 'budget' | 'signal';
  readonly rollouts: number;
}

/** One training run from start (or resume) to a clean end. */
export async function trainRun(o: TrainRunOptions): Promise<TrainResult> {
  return (await openRun(o)).run();
}

/**
 * The run's folder, opened for writing, with what it takes to run; nothing has started yet, and `run` must be called to
 * let go of it.
 */
export async function openRun(o: TrainRunOptions): Promise<TrainingRun> {
  const tasks = await openTasks(o.config),
    pools = (): Promise<PoolIntake> => readPools(o.config, new Set(tasks.families.map((f) => f.id)), o.entry);
  // Before there is a folder or a desktop: what cannot be brought is said while nothing is lost.
  const asked = o.config.curation.pool.from.length > 0,
    intake = asked && !o.resume ? await pools() : undefined;
  const data = await DataManager.open({
    dir: o.dir,
    config: dataConfig(o.config),
    families: tasks.families,
    taskOf: tasks.taskOf,
    store: { index: o.entry, create: { id: o.run, createdAt: Date.now(), name: o.config.name, config: o.config } },
  });
  try {
    const progress = await progressOf(data.store);
    if (asked && !progress.pooled) {
      const said = await joinPools(data, intake ?? (await pools()));
      o.reporter.note(said);
      await data.note({ type: 'log', level: 'info', message: said });
    }
    return new TrainingRun(o, tasks, data, progress);
  } catch (e) {
    await data.close('failed').catch(() => undefined);
    throw e;
  }
}

export class TrainingRun {
  version = 0;
  readonly points: EvalPoint[];
  private readonly o: TrainRunOptions;
  private readonly config: RunConfig;
  private readonly tasks: Tasks;
  readonly data: DataManager;
  readonly desktops = new DesktopRegistry();
  private readonly spans: SpanRecorder;
  private readonly progress: Progress;
  private readonly startedAt = systemClock.now();
  private meters = new Meters(systemClock.now());
  private readonly successes = new Map<RolloutId, Trajectory>();
  private engine: Engine | undefined;
  private scheduler!: Scheduler;
  private orders: OrderQueue | undefined;
  private phase: RunProgress['phase'] = 'starting';
  private detail: string | undefined;
  private ticker: NodeJS.Timeout | undefined;
  private rollouting = false;
  private fault: unknown;
  private readonly stopRl = new AbortController();
  private pausedSince: number | undefined;
  private pausedMs = 0;
  private budgetTimer: NodeJS.Timeout | undefined;

  constructor(o: TrainRunOptions, tasks: Tasks, data: DataManager, progress: Progress) {
    this.o = o;
    this.config = o.config;
    this.tasks = tasks;
    this.data = data;
    this.progress = progress;
    this.points = [...progress.points];
    this.spans = new SpanRecorder((e) => {
      this.data.note(e).catch(this.failed);
    });
  }

  /** Reads top to bottom: reading lessons, demonstrations, warm start, reinforcement learning, last evaluation. */
  async run(): Promise<TrainResult> {
    let failure: unknown;
    try {
      if (this.o.resume)
        this.note(
          `Resumed: ${this.data.recovery.events} events read, ${this.data.recovery.lost.length} unfinished rollouts handed out again, ${this.data.recovery.released} claimed batches freed.`,
        );
      await this.open();
      await this.evaluate('untrained');
      const lessons = this.lessons();
      await readingLessons(lessons);
      await demonstrations(lessons);
      if (await warmStart(lessons)) await this.evaluate('warm start');
      await this.reinforce();
      if (!this.o.signal.aborted) await this.evaluate('final');
    } catch (e) {
      // What a stop cut off is no failure: the run ends as it does anywhere else.
      if (!(this.o.signal.aborted && toRunError(e).kind === 'cancelled')) {
        failure = e;
        throw e;
      }
    } finally {
      await this.close(failure);
    }
    return {
      points: this.points,
      version: this.version,
      stopped: this.o.signal.aborted ? 'signal' : 'budget',
      rollouts: this.rollouts,
    };
  }

  /** No new rollouts; those running end, the trainer goes on with what it has, and the time budget stands still. */
  pause(): void {
    if (this.paused) return;
    this.pausedSince = this.now();
    this.scheduler?.pause();
    this.armBudget();
    this.note('Paused: no new rollouts.');
  }
  unpause(): void {
    if (this.pausedSince === undefined) return;
    this.pausedMs += this.now() - this.pausedSince;
    this.pausedSince = undefined;
    this.scheduler?.start();
    this.armBudget();
    this.note('Going on after a pause.');
  }
  get paused(): boolean {
    return this.pausedSince !== undefined;
  }

  /** What a progress line or a dashboard shows. */
  wireStatus(): WireStatus {
    const { success, ...s } = this.status(),
      { minutes } = this.config.budget,
      c = this.data.stats().ledger;
    const survived = c.trained + c.byState.grouped + c.byState.claimed,
      judged =
        survived +
        (c.retired['no-variance'] ?? 0) +
        (c.retired.replaced ?? 0) +
        (c.retired.trimmed ?? 0) +
        (c.retired.masked ?? 0) +
        (c.retired.stale ?? 0);
    const x = bounds(
      this.meters.measured({
        desktops: this.config.desktops.count,
        replicas: this.config.policy.kind === 'embedded' ? this.config.policy.replicas : 0,
        share: judged === 0 ? undefined : survived / judged,
      }),
    );
    return {
      ...s,
      state: this.phase === 'stopping' || this.o.signal.aborted ? 'stopping' : this.paused ? 'paused' : 'running',
      ...(Number.isFinite(success) ? { success } : {}),
      ...(minutes === undefined ? {} : { budgetMs: minutes * 60_000 }),
      ...(x ? { bounds: x } : {}),
    };
  }

  /** For people now, and in the journal for those who come later. */
  private note(text: string, data?: Record<string, unknown>): void {
    this.o.reporter.note(text, data);
    this.data.note({ type: 'log', level: 'info', message: text }).catch(this.failed);
  }
  private failed = (err: unknown): void => {
    this.fault ??= err;
    this.stopRl.abort();
  };
  get rollouts(): number {
    return this.data.stats().ledger.generated;
  }
  private now = (): number => systemClock.now();
  private elapsed(): number {
    return this.progress.elapsedMs + (this.pausedSince ?? this.now()) - this.startedAt - this.pausedMs;
  }

  async open(): Promise<void> {
    const own = await lastCheckpoint(this.data.store),
      { from } = this.config.warmStart;
    const checkpoint = own ?? (from === undefined ? undefined : await startingPoint(from));
    this.ticker = setInterval(() => {
      this.spans.flush(this.now());
      this.o.reporter.status(this.status());
    }, 1000);
    this.engine = await startEngine({
      config: this.config,
      dir: this.o.dir,
      run: this.o.run,
      entry: this.o.entry,
      frames: this.data.frames,
      desktops: this.desktops,
      signal: this.o.signal,
      ...(checkpoint ? { checkpoint } : {}),
      onLesson: (step, steps, loss) => {
        this.detail = `step ${step} of ${steps}, loss ${loss.toFixed(3)}`;
      },
    });
    this.version = checkpoint?.version ?? 0;
    if (checkpoint && !own) {
      // From here on the folder has all it needs.
      const copy = await this.engine.trainer!.checkpoint();
      await this.data.note({ type: 'checkpoint', version: copy.version, dir: copy.dir });
      this.note(`Starts from the policy in ${checkpoint.dir}.`);
    }
    for (const t of await loadSuccesses(this.data.store)) this.successes.set(t.id, t);
    const { pool, policy, observations } = this.engine;
    const settle = settleOf(this.config.desktops);
    this.scheduler = new Scheduler(
      {
        pool,
        clock: systemClock,
        episode: {
          policy,
          tasks: this.tasks.engine,
          frames: observations,
          clock: systemClock,
          settle,
          timeoutMs: this.config.rollout.taskTimeoutS * 1000,
        },
        next: () => this.orders?.take(),
        admit: () => (this.rollouting ? (this.orders?.ready ?? 0) : 0),
        taskOf: (order) => this.tasks.source.task(order.family, order.seed),
        sampling: trainingSampling(this.config.seed, this.config.policy.temperature),
      },
      { slots: this.config.desktops.count },
    );
    this.scheduler.onEvent((e) => {
      this.meters.onScheduler(e);
      this.spans.onScheduler(e);
      this.keep(e);
      this.desktops.onScheduler(e, (s) => this.instructionOf(s.order), this.version);
    });
    pool.onEvent((e) => {
      this.spans.onPool(e);
      this.meters.onPool(e);
    });
    this.engine.models?.onEvent((e) => {
      this.spans.onModels(e);
    });
    this.scheduler.start();
    if (this.paused) this.scheduler.pause();
  }

  /** What runs on this desktop, for a person to steer. */
  steer(desktop: string): HeldRollout | undefined {
    const { engine, scheduler, data } = this,
      s = scheduler?.steerable(desktop);
    return (
      s &&
      engine &&
      heldRollout(s, {
        data,
        scheduler,
        instruction: this.instructionOf(s.order),
        frames: engine.observations,
        settle: settleOf(this.config.desktops),
      })
    );
  }

  private instructionOf(o: RolloutOrder): string {
    return this.tasks.source.task(o.family, o.seed).instruction;
  }

  /** Everything that happens goes to the data manager; what it refuses ends the run rather than being lost. */
  private keep(e: SchedulerEvent): void {
    const { failed } = this;
    if (e.type === 'started') {
      const { rollout, family, task, cap } = e.order,
        { version } = this,
        instruction = this.instructionOf(e.order);
      (e.kind === 'rollout'
        ? this.data.started(rollout, this.engine?.models?.oldest ?? version, e.desktop, instruction)
        : this.data.note({
            type: 'trajectory.started',
            rollout,
            family,
            task,
            instruction,
            cap,
            provenance: e.kind,
            version,
            desktop: e.desktop,
          })
      ).catch(failed);
    } else if (e.type === 'step') {
      this.data.recordStep(e.rollout, e.step, stepExtra(e.desktop, e.alternatives, e.about)).catch(failed);
    } else if (e.type === 'ended') {
      const { trajectory: t } = e;
      const stopped = e.kind === 'rollout' && t.outcome.kind === 'error' && t.outcome.error.kind === 'cancelled';
      (stopped ? this.data.retire(t.id, 'stopped') : this.data.record(t)).catch(failed);
      if (e.kind === 'rollout' && t.outcome.kind === 'success') this.remember(t);
    } else if (e.type === 'leaseFailed') this.note(`No desktop: ${e.error.message} ${e.error.remedy}`);
  }

  /** Successes that may be imitated later: all demonstrations, and the policy's newest up to a bound per family. */
  private remember(t: Trajectory): void {
    this.successes.set(t.id, t);
    const own = [...this.successes.values()].filter((s) => s.family === t.family && s.provenance.kind === 'rollout');
    for (const s of own.slice(0, Math.max(0, own.length - this.config.curation.pool.maxPerFamily)))
      this.successes.delete(s.id);
  }

  /**
   * What may be imitated now: successes but those a person switched off or took out of the pool, and what people
   * brought into it since.
   */
  private imitable(): Trajectory[] {
    const all = new Map([...this.successes.values()].filter((t) => !this.data.rejected(t.id)).map((t) => [t.id, t]));
    for (const t of this.data.broughtSuccesses()) if (!all.has(t.id)) all.set(t.id, t);
    return [...all.values()];
  }

  async evaluate(label: string): Promise<void> {
    const newest = this.points.at(-1);
    if (label === 'final' && newest?.label === label && newest.version === this.version) return;
    if (
      this.config.evaluation.episodes === 0 ||
      (label === 'untrained' && !this.config.evaluation.untrained) ||
      this.o.signal.aborted ||
      (label !== 'final' && this.points.some((p) => p.label === label))
    )
      return;
    const before = this.phase;
    this.phase = 'evaluating';
    this.detail = label;
    try {
      const p = await evaluateNow({
        data: this.data,
        scheduler: this.scheduler,
        tasks: this.tasks,
        episodes: this.config.evaluation.episodes,
        label,
        version: this.version,
        maxSteps: this.config.rollout.maxSteps,
        signal: this.o.signal,
      });
      this.points.push(p);
      this.note(
        `Evaluation ${label.padEnd(12)} v${String(p.version).padEnd(4)} success ${rateText(p.successes, p.episodes)} on held-out seeds (${p.episodes} episodes${p.errors ? `, ${p.errors} errors` : ''})`,
        { eval: p },
      );
    } catch (e) {
      if (!(e instanceof StudioError && e.kind === 'cancelled')) throw e;
    } finally {
      this.phase = before;
      this.detail = undefined;
    }
  }

  private lessons(): LessonRun {
    const { config, tasks, data, spans, desktops, successes, now } = this;
    return {
      config,
      tasks,
      data,
      spans,
      desktops,
      successes,
      now,
      engine: this.engine!,
      signal: this.o.signal,
      warmStarted: this.progress.warmStarted,
      version: () => this.version,
      learnt: (version) => {
        this.version = version;
      },
      spent: () => this.spent(),
      imitable: () => this.imitable(),
      phase: (phase) => {
        this.phase = phase;
      },
      detail: (text) => {
        this.detail = text;
      },
      note: (text) => {
        this.note(text);
      },
    };
  }

  /**
   * Share of the budget that is used, of the one of several that ends first, more than 1 when it is overdrawn; 0
   * without one.
   */
  private used(): number {
    const { minutes, rollouts, updates } = this.config.budget;
    const shares = [
      minutes && this.elapsed() / (minutes * 60_000),
      rollouts && this.rollouts / rollouts,
      updates && this.data.stats().batches / updates,
    ];
    return Math.max(0, ...shares.map((x) => x ?? 0));
  }
  /** Whether the budget was used up before (a finished run that is resumed). */
  private spent(): boolean {
    return this.used() >= 1;
  }

  async reinforce(): Promise<void> {
    if (this.o.signal.aborted) return;
    const { trainer, models, spec, observations } = this.engine!;
    this.phase = 'training';
    this.meters = new Meters(this.now());
    if (this.spent()) return;
    const gate = regimeGate(gateOptions(this.config));
    this.orders = new OrderQueue(this.data, {
      limit: this.config.desktops.count + 2,
      version: () => this.version,
      behavior: () => models?.oldest ?? this.version,
      gate,
      onReady: () => this.scheduler.wake(),
      onFault: (e) => {
        this.fault ??= e;
        this.stopRl.abort();
      },
    });
    this.rollouting = true;
    this.orders.fill();
    this.scheduler.wake();
    const stop = this.stopRl,
      timers: NodeJS.Timeout[] = [];
    const end = (): void => stop.abort();
    this.o.signal.addEventListener('abort', end, { once: true });
    if (this.o.signal.aborted) end();
    const { minutes, rollouts } = this.config.budget;
    this.armBudget();
    const offRollouts = rollouts
      ? this.data.onChange(() => {
          if (this.data.stats().ledger.generated >= rollouts) end();
        })
      : undefined;
    let evaluating: Promise<void> | undefined;
    if (this.config.evaluation.everyMinutes > 0) {
      timers.push(
        setInterval(() => {
          const left = minutes ? minutes * 60_000 - this.elapsed() : Infinity;
          if (!evaluating && !this.paused && left > 60_000)
            evaluating = this.evaluate(`after ${Math.round(this.elapsed() / 60_000)} min`)
              .catch((e: unknown) => {
                this.fault ??= e;
                end();
              })
              .finally(() => {
                evaluating = undefined;
              });
        }, this.config.evaluation.everyMinutes * 60_000),
      );
    }
    try {
      if (trainer && models) {
        await trainLoop(
          {
            config: this.config,
            spec,
            data: this.data,
            trainer,
            models,
            observations,
            meters: this.meters,
            spans: this.spans,
            random: random(`replay/${this.config.seed}/${this.version}`),
            successes: () => this.imitable(),
            version: () => this.version,
            used: () => this.used(),
            now: this.now,
            gate,
            onGenerate: () => this.orders?.wake(),
            onVersion: (version, report) => {
              this.version = version;
              this.scheduler.wake();
              this.orders?.fill();
              void this.noteProgress(report.version);
              void pruneCheckpoints(join(this.o.dir, 'checkpoints'), this.config.store.keepCheckpoints);
            },
          },
          stop.signal,
          () => evaluating ?? Promise.resolve(),
        );
      } else if (!stop.signal.aborted)
        await new Promise<void>((r) => stop.signal.addEventListener('abort', () => r(), { once: true }));
    } finally {
      for (const t of [...timers, this.budgetTimer]) clearTimeout(t);
      offRollouts?.();
      this.o.signal.removeEventListener('abort', end);
      this.rollouting = false;
    }
    await evaluating;
    // Orders nobody will start are given back now: the last evaluation must not count them.
    await this.orders.close();
    if (this.fault) throw this.fault;
    await this.noteProgress(this.version);
  }

  /** Reinforcement learning ends with the time budget; a pause does not use it up. */
  private armBudget(): void {
    const { minutes } = this.config.budget;
    clearTimeout(this.budgetTimer);
    if (minutes && this.rollouting && !this.paused)
      this.budgetTimer = setTimeout(() => this.stopRl.abort(), Math.max(0, minutes * 60_000 - this.elapsed()));
  }

  private async noteProgress(version: number): Promise<void> {
    const s = this.wireStatus(),
      x = s.bounds;
    await this.data.note({
      type: 'metrics',
      source: 'run',
      version,
      values: {
        elapsedMs: this.elapsed(),
        success: s.success ?? 0,
        rolloutsPerHour: s.rolloutsPerHour,
        stepsPerMinute: s.stepsPerMinute,
        trainedActionsPerMinute: s.trainedActionsPerMinute,
        desktopUtilisation: s.desktopUtilisation,
        replicaUtilisation: s.replicaUtilisation,
        trainerUtilisation: s.trainerUtilisation,
        errors: s.errors,
        ...(x
          ? {
              boundRolloutsPerHour: x.rolloutsPerHour,
              boundStepsPerMinute: x.stepsPerMinute,
              boundTrainedActionsPerMinute: x.trainedActionsPerMinute,
            }
          : {}),
      },
    });
  }

  private status(): RunProgress {
    const now = this.now(),
      m = this.meters,
      rates = m.rates(now);
    const models = this.engine?.models?.status();
    const u = m.utilisation(
      now,
      this.config.desktops.count,
      models ?? { replicas: [], waiting: 0, version: 0, publishing: false },
    );
    const stats = this.data.stats();
    return {
      phase: this.phase,
      elapsedMs: this.elapsed(),
      version: this.version,
      rollouts: stats.ledger.generated - stats.ledger.byState.queued,
      ...rates,
      trainedActionsPerMinute: m.trainedActions / m.minutesUntil(now),
      success: m.success.mean,
      curve: m.curve,
      desktopUtilisation: u.desktops,
      replicaUtilisation: u.replicas,
      trainerUtilisation: u.trainer,
      replicaVersions: models?.replicas.map((x) => x.version) ?? [],
      running: this.engine ? (this.scheduler?.status().running.length ?? 0) : 0,
      waitingGroups: stats.groups.ready,
      errors: m.errors,
      ...(this.detail ? { detail: this.detail } : {}),
    };
  }

  /** Rollouts end or are recorded as stopped, the index is written, processes and desktops go. */
  private async close(failure: unknown): Promise<void> {
    this.phase = 'stopping';
    const { signal, now } = this.o,
      hurry = (): void => {
        void this.scheduler?.stop({ graceMs: 0 });
      };
    now?.addEventListener('abort', hurry, { once: true });
    try {
      await this.scheduler?.stop({ graceMs: now?.aborted ? 0 : signal.aborted ? 3_000 : 10_000 });
      await this.orders?.close();
      await this.noteProgress(this.version).catch(() => undefined);
    } finally {
      now?.removeEventListener('abort', hurry);
      clearInterval(this.ticker);
      await this.engine?.close();
      this.spans.flush(this.now(), true);
      if (failure !== undefined) {
        const { message, ...details } = toRunError(failure);
        await this.data.note({ type: 'log', level: 'error', message, details }).catch(() => undefined);
      }
      const reason = failure !== undefined ? 'failed' : signal.aborted ? 'stopped' : 'finished';
      await this.data.close(reason).catch((e: unknown) => {
        this.o.reporter.note(toRunError(e).message);
      });
      this.o.reporter.end();
    }
  }
}
