import type { Desktop, DesktopEvent } from '../cluster/types.js';
import type { Action, ErrorKind, ImageContents } from '../domain/index.js';
import { StudioError, toRunError, cancelled } from '../domain/index.js';
import { deadline } from '../concurrency/deadline.js';
import { orUndefined } from '../concurrency/failures.js';
import type { AssetStore } from './assets.js';
import { noAssets } from './assets.js';
import type { TaskContext, TaskSettings } from './context.js';
import { sleep } from './context.js';
import type { Evaluators } from './bridge/evaluators.js';
import { hasProgress, judge, progressOf } from './judge.js';
import type { MetricRunner } from './metrics/job.js';
import { assetNeeds, engineNeeds, needsOf } from './needs.js';
import { runSteps } from './setup/index.js';
import { waitForAnyWindow } from './setup/windows.js';
import type { Task, TaskEngine } from './types.js';
import { VERDICT_MS, VerdictDesktop } from './verdict.js';

/**
 * Longest wait for the first window of a launched application, after the usual wait: a large one on a crowded machine.
 */
const FIRST_WINDOW_MS = 7000;

export interface TaskEngineOptions {
  /** Runs metrics. Without it nothing can be verified: enough for check() and set-up. */
  readonly metrics?: MetricRunner;
  /** OSWorld's own evaluators, for getters and metrics that are not ours; default none. */
  readonly evaluators?: Evaluators | undefined;
  /** Local files that tasks download; default none. */
  readonly assets?: AssetStore;
  /**
   * Contents of the desktops' image. Without them check() covers only types and assets: enough for set-up and verify.
   */
  readonly image?: ImageContents;
  readonly settings?: Partial<TaskSettings>;
  /** Longest wait for the desktop to become idle at the end of set-up, ms; 0 = do not wait. Default 3000. */
  readonly settleMs?: number;
  /** A whole verdict with what is ours of it, ms: longer is an error. Default half an hour. */
  readonly verdictMs?: number;
}

const DEFAULTS: Omit<TaskSettings, 'pythonStandIn'> = {
  clientPassword: 'password',
  sleepCapMs: 20_000,
  sleepMode: 'exact',
  commandMs: 120_000,
  waitMs: 30_000,
  sleep,
  now: () => performance.now(),
};

type Exit = Extract<DesktopEvent, { type: 'exit' }>;

/** Kept of one task between set-up and verify, by desktop. */
interface TaskMemory {
  readonly task: string;
  /** Output saved during set-up, until verify asks for it. */
  readonly files: Map<string, Buffer>;
  readonly state: TaskContext['stateOf'];
}

/** OSWorld's set-up and evaluate() on a desktop of ours (runtime/tasks/README.md#evaluate). */
export const createTaskEngine = (options: TaskEngineOptions = {}): TaskEngine => new OsworldTaskEngine(options);

class OsworldTaskEngine implements TaskEngine {
  readonly #o: TaskEngineOptions;
  readonly #assets: AssetStore;
  readonly #settings: TaskSettings;
  readonly #memories = new WeakMap<Desktop, TaskMemory>();

  constructor(o: TaskEngineOptions) {
    this.#o = o;
    this.#assets = o.assets ?? noAssets;
    this.#settings = { ...DEFAULTS, pythonStandIn: !o.image?.programs.includes('pyautogui'), ...o.settings };
  }

  check(task: Task): string[] {
    const { image } = this.#o;
    return image ? needsOf(task, this.#assets, image, this.#o.evaluators) : this.#needs(task).sort();
  }

  async setup(task: Task, desktop: Desktop, signal: AbortSignal): Promise<void> {
    this.#requireSupport(task);
    this.#memories.delete(desktop);
    const ctx = this.#context(task, desktop, signal),
      ended = new Map<number, Exit>(),
      { settleMs = 3000 } = this.#o;
    const stop = desktop.onEvent((e) => {
      if (e.type === 'exit') ended.set(e.pid, e);
    });
    try {
      await runSteps(ctx, task.config);
      if (task.config.length > 0 && settleMs !== 0) {
        const { settled } = await desktop.settle({ maxMs: settleMs });
        if (!settled && ctx.launched.size > 0) await waitForAnyWindow(ctx, FIRST_WINDOW_MS);
      }
      // A shell that cannot find or run its program says so only by its exit code. The exit may have happened inside the
      // desktop without being known here yet. Exits are reported in order, so that of a command run now comes after
      // those before it.
      if ([...ctx.launched].some(([pid, l]) => l.shell && !ended.has(pid))) await desktop.exec(['true'], { signal });
      for (const [pid, { what }] of ctx.launched) {
        const { code = null, signal: by = null } = ended.get(pid) ?? {};
        if (code === 126 || code === 127) throw new Error(`the launched command ${what} cannot be run in this desktop`);
        if (by !== null) throw new Error(`the launched command ${what} crashed (${by})`);
      }
    } catch (e) {
      throw fault(e, 'task.setup', `Set-up of ${task.id} failed`, signal);
    } finally {
      stop();
    }
  }

  async verify(
    task: Task,
    desktop: Desktop,
    lastAction: Action | undefined,
    signal: AbortSignal,
  ): ReturnType<TaskEngine['verify']> {
    this.#requireSupport(task);
    const { metrics, evaluators } = this.#o;
    if (!metrics) throw new Error('this task engine was made without workers for its metrics');
    return this.#judging(task, desktop, signal, (ctx) =>
      judge(task, ctx, lastAction, { metrics, evaluators }).catch((e: unknown) => {
        throw fault(e, 'task.verify', `The verifier of ${task.id} failed`, signal);
      }),
    );
  }

  async progress(task: Task, desktop: Desktop, signal: AbortSignal): Promise<number | undefined> {
    const { metrics, evaluators } = this.#o;
    if (!metrics || !hasProgress(task)) return undefined;
    return orUndefined(
      this.#judging(task, desktop, signal, (ctx) => progressOf(task, ctx, { metrics, evaluators })),
      'the verdict at the end says what is wrong',
    );
  }

  /** Runs `f` on the desktop while it is judged; its programs go on afterwards. */
  async #judging<T>(
    task: Task,
    desktop: Desktop,
    signal: AbortSignal,
    f: (ctx: TaskContext) => Promise<T>,
  ): Promise<T> {
    const verdict = new VerdictDesktop(desktop, this.#settings.now),
      { verdictMs = VERDICT_MS } = this.#o,
      time = deadline(verdictMs, signal),
      ctx = { ...this.#context(task, desktop, time.signal), verdict },
      late = (): boolean => time.signal.aborted && !signal.aborted;
    ctx.stateOf.clear(); // what set-up put into the desktop may no longer be what it was
    try {
      const found = await f(ctx);
      // A command that was ended with it says nothing about the policy.
      if (late()) throw tooLong(task.id, verdictMs);
      return found;
    } catch (e) {
      throw late() ? tooLong(task.id, verdictMs, e) : e;
    } finally {
      time.end();
      await orUndefined(verdict.live(), 'a desktop that is lost has no programs to go on');
    }
  }

  #context(task: Task, desktop: Desktop, signal: AbortSignal): TaskContext {
    let m = this.#memories.get(desktop);
    if (m?.task !== task.id) this.#memories.set(desktop, (m = { task: task.id, files: new Map(), state: new Map() }));
    return {
      desktop,
      task: task.id,
      signal,
      assets: this.#assets,
      cache: m.files,
      launched: new Map(),
      stateOf: m.state,
      settings: this.#settings,
    };
  }

  #needs(task: Task): string[] {
    return [...engineNeeds(task, this.#o.evaluators), ...assetNeeds(task, this.#assets)];
  }
  #requireSupport(task: Task): void {
    const needs = this.#needs(task);
    if (needs.length > 0)
      throw new StudioError(
        'task.unsupported',
        `The task ${task.id} needs ${needs.join(', ')}.`,
        'Leave it out, or supply what is missing (`dart-studio tasks check` lists it for a whole folder).',
        { details: { needs } },
      );
  }
}

const REMEDY: Readonly<Record<string, string>> = {
  'task.setup': 'Look at the step in the task file. If it is right, check that the desktop has the programs it uses.',
  'task.verify': 'The rollout has no reward. Look at the evaluator in the task file. If it is right, please report it.',
};

const tooLong = (task: string, ms: number, cause?: unknown): StudioError =>
  new StudioError(
    'task.verify',
    `The verifier of ${task} did not end within ${ms / 1000} s.`,
    'The rollout has no reward. Use fewer desktops at a time on this machine, or give it more CPU.',
    { cause, details: { cause: 'timeout' } },
  );

/**
 * A fault of set-up or verifier is an error of its kind; a lost desktop, a cancelled rollout and an unsupported task
 * stay what they are.
 */
function fault(e: unknown, kind: ErrorKind, what: string, signal: AbortSignal): StudioError {
  if (e instanceof StudioError && ['desktop.lost', 'cancelled', 'task.unsupported', kind].includes(e.kind)) return e;
  if (signal.aborted) return cancelled('The rollout', { cause: e });
  const inner = toRunError(e instanceof Error && e.cause instanceof StudioError ? e.cause : e);
  return new StudioError(kind, `${what}: ${e instanceof Error ? e.message : String(e)}`, REMEDY[kind] ?? '', {
    cause: e,
    details: { cause: inner.kind, ...(inner.details ?? {}) },
  });
}
