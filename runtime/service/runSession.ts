import { dirname, join, resolve } from 'node:path';
import { id, toRunError, type RunError, type RunId } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { parseRunText, type RunConfig, type RunFile } from '../config/index.js';
import { mustBeTrainable } from '../config/trained.js';
import type { DataManager } from '../data/dataManager.js';
import type { DataStats } from '../data/dataStats.js';
import type { RunStore } from '../data/store/runStore.js';
import type { Notifications } from '../protocol/notifications.js';
import type { StartParams } from '../protocol/methods.js';
import type { RunPath, RunState, RunStatus } from '../protocol/types.js';
import type { DesktopRegistry } from '../rollout/desktopRegistry.js';
import type { SessionProgress } from './activeRuns.js';
import { locate } from '../run/locate.js';
import { newRunId, startedWith } from '../run/runFolders.js';
import type { HeldRollout } from '../run/runAccess.js';
import type { Alert } from '../run/watchdog.js';
import { annotatedRollouts } from '../queries/annotated.js';
import type { Reporter } from '../run/reporter.js';
import { openRun, type TrainingRun, type TrainResult } from '../run/trainRun.js';

export interface SessionPlan {
  readonly config: RunConfig;
  readonly dir: RunPath;
  readonly run: RunId;
  readonly resume: boolean;
  /** Its minutes replace the limits of its run file. */
  readonly alone?: boolean;
  /** Notes on its run file, e.g. an option by its old name. */
  readonly notes?: readonly string[];
  /** Hears of it too, as the log of `train`. */
  readonly reporter?: Reporter;
}
export interface SessionEvents {
  /** Once a second. */
  status(s: RunStatus): void;
  state(s: RunState): void;
  note(text: string): void;
  alert(a: Alert): void;
}

/** An alert as windows hear of it. */
export const alertOf = (plan: SessionPlan, a: Alert): Notifications['run/alert'] => ({
  run: plan.dir,
  id: plan.run,
  name: plan.config.name,
  at: Date.now(),
  ...a,
});

/** A new run, as `train [run.json]` would make it. Throws `config.invalid`. */
export function planStart(p: StartParams): SessionPlan {
  // Without an override its section must be absent: an empty one would hide a section of the wrong type in the file.
  const over: RunFile = {
    seed: p.seed,
    ...(p.minutes === undefined ? {} : { budget: { minutes: p.minutes } }),
    ...(p.provider || p.desktops ? { desktops: { provider: p.provider, count: p.desktops } } : {}),
  };
  const preset = p.preset ?? (p.text === undefined ? 'quickstart' : undefined);
  const notes: string[] = [];
  const config = parseRunText(p.text ?? '{}', p.file ?? 'the run file', { preset, ...over }, (note) => {
      notes.push(note);
    }),
    store = resolve(p.base, config.store.dir);
  mustBeTrainable(config);
  const run = id<RunId>(newRunId(store, config.name, config.seed, new Date()));
  const beside = [...(p.file === undefined ? [] : [dirname(resolve(p.base, p.file))]), p.base],
    located = locate(config, beside, store);
  return { config: located, run, dir: join(store, run), resume: false, notes };
}

/**
 * The rest of a run that is over; `minutes` is its whole budget, what it has used included. `alone`: the other limits of
 * its run file no longer hold.
 */
export async function planResume(dir: RunPath, minutes?: number, alone = false): Promise<SessionPlan> {
  const started = await startedWith(dir, minutes === undefined ? {} : { budget: { minutes } }),
    { config } = started;
  return { ...started, config: alone ? { ...config, budget: { minutes } } : config, dir, resume: true, alone };
}

/** One training run under way in this process, with handles to drive and watch it. */
export class RunSession {
  readonly plan: SessionPlan;
  readonly #training: TrainingRun;
  readonly #stop: AbortController;
  readonly #now: AbortController;
  readonly #events: SessionEvents;
  /** Resolves, never rejects, when desktops and processes are gone and the folder is let go of. */
  readonly ended: Promise<
    | { readonly error?: undefined; readonly result: TrainResult }
    | { readonly error: RunError; readonly result?: undefined }
  >;

  /**
   * Resolves when the folder exists and the run is under way; desktops may still be starting. Rejects with `run.busy`,
   * `config.invalid`, `store.io` ...
   */
  static async start(plan: SessionPlan, o: { readonly entry: ProcessEntry } & SessionEvents): Promise<RunSession> {
    const stop = new AbortController(),
      now = new AbortController();
    const too = plan.reporter;
    const reporter: Reporter = {
      status: (s) => {
        too?.status(s);
        o.status(session.status());
      },
      note: (t, data) => {
        too?.note(t, data);
        o.note(t);
      },
      alert: (a) => {
        o.alert(a);
      },
      end: () => too?.end(),
    };
    const training = await openRun({
      ...plan,
      entry: o.entry,
      reporter,
      signal: stop.signal,
      now: now.signal,
      annotated: () => annotatedRollouts(plan.dir),
    });
    const session = new RunSession(plan, training, stop, now, o);
    for (const note of plan.notes ?? []) o.note(note);
    return session;
  }

  private constructor(
    plan: SessionPlan,
    training: TrainingRun,
    stop: AbortController,
    now: AbortController,
    events: SessionEvents,
  ) {
    this.plan = plan;
    this.#training = training;
    this.#stop = stop;
    this.#now = now;
    this.#events = events;
    this.ended = training.run().then(
      (result) => ({ result }),
      (e: unknown) => ({ error: toRunError(e) }),
    );
  }

  get run(): RunPath {
    return this.plan.dir;
  }
  get data(): DataManager {
    return this.#training.data;
  }
  get store(): RunStore {
    return this.data.store;
  }
  get desktops(): DesktopRegistry {
    return this.#training.desktops;
  }
  stats(): DataStats {
    return this.#training.data.stats();
  }
  status(): RunStatus {
    return this.#training.wireStatus();
  }
  /** How far it has come, to tell a run that works from one that ends its daemon. */
  progress(): SessionProgress {
    return {
      recorded: this.data.recorded,
      version: this.status().version,
      evaluations: this.#training.evaluations,
    };
  }

  /** The rollout on one of its desktops, for a person to steer. */
  steer(desktop: string): HeldRollout | undefined {
    return this.#training.steer(desktop);
  }

  pause(): void {
    this.#training.pause();
    this.#events.state(this.status().state);
  }
  unpause(): void {
    this.#training.unpause();
    this.#events.state(this.status().state);
  }

  /** Rollouts under way get a short grace, or none with `now`; a second call may hurry a first one. */
  async stop(now: boolean): Promise<void> {
    const first = !this.#stop.signal.aborted;
    this.#stop.abort();
    if (now) this.#now.abort();
    if (first) this.#events.state('stopping');
    await this.ended;
  }
}
