import {
  StudioError,
  id,
  isTerminal,
  type GroupId,
  type RolloutId,
  type Step,
  type TaskId,
  type Trajectory,
  type FamilyId,
  type ProviderChoice,
  type AnnotationView,
  type StepView,
  messageOf,
  waitMsOf,
  internalError,
} from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import type { RunConfig } from '../config/index.js';
import type { FrameStore, RolloutOrder } from '../data/types.js';
import { systemClock } from '../rollout/clock.js';
import type { EpisodeDeps } from '../rollout/types.js';
import { runEpisode } from '../rollout/episode.js';
import type { Task } from '../tasks/types.js';
import { desktopContents } from '../cluster/provide.js';
import { openTasks, type Tasks } from '../tasks/open.js';
import { openPersonalDesktop, type PersonalDesktop, type PersonalDesktops } from './personalDesktops.js';

export interface ReplayRequest {
  /** The revision to act out. */
  readonly view: Pick<AnnotationView, 'run' | 'rollout' | 'revision' | 'trajectory'>;
  readonly config: RunConfig;
  readonly provider?: ProviderChoice | undefined;
  readonly frames: FrameStore;
  /** The bundle whose workers judge. */
  readonly entry: ProcessEntry;
  /** Id of the new trajectory. */
  readonly id: RolloutId;
  readonly signal: AbortSignal;
  readonly onProgress: (p: { readonly step: number; readonly of: number; readonly desktop?: string }) => void;
}

/**
 * Acts a revision out on a fresh desktop of its own, with a true screen before every step, and has it verified.
 * Whatever goes wrong with the desktop is an error outcome. Rejects, with nothing done, when it cannot be replayed at
 * all, no desktop can be had, or it was cancelled.
 */
export async function replay(desktops: PersonalDesktops, r: ReplayRequest): Promise<Trajectory> {
  const steps = script(r.view.trajectory.steps),
    screen = screenOf(r.view),
    config: RunConfig = { ...r.config, desktops: { ...r.config.desktops, screen } };
  const tasks = await openTasks(config, await desktopContents(config.desktops), r.entry),
    task = taskOf(tasks, r.view);
  r.onProgress({ step: 0, of: steps.length });
  const own = await openPersonalDesktop(desktops, {
    config,
    run: r.view.run,
    provider: r.provider,
    label: 'replay',
    signal: r.signal,
  });
  try {
    const trajectory = await actOut(own, r, { steps, config, engine: tasks.engine, task });
    if (r.signal.aborted)
      throw new StudioError('cancelled', 'The replay was stopped.', 'Nothing was recorded. You can start it again.');
    if (!asksForTheSame(r.view.trajectory.row.instruction, task, trajectory)) throw changed(task.id);
    return {
      ...trajectory,
      cap: Math.max(r.view.trajectory.row.cap, steps.length),
      // No policy acted: the steps keep their origin, and have no version.
      steps: trajectory.steps.map(({ version: _v, ...s }, i): Step => ({ ...s, origin: steps[i]!.origin })),
    };
  } finally {
    await own.close();
  }
}

interface Script {
  readonly steps: ReturnType<typeof script>;
  readonly config: RunConfig;
  readonly engine: Tasks['engine'];
  readonly task: Task;
}

/** The episode; whatever goes wrong with it is its outcome. */
async function actOut(
  own: PersonalDesktop,
  r: ReplayRequest,
  { steps, config, engine, task }: Script,
): Promise<Trajectory> {
  const desktop = own.desktop.id,
    order: RolloutOrder = {
      rollout: r.id,
      group: id<GroupId>(''),
      family: task.family,
      task: task.id,
      seed: 0,
      cap: steps.length,
      groupSize: 1,
    };
  own.registry.begin(desktop, {
    rollout: r.id,
    task: task.id,
    instruction: task.instruction,
    cap: steps.length,
    version: 0,
    since: Date.now(),
  });
  const { trajectory } = await runEpisode(
    {
      policy: scripted(steps),
      tasks: engine,
      frames: r.frames,
      clock: systemClock,
      settle: own.settle,
      timeoutMs: replayLimitMs(steps, config),
    },
    own.lease,
    {
      order,
      task,
      provenance: { kind: 'human', of: `${r.view.rollout}@${r.view.revision}` },
      sampling: { greedy: true, temperature: 1, seed: 0 },
      signal: r.signal,
      onStep: (s) => {
        own.registry.progress(desktop, s.index + 1);
        r.onProgress({ step: s.index + 1, of: steps.length, desktop });
      },
      onPhase: (phase) => {
        own.registry.phase(desktop, phase === 'perform' ? 'act' : phase);
        if (phase === 'setup') r.onProgress({ step: 0, of: steps.length, desktop });
      },
    },
  );
  return trajectory;
}

/** Time for the screen before a step, its input and their delays; waiting for rest comes on top. */
const STEP_MS = 2000;
/** `rollout.taskTimeoutS` is for a policy, and a person took the time that they took: what they did comes on top. */
export const replayLimitMs = (steps: readonly Pick<StepView, 'actions'>[], { rollout, desktops }: RunConfig): number =>
  steps
    .flatMap((s) => s.actions)
    .reduce((ms, a) => ms + STEP_MS + desktops.settleMaxMs + waitMsOf(a), rollout.taskTimeoutS * 1000);

/** The steps to act out: those that did something, up to the first that ends it. Where none ends it, an end is added. */
export function script(steps: readonly StepView[]): Pick<StepView, 'actions' | 'thought' | 'origin'>[] {
  const acting = steps.filter((s) => s.actions.length > 0),
    end = acting.findIndex((s) => s.actions.some(isTerminal));
  if (end >= 0) return acting.slice(0, end + 1);
  // A person decided that it ends here.
  return [...acting, { actions: [{ type: 'finished' }], origin: 'human' }];
}

/** The recording's own, whatever the run's desktops are like now. */
function screenOf(v: ReplayRequest['view']): { width: number; height: number } {
  const [first] = v.trajectory.steps;
  if (!first) throw new StudioError('config.invalid', `${v.rollout} has no steps to replay.`, 'Restore some of them.');
  const { width, height } = first.frame;
  if (v.trajectory.steps.some((s) => s.frame.width !== width || s.frame.height !== height))
    throw new StudioError(
      'config.invalid',
      `${v.rollout} was recorded on screens of different sizes.`,
      'It cannot be replayed on one desktop.',
    );
  return { width, height };
}

function taskOf(tasks: Tasks, v: ReplayRequest['view']): Task {
  const { row } = v.trajectory;
  let task: Task;
  try {
    task = tasks.source.byId(id<TaskId>(row.task));
  } catch (e) {
    throw new StudioError(
      'task.unsupported',
      `The task ${row.task} cannot be set up again: ${e instanceof StudioError ? e.error.message : messageOf(e)}`,
      "Only tasks of the run's own source can be replayed: give the run the folder of the task files (tasks.dir).",
      { cause: e },
    );
  }
  // Some tasks get their instruction only during set-up (`asksForTheSame`).
  const known = tasks.engine.instruction === undefined;
  if (
    task.family !== id<FamilyId>(row.family) ||
    (known && row.instruction !== '' && task.instruction !== row.instruction)
  )
    throw changed(row.task);
  const needs = tasks.engine.check(task);
  if (needs.length > 0)
    throw new StudioError(
      'task.unsupported',
      `The task ${row.task} cannot be set up here: it needs ${needs.join(', ')}.`,
      '`dart-studio tasks check DIR` says what each task needs.',
    );
  return task;
}

const changed = (task: string): StudioError =>
  new StudioError(
    'task.unsupported',
    `The task ${task} has changed since this was recorded.`,
    'Restore the version of the task that it was recorded with.',
  );
/** Whether the task that was acted out asked for what was recorded; one that was never set up said nothing. */
export function asksForTheSame(
  recorded: string,
  task: Pick<Task, 'instruction'>,
  { instruction, outcome }: Pick<Trajectory, 'instruction' | 'outcome'>,
): boolean {
  return outcome.kind === 'error' || ['', task.instruction, instruction].includes(recorded);
}

/** A policy that says what was recorded, one step after another. */
function scripted(steps: readonly Pick<StepView, 'actions' | 'thought'>[]): EpisodeDeps['policy'] {
  return {
    open: () => {
      let next = 0;
      return {
        decide: () => {
          const s = steps[next++];
          if (!s) return Promise.reject(internalError('The replay has no further step.'));
          return Promise.resolve({
            actions: s.actions,
            thought: s.thought,
            version: 0,
            queueMs: 0,
            computeMs: 0,
          });
        },
        acted: () => undefined,
        close: () => undefined,
      };
    },
  };
}
