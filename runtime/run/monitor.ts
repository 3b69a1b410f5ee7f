import { traitsOf, type RunConfig } from '../config/index.js';
import type { DataManager } from '../data/dataManager.js';
import type { NoteEvent } from '../data/events.js';
import type { LedgerCounts } from '../data/types.js';
import { type RunStatus as WireStatus } from '../domain/index.js';
import type { Clock } from '../rollout/clock.js';
import type { ModelPoolStatus } from '../rollout/types.js';
import type { Scheduler } from '../rollout/scheduler.js';
import { bounds } from './bounds.js';
import type { RunBudget } from './budget.js';
import type { Engine } from './engine.js';
import { SpanRecorder } from './spanRecorder.js';
import type { RunProgress } from './reporter.js';
import { Meters } from './meters.js';
import type { RunLog } from './runLog.js';
import type { RunState } from './runState.js';

export interface RunMonitorDeps {
  readonly config: RunConfig;
  readonly data: DataManager;
  readonly clock: Clock;
  readonly budget: RunBudget;
  readonly state: RunState;
  readonly log: RunLog;
}

/** Interval at which the time used is journalled: a crash loses no more than this. */
const TIME_MS = 2000;
const NO_REPLICAS: ModelPoolStatus = { replicas: [], concurrency: 1, waiting: 0, version: 0, publishing: false };

/** Watches the parts of a run and reports on it: a progress line, the dashboard's status, metrics in the journal. */
export class RunMonitor {
  readonly spans: SpanRecorder;
  readonly #d: RunMonitorDeps;
  #meters: Meters;
  /** When reinforcement learning was over, and the replicas at that time. */
  #ended: { readonly at: number; readonly models: ModelPoolStatus | undefined } | undefined;
  #engine: Engine | undefined;
  #scheduler: Scheduler | undefined;
  #notedMs = 0;
  #began = false;

  constructor(d: RunMonitorDeps) {
    this.#d = d;
    this.#meters = new Meters(d.clock.now());
    this.spans = new SpanRecorder((e) => this.#note(e));
  }

  get meters(): Meters {
    return this.#meters;
  }
  /** Reinforcement learning begins: rates and shares start again from here. */
  restart(): void {
    const now = this.#d.clock.now();
    this.#began = true;
    this.#note({ type: 'training.began' });
    this.#meters = new Meters(now, this.#engine?.replicas?.status());
    if (this.#d.budget.paused) this.#meters.pause(now);
  }
  /** Freezes rates and shares: reinforcement learning is over. */
  end(): void {
    if (this.#ended) return;
    this.#ended = { at: this.#d.clock.now(), models: this.#engine?.replicas?.status() };
    if (this.#began) this.#note({ type: 'training.ended' });
  }
  pause(): void {
    if (!this.#ended) this.#meters.pause(this.#d.clock.now());
  }
  resume(): void {
    if (!this.#ended) this.#meters.resume(this.#d.clock.now());
  }

  watch(engine: Engine, scheduler: Scheduler): void {
    this.#engine = engine;
    this.#scheduler = scheduler;
    scheduler.onEvent((e) => {
      if (!this.#ended) this.#meters.onScheduler(e);
      this.spans.onScheduler(e);
    });
    engine.pool.onEvent((e) => {
      this.spans.onPool(e);
      if (!this.#ended) this.#meters.onPool(e);
    });
    engine.replicas?.onEvent((e) => {
      this.spans.onModels(e);
    });
  }

  /** The time that figures are of. */
  get #now(): number {
    return this.#ended?.at ?? this.#d.clock.now();
  }

  status(): RunProgress {
    const { config, data, budget, state } = this.#d,
      now = this.#now,
      m = this.#meters,
      models = this.#engine?.replicas?.status(),
      use = m.utilisation(now, config.desktops.count, (this.#ended ?? { models }).models ?? NO_REPLICAS),
      { ledger, ready } = data.counts();
    return {
      phase: state.phase,
      elapsedMs: budget.elapsedMs,
      version: state.version,
      rollouts: ledger.begun,
      ...m.rates(now),
      trainedActionsPerMinute: m.trainedActions / m.minutesRun(now),
      success: m.success.mean,
      curve: m.curve,
      desktopUtilisation: use.desktops,
      replicaUtilisation: use.replicas,
      trainerUtilisation: use.trainer,
      replicaVersions: models?.replicas.map((x) => x.version) ?? [],
      running: this.#scheduler?.status().running.length ?? 0,
      waitingGroups: ready,
      errors: ledger.retired.error ?? 0,
      newestError: m.newestError,
      detail: state.trouble ?? state.detail,
    };
  }

  /**
   * The status that a dashboard shows, with the bound X* (runtime/rollout/README.md#throughput-bound) once it is known.
   */
  wireStatus(stopping: boolean): WireStatus {
    const { success, ...s } = this.status(),
      { config, data, budget } = this.#d;
    const x = bounds(
      this.#meters.measured(
        {
          desktops: config.desktops.count,
          replicas: traitsOf(config.policy.kind).processes ? config.policy.replicas : 0,
          share: survivingShare(data.counts().ledger),
        },
        this.#now,
      ),
    );
    return {
      ...s,
      state: stopping || s.phase === 'stopping' ? 'stopping' : budget.paused ? 'paused' : 'running',
      success: Number.isFinite(success) ? success : undefined,
      budgetMs: budget.limitMs,
      limits: budget.limits,
      bounds: x,
    };
  }

  /** Journals the time used, every `TIME_MS` of it. */
  noteTime(): void {
    const { elapsedMs } = this.#d.budget;
    if (elapsedMs - this.#notedMs < TIME_MS) return;
    this.#notedMs = elapsedMs;
    this.#note({ type: 'run.time', elapsedMs });
  }
  #note(e: NoteEvent): void {
    this.#d.log.mustSucceed(this.#d.data.note(e));
  }

  /** Journals the same as metrics. */
  async noteProgress(version: number): Promise<void> {
    if (this.#d.config.curation.hindsight.enabled) await this.#noteHindsight(version);
    const s = this.wireStatus(false),
      x = s.bounds;
    await this.#d.data.note({
      type: 'metrics',
      source: 'run',
      version,
      values: {
        elapsedMs: this.#d.budget.elapsedMs,
        // A resumed part without any step has measured nothing: keep the figures of the part before it.
        ...(this.#meters.steps === 0
          ? {}
          : {
              success: s.success ?? 0,
              rolloutsPerHour: s.rolloutsPerHour,
              stepsPerMinute: s.stepsPerMinute,
              trainedActionsPerMinute: s.trainedActionsPerMinute,
              desktopUtilisation: s.desktopUtilisation,
              replicaUtilisation: s.replicaUtilisation,
              trainerUtilisation: s.trainerUtilisation,
              errors: s.errors,
            }),
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

  /** Journals what hindsight has brought and cost so far. */
  #noteHindsight(version: number): Promise<void> {
    const { data } = this.#d,
      values = data.counts().hindsight,
      msPerFailure = values.ms / Math.max(1, values.failures);
    return data.note({ type: 'metrics', source: 'hindsight', version, values: { ...values, msPerFailure } });
  }
}

/** alpha: share of judged rollouts that curation let through; undefined before any was judged. */
function survivingShare({ trained, byState, retired }: LedgerCounts): number | undefined {
  const survived = trained + byState.grouped + byState.claimed,
    judged =
      survived +
      (['no-variance', 'replaced', 'trimmed', 'masked', 'stale'] as const).reduce((n, r) => n + (retired[r] ?? 0), 0);
  return judged === 0 ? undefined : survived / judged;
}
