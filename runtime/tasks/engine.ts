import type { Desktop } from '../cluster/types.js';
import type { Action, ErrorKind, ImageContents } from '../domain/index.js';
import { StudioError, toRunError } from '../domain/index.js';
import type { AssetStore } from './assets.js';
import { noAssets } from './assets.js';
import type { TaskContext, TaskSettings } from './context.js';
import { sleep } from './context.js';
import { judge } from './judge.js';
import type { MetricRunner } from './metrics/job.js';
import { assetNeeds, engineNeeds, needsOf } from './needs.js';
import { runSteps } from './setup/index.js';
import type { Task, TaskEngine } from './types.js';

export interface TaskEngineOptions {
  /** Where metrics run. Without it nothing can be verified: enough for check() and set-up. */
  readonly metrics?: MetricRunner;
  /** Local files that tasks download; default none. */
  readonly assets?: AssetStore;
  /** What the desktops' image offers. Without it check() looks at types and assets alone: enough for set-up and verify. */
  readonly image?: ImageContents;
  readonly settings?: Partial<TaskSettings>;
  /** Leave the desktop idle at the end of set-up, waiting at most so long, ms; 0 = do not wait. */
  readonly settleMs?: number;
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

/** OSWorld's set-up and evaluate() on a desktop of ours (runtime/tasks/README.md#evaluate). */
export function createTaskEngine(options: TaskEngineOptions = {}): TaskEngine {
  const assets = options.assets ?? noAssets,
    { image } = options,
    settings: TaskSettings = {
      ...DEFAULTS,
      pythonStandIn: !image?.programs.includes('pyautogui'),
      ...options.settings,
    };
  /** Output saved during set-up, until verify asks for it. */
  const caches = new WeakMap<Desktop, { task: string; files: Map<string, Buffer>; state: TaskContext['stateOf'] }>();
  const context = (task: Task, desktop: Desktop, signal: AbortSignal): TaskContext => {
    let c = caches.get(desktop);
    if (c?.task !== task.id) caches.set(desktop, (c = { task: task.id, files: new Map(), state: new Map() }));
    return { desktop, task: task.id, signal, assets, cache: c.files, launched: new Map(), stateOf: c.state, settings };
  };
  const supported = (task: Task): void => {
    const needs = [...engineNeeds(task), ...assetNeeds(task, assets)];
    if (needs.length > 0) {
      throw new StudioError(
        'task.unsupported',
        `The task ${task.id} needs ${needs.join(', ')}.`,
        'Leave it out, or supply what is missing (`dart-studio tasks check` lists it for a whole folder).',
        { details: { needs } },
      );
    }
  };
  return {
    check: (task) =>
      image ? needsOf(task, assets, image) : [...engineNeeds(task), ...assetNeeds(task, assets)].sort(),
    setup: async (task, desktop, signal) => {
      supported(task);
      caches.delete(desktop);
      const ctx = context(task, desktop, signal),
        ended = new Map<number, number | null>();
      const stop = desktop.onEvent((e) => {
        if (e.type === 'exit') ended.set(e.pid, e.code);
      });
      try {
        await runSteps(ctx, task.config);
        if (task.config.length > 0 && options.settleMs !== 0) await desktop.settle({ maxMs: options.settleMs ?? 3000 });
        // A shell that cannot find or run its program says so only by its exit code. Its end may be known inside the
        // desktop and not yet here: ends are told in the order they came, so that of a command run now brings with it
        // those before.
        if ([...ctx.launched].some(([pid, l]) => l.shell && !ended.has(pid))) await desktop.exec(['true'], { signal });
        for (const [pid, { what }] of ctx.launched)
          if ([126, 127].includes(ended.get(pid) ?? 0))
            throw new Error(`the launched command ${what} cannot be run in this desktop`);
      } catch (e) {
        throw fault(e, 'task.setup', `Set-up of ${task.id} failed`, signal);
      } finally {
        stop();
      }
    },
    verify: async (task, desktop, lastAction: Action | undefined, signal) => {
      supported(task);
      if (!options.metrics) throw new Error('this task engine was made without workers for its metrics');
      try {
        return await judge(task, context(task, desktop, signal), lastAction, options.metrics);
      } catch (e) {
        throw fault(e, 'task.verify', `The verifier of ${task.id} failed`, signal);
      }
    },
  };
}

const REMEDY: Readonly<Record<string, string>> = {
  'task.setup': 'Look at the step in the task file; if it is right, see whether the desktop has the programs it uses.',
  'task.verify': 'The rollout has no reward. Look at the evaluator in the task file; if it is right, please report it.',
};

/**
 * A fault of set-up or verifier is an error of its kind; a lost desktop, a cancelled rollout and an unsupported task
 * stay what they are.
 */
function fault(e: unknown, kind: ErrorKind, what: string, signal: AbortSignal): StudioError {
  if (e instanceof StudioError && ['desktop.lost', 'cancelled', 'task.unsupported', kind].includes(e.kind)) return e;
  if (signal.aborted)
    return new StudioError('cancelled', 'The rollout was cancelled.', 'Start it again when you want it.', { cause: e });
  const inner = toRunError(e instanceof Error && e.cause instanceof StudioError ? e.cause : e);
  return new StudioError(kind, `${what}: ${e instanceof Error ? e.message : String(e)}`, REMEDY[kind] ?? '', {
    cause: e,
    details: { cause: inner.kind, ...(inner.details ?? {}) },
  });
}
