import { join } from 'node:path';
import type { RunConfig } from '../config/index.js';
import { StudioError, id, random, toRunError, type ProcessEntry, type RolloutId, type RunId, type Trajectory } from '../domain/index.js';
import { DataManager } from '../data/dataManager.js';
import type { StepExtra } from '../data/events.js';
import { systemClock } from '../rollout/clock.js';
import { Scheduler, trainingSampling, type SchedulerEvent } from '../rollout/scheduler.js';
import type { OracleSource, TaskSource } from '../tasks/types.js';
import { settleOf } from './desktops.js';
import { demonstrate } from './demonstrate.js';
import { startEngine, type Engine } from './engine.js';
import { evaluateNow, type EvalPoint } from './evaluation.js';
import type { Reporter, RunStatus } from './live.js';
import { dataConfig, openTasks, type Tasks } from './mapping.js';
import { Meters } from './meters.js';
import { OrderQueue } from './orders.js';
import { lastCheckpoint, loadSuccesses, progressOf, pruneCheckpoints, type Progress } from './resume.js';
import { readingScreens, vocabulary } from './reading.js';
import { imitationSamples } from './samples.js';
import { rateText } from './stats.js';
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
}
export interface TrainResult { readonly points: readonly EvalPoint[]; readonly version: number; readonly stopped: 'budget' | 'signal'; readonly rollouts: number }

/** One training run from start (or resume) to a clean end. Reads top to bottom: reading lessons, demonstrations, warm start, reinforcement learning, last evaluation. */
export async function trainRun(o: TrainRunOptions): Promise<TrainResult> {
  const { config, reporter } = o;
  const tasks = await openTasks(config);
  const data = await DataManager.open({
    dir: o.dir, config: dataConfig(config), families: tasks.families, taskOf: tasks.taskOf,
    store: { index: o.entry, create: { id: o.run, createdAt: Date.now(), name: config.name, config } },
  });
  const r = new Run(o, tasks, data, await progressOf(data.store));
  try {
    if (o.resume) reporter.note(`Resumed: ${data.recovery.events} events read, ${data.recovery.lost.length} unfinished rollouts handed out again, ${data.recovery.released} claimed batches freed.`);
    await r.open();
    await r.evaluate('untrained');
    await r.reading();
    await r.demonstrations();
    await r.warmStart();
    await r.reinforce();
    if (!o.signal.aborted) await r.evaluate('final');
    return { points: r.points, version: r.version, stopped: o.signal.aborted ? 'signal' : 'budget', rollouts: r.rollouts };
  } finally { await r.close(); }
}

class Run {
  version = 0;
  readonly points: EvalPoint[];
  private readonly o: TrainRunOptions;
  private readonly config: RunConfig;
  private readonly tasks: Tasks;
  private readonly data: DataManager;
  private readonly progress: Progress;
  private readonly startedAt = systemClock.now();
  private meters = new Meters(systemClock.now());
  private readonly successes = new Map<RolloutId, Trajectory>();
  private engine: Engine | undefined;
  private scheduler!: Scheduler;
  private orders: OrderQueue | undefined;
  private phase: RunStatus['phase'] = 'starting';
  private detail: string | undefined;
  private ticker: NodeJS.Timeout | undefined;
  private rollouting = false;
  private fault: unknown;
  private readonly stopRl = new AbortController();

  constructor(o: TrainRunOptions, tasks: Tasks, data: DataManager, progress: Progress) {
    this.o = o; this.config = o.config; this.tasks = tasks; this.data = data; this.progress = progress; this.points = [...progress.points];
  }
  get rollouts(): number { return this.data.stats().ledger.generated; }
  private now = (): number => systemClock.now();
  private elapsed(): number { return this.progress.elapsedMs + this.now() - this.startedAt; }

  async open(): Promise<void> {
    const checkpoint = await lastCheckpoint(this.data.store);
    this.ticker = setInterval(() => this.o.reporter.status(this.status()), 1000);
    this.engine = await startEngine({
      config: this.config, dir: this.o.dir, run: this.o.run, entry: this.o.entry, frames: this.data.frames, ...(checkpoint ? { checkpoint } : {}),
      onLesson: (step, steps, loss) => { this.detail = `step ${step} of ${steps}, loss ${loss.toFixed(3)}`; },
    });
    this.version = checkpoint?.version ?? 0;
    for (const t of await loadSuccesses(this.data.store)) this.successes.set(t.id, t);
    const { pool, policy, observations } = this.engine;
    const settle = settleOf(this.config.desktops);
    this.scheduler = new Scheduler({
      pool, clock: systemClock, episode: { policy, tasks: this.tasks.engine, frames: observations, clock: systemClock, settle, timeoutMs: this.config.rollout.taskTimeoutS * 1000 },
      next: () => this.orders?.take(), admit: () => (this.rollouting ? this.orders?.ready ?? 0 : 0),
      taskOf: (order) => this.tasks.source.task(order.family, order.seed), sampling: trainingSampling(this.config.seed, this.config.policy.temperature),
    }, { slots: this.config.desktops.count });
    this.scheduler.onEvent((e) => { this.meters.onScheduler(e); this.keep(e); });
    this.scheduler.start();
  }

  /** Everything that happens goes to the data manager; what it refuses ends the run rather than being lost. */
  private keep(e: SchedulerEvent): void {
    const failed = (err: unknown): void => { this.fault ??= err; this.stopRl.abort(); };
    if (e.type === 'started' && e.kind === 'rollout') this.data.started(e.order.rollout, this.version, e.desktop).catch(failed);
    else if (e.type === 'step') {
      const extra: StepExtra = { desktop: e.desktop, ...(e.alternatives ? { alternatives: e.alternatives } : {}) };
      this.data.recordStep(e.rollout, e.step, extra).catch(failed);
    } else if (e.type === 'ended') {
      const { trajectory: t } = e;
      const stopped = e.kind === 'rollout' && t.outcome.kind === 'error' && t.outcome.error.kind === 'cancelled';
      (stopped ? this.data.retire(t.id, 'stopped') : this.data.record(t)).catch(failed);
      if (e.kind === 'rollout' && t.outcome.kind === 'success') this.remember(t);
    } else if (e.type === 'leaseFailed') this.o.reporter.note(`No desktop: ${e.error.message} ${e.error.remedy}`);
  }

  /** Successes that may be imitated later: all demonstrations, and the policy's newest up to a bound per family. */
  private remember(t: Trajectory): void {
    this.successes.set(t.id, t);
    const own = [...this.successes.values()].filter((s) => s.family === t.family && s.provenance.kind === 'rollout');
    for (const s of own.slice(0, Math.max(0, own.length - this.config.curation.pool.maxPerFamily))) this.successes.delete(s.id);
  }

  async evaluate(label: string): Promise<void> {
    const newest = this.points.at(-1);
    if (label === 'final' && newest?.label === label && newest.version === this.version) return;
    if (this.config.evaluation.episodes === 0 || this.o.signal.aborted || (label !== 'final' && this.points.some((p) => p.label === label))) return;
    const before = this.phase;
    this.phase = 'evaluating'; this.detail = label;
    try {
      const p = await evaluateNow({ data: this.data, scheduler: this.scheduler, tasks: this.tasks, episodes: this.config.evaluation.episodes, label, version: this.version, maxSteps: this.config.rollout.maxSteps, signal: this.o.signal });
      this.points.push(p);
      this.o.reporter.note(`Evaluation ${label.padEnd(12)} v${String(p.version).padEnd(4)} success ${rateText(p.successes, p.episodes)} on held-out seeds (${p.episodes} episodes${p.errors ? `, ${p.errors} errors` : ''})`, { eval: p });
    } catch (e) { if (!(e instanceof StudioError && e.kind === 'cancelled')) throw e; } finally { this.phase = before; this.detail = undefined; }
  }

  /** The base policy: eyes before tasks. Skipped when there is nothing to warm-start or it was done before the run was resumed. */
  async reading(): Promise<void> {
    const w = this.config.warmStart.reading, { trainer, spec, pool } = this.engine!;
    if (w.steps === 0 || w.screens === 0 || this.o.signal.aborted || !trainer) return;
    // A resumed run has had its lessons; the screens are drawn again for those mixed into later steps.
    const had = this.version > 0;
    this.phase = 'reading';
    const words = vocabulary(spec, this.tasks), t0 = this.now();
    const screens = await readingScreens({ pool, spec, words, count: w.screens, seed: this.config.seed, parallel: Math.min(2, this.config.desktops.count), signal: this.o.signal, onProgress: (n) => { this.detail = `drawing screens, ${n} of ${w.screens}`; } });
    const report = await this.interruptible(() => trainer.read(screens, { steps: had ? 0 : w.steps, lr: w.lr, shift: 16 }));
    this.detail = undefined;
    if (!report || had) return;
    this.version = report.version;
    await this.data.note({ type: 'metrics', source: 'reading', version: report.version, values: { loss: report.loss, ms: report.ms, screens: report.screens, steps: report.steps, words: words.length } });
    this.o.reporter.note(`Reading: ${report.steps} lessons on ${report.screens} drawn screens of ${words.length} words in ${Math.round((this.now() - t0) / 1000)} s, loss ${report.loss.toFixed(2)}.`);
  }

  /** A long lesson that a stop ends early; its half-learned result is then not used (undefined). */
  private async interruptible<T>(lesson: () => Promise<T>): Promise<T | undefined> {
    const stop = (): void => this.engine?.trainer?.interrupt();
    this.o.signal.addEventListener('abort', stop, { once: true });
    try { const r = await lesson(); return this.o.signal.aborted ? undefined : r; } finally { this.o.signal.removeEventListener('abort', stop); }
  }

  async demonstrations(): Promise<void> {
    const n = this.config.warmStart.demonstrations, { source } = this.tasks;
    if (n === 0 || this.progress.warmStarted || this.o.signal.aborted || !('oracle' in source)) return;
    const have = new Map<string, number>();
    const done = new Set<string>();
    for (const t of this.successes.values()) if (t.provenance.kind === 'oracle') { have.set(t.family, (have.get(t.family) ?? 0) + 1); done.add(t.task); }
    this.phase = 'demonstrations';
    const size = Math.min(4, this.config.desktops.count);
    const pool = this.engine!.openDemoPool(size);
    const t0 = this.now();
    let made = 0, failed = 0;
    try {
      for (const f of this.tasks.families) {
        const left = n - (have.get(f.id) ?? 0);
        if (left <= 0) continue;
        const seeds = this.tasks.demoSeeds.filter((s) => !done.has(this.tasks.taskOf(f.id, s))).slice(0, left + 8);
        const r = await demonstrate(
          { pool, source: source as TaskSource & OracleSource, tasks: this.tasks.engine, frames: this.engine!.observations, settle: settleOf(this.config.desktops), now: Date.now },
          {
            families: [f.id], seeds, count: left, parallel: size, maxSteps: this.config.rollout.maxSteps * 2, signal: this.o.signal,
            onTrajectory: async (t) => { await this.data.record(t); this.successes.set(t.id, t); },
            onProgress: (k) => { this.detail = `${f.id}, ${k} of ${left}`; },
          });
        made += r.made; failed += r.failed;
      }
    } finally { this.detail = undefined; await pool.close(); }
    this.o.reporter.note(`Demonstrations: ${made} verified successes of ${this.tasks.families.length} families in ${Math.round((this.now() - t0) / 1000)} s${failed ? `, ${failed} failed and were left out` : ''}.`);
  }

  async warmStart(): Promise<void> {
    const w = this.config.warmStart, { trainer, models, spec, observations } = this.engine!;
    if (w.steps === 0 || this.progress.warmStarted || this.o.signal.aborted || !trainer || !models) return;
    this.phase = 'warm start';
    const samples = await imitationSamples(spec, observations, [...this.successes.values()]);
    if (samples.length === 0) return;
    const report = await this.interruptible(() => trainer.imitate({ id: id('warm-start'), samples, epochs: 1 }, { steps: w.steps, lr: w.lr, shift: w.shift }));
    if (!report) return;
    const [weights, checkpoint] = [await trainer.exportWeights(), await trainer.checkpoint()];
    await this.data.note({ type: 'metrics', source: 'warm-start', version: report.version, values: { loss: report.imitationLoss, ms: report.ms, samples: samples.length, steps: report.optimizerSteps } });
    await this.data.note({ type: 'checkpoint', version: report.version, dir: checkpoint.dir });
    this.version = report.version;
    await models.publish(weights);
    this.detail = undefined;
    this.o.reporter.note(`Warm start: ${report.optimizerSteps} imitation steps on ${samples.length} demonstrated steps in ${Math.round(report.ms / 1000)} s, loss ${report.imitationLoss.toFixed(3)}.`);
    await this.evaluate('warm start');
  }

  /** Whether the budget was used up before (a finished run that is resumed). */
  private spent(): boolean {
    const { minutes, rollouts, updates } = this.config.budget;
    return (minutes !== undefined && this.elapsed() >= minutes * 60_000) || (rollouts !== undefined && this.rollouts >= rollouts) || (updates !== undefined && this.data.stats().batches >= updates);
  }

  async reinforce(): Promise<void> {
    if (this.o.signal.aborted) return;
    const { trainer, models, spec, observations } = this.engine!;
    this.phase = 'training';
    this.meters = new Meters(this.now());
    if (this.spent()) return;
    this.orders = new OrderQueue(this.data, {
      limit: this.config.desktops.count + 2, version: () => this.version, onReady: () => this.scheduler.wake(),
      onFault: (e) => { this.fault ??= e; this.stopRl.abort(); },
    });
    this.rollouting = true;
    this.orders.fill();
    this.scheduler.wake();
    const stop = this.stopRl, timers: NodeJS.Timeout[] = [];
    const end = (): void => stop.abort();
    this.o.signal.addEventListener('abort', end, { once: true });
    if (this.o.signal.aborted) end();
    const { minutes, rollouts } = this.config.budget;
    if (minutes) timers.push(setTimeout(end, Math.max(0, minutes * 60_000 - this.elapsed())));
    const offRollouts = rollouts ? this.data.onChange(() => { if (this.data.stats().ledger.generated >= rollouts) end(); }) : undefined;
    let evaluating: Promise<void> | undefined;
    if (this.config.evaluation.everyMinutes > 0) {
      timers.push(setInterval(() => {
        const left = minutes ? minutes * 60_000 - this.elapsed() : Infinity;
        if (!evaluating && left > 60_000) evaluating = this.evaluate(`after ${Math.round(this.elapsed() / 60_000)} min`).catch((e: unknown) => { this.fault ??= e; end(); }).finally(() => { evaluating = undefined; });
      }, this.config.evaluation.everyMinutes * 60_000));
    }
    try {
      if (trainer && models) {
        await trainLoop({
          config: this.config, spec, data: this.data, trainer, models, observations, meters: this.meters, random: random(`replay/${this.config.seed}/${this.version}`),
          successes: () => [...this.successes.values()], version: () => this.version, now: this.now,
          onVersion: (version, report) => {
            this.version = version;
            this.scheduler.wake(); this.orders?.fill();
            void this.noteProgress(report.version);
            void pruneCheckpoints(join(this.o.dir, 'checkpoints'), this.config.store.keepCheckpoints);
          },
        }, stop.signal, () => evaluating ?? Promise.resolve());
      } else if (!stop.signal.aborted) await new Promise<void>((r) => stop.signal.addEventListener('abort', () => r(), { once: true }));
    } finally {
      for (const t of timers) clearTimeout(t);
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

  private async noteProgress(version: number): Promise<void> {
    const s = this.status();
    await this.data.note({
      type: 'metrics', source: 'run', version,
      values: {
        elapsedMs: this.elapsed(), success: Number.isFinite(s.success) ? s.success : 0, rolloutsPerHour: s.rolloutsPerHour, stepsPerMinute: s.stepsPerMinute, trainedActionsPerMinute: s.trainedActionsPerMinute,
        desktopUtilisation: s.desktopUtilisation, replicaUtilisation: s.replicaUtilisation, trainerUtilisation: s.trainerUtilisation, errors: s.errors,
      },
    });
  }

  private status(): RunStatus {
    const now = this.now(), m = this.meters, rates = m.rates(now);
    const models = this.engine?.models?.status();
    const u = m.utilisation(now, this.config.desktops.count, models ?? { replicas: [], waiting: 0, version: 0, publishing: false });
    const stats = this.data.stats();
    return {
      phase: this.phase, elapsedMs: this.elapsed(), version: this.version, rollouts: stats.ledger.generated, ...rates,
      trainedActionsPerMinute: m.trainedActions / m.minutesUntil(now), success: m.success.mean, curve: m.curve,
      desktopUtilisation: u.desktops, replicaUtilisation: u.replicas, trainerUtilisation: u.trainer, replicaVersions: models?.replicas.map((x) => x.version) ?? [],
      running: this.engine ? this.scheduler?.status().running.length ?? 0 : 0, waitingGroups: stats.groups.ready, errors: m.errors, ...(this.detail ? { detail: this.detail } : {}),
    };
  }

  /** Rollouts end or are recorded as stopped, the index is written, processes and desktops go. */
  async close(): Promise<void> {
    this.phase = 'stopping';
    try {
      await this.scheduler?.stop({ graceMs: this.o.signal.aborted ? 3_000 : 10_000 });
      await this.orders?.close();
      await this.noteProgress(this.version).catch(() => undefined);
    } finally {
      clearInterval(this.ticker);
      await this.engine?.close();
      await this.data.close(this.o.signal.aborted ? 'stopped' : 'finished').catch((e: unknown) => { this.o.reporter.note(toRunError(e).message); });
      this.o.reporter.end();
    }
  }
}
