import { createHash, randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { desktopContents } from '../cluster/provide.js';
import type { RunFile } from '../config/index.js';
import { PngFrameStore } from '../data/store/frames.js';
import type { RunReader } from '../data/store/runStore.js';
import {
  StudioError,
  hash32,
  id,
  type FamilyId,
  type GroupId,
  type Provenance,
  type ProviderChoice,
  type RolloutId,
  type RunPath,
  type TaskId,
} from '../domain/index.js';
import { heldOutTryPrefix } from '../domain/probeNames.js';
import { orUndefined } from '../concurrency/failures.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { openPersonalDesktop, type PersonalDesktop, type PersonalDesktops } from '../human/personalDesktops.js';
import type { TryRolloutOptions } from '../human/tryRollout.js';
import type { TryParams } from '../protocol/try.js';
import { startActing, type ActingPolicy } from '../run/acting.js';
import { backendOf } from '../run/backends/index.js';
import { actorOfRun, fileActor, type Actor } from '../run/collect/policy.js';
import { episodeOf } from '../run/episodeOf.js';
import { openTasks, type Tasks } from '../tasks/open.js';
import type { Task, TaskEngine } from '../tasks/types.js';

/** The parts of the process in which a policy is tried. */
export interface TryHost {
  readonly entry: ProcessEntry;
  readonly own: PersonalDesktops;
  /** Reads a run, active or not. */
  readonly read: <T>(run: RunPath, f: (run: RunReader) => Promise<T>) => Promise<T>;
}
export interface TryRequest extends Omit<TryParams, 'base' | 'policy' | 'mode'> {
  /** The policy that acts, with these options over its own run file. */
  readonly actor: (over: RunFile) => Promise<Actor>;
  /** The run that its desktop is listed with. */
  readonly run: RunPath;
  /** Names the episode. */
  readonly name: string;
  /** Folder of files that are removed when it is over: weights, and screens that are not kept. */
  readonly dir: string;
  /** Folder of the screens. */
  readonly frames: string;
  readonly signal: AbortSignal;
  /** The step that the start is at, in words. */
  readonly onStarting?: (what: string) => void;
}
/** A policy, a desktop and a task, ready for one episode. */
export interface Trying {
  readonly actor: Actor;
  readonly own: PersonalDesktop;
  readonly rollout: Omit<TryRolloutOptions, 'onPhase'>;
  readonly seed: number;
  /** A verifier judges. */
  readonly verified: boolean;
  readonly heldOut: boolean;
  readonly image: string;
  readonly notes: readonly string[];
  /** Desktop and policy end. Idempotent. */
  close(): Promise<void>;
}

/** Family of what somebody asks for in their own words, on an empty desktop. */
const IN_WORDS = id<FamilyId>('try/instruction');
/** Characters of an instruction. */
export const MOST_INSTRUCTION = 4000;

/** The policy that a request names. */
export const actorFor =
  (host: TryHost, policy: TryParams['policy']) =>
  (over: RunFile): Promise<Actor> =>
    'file' in policy
      ? fileActor(resolve(policy.file), { over })
      : host.read(policy.run, (run) => actorOfRun(run, { version: policy.version, over }));

/**
 * Starts policy and desktop. Rejects with `params.invalid`, `not.found` or `config.invalid` for what cannot be tried,
 * `trainer.invalid` for a checkpoint that cannot be used, `desktop.*`, `policy.remote`, `cancelled`; leaves nothing then.
 */
export async function prepareTry(host: TryHost, p: TryRequest): Promise<Trying> {
  const actor = await p.actor(overridesOf(p)),
    { config } = actor;
  p.signal.throwIfAborted();
  const chosen = await chooseTask(host, p, actor),
    notes = await notesOf(actor, chosen),
    frames = new PngFrameStore(p.frames, { files: true }),
    { acting, own } = await startBoth(host, p, actor, frames),
    { policy } = acting;
  let closing: Promise<void> | undefined;
  const { task, engine, provenance } = chosen,
    cap = p.maxSteps ?? task.maxSteps ?? config.rollout.maxSteps,
    rollout = id<RolloutId>(`${chosen.heldOut ? heldOutTryPrefix : 'try/'}${task.id}/${p.name}`);
  return {
    ...chosen,
    actor,
    own,
    notes,
    image: config.desktops.image,
    rollout: {
      lease: own.lease,
      settle: own.settle,
      episode: { ...episodeOf(config, { policy, frames }, { engine }), mustRest: false },
      request: {
        task,
        provenance,
        order: {
          rollout,
          group: id<GroupId>(`try/${p.name}`),
          family: task.family,
          task: task.id,
          seed: chosen.seed,
          cap,
          groupSize: 1,
        },
        sampling: {
          greedy: p.sampled !== true,
          temperature: config.policy.temperature,
          seed: hash32(`${config.seed}/${rollout}`),
        },
      },
    },
    close: () => {
      own.registry.end(own.desktop.id);
      return (closing ??= Promise.all([own.close(), acting.close()]).then(() => undefined));
    },
  };
}

/** Both, or neither. */
async function startBoth(
  host: TryHost,
  p: TryRequest,
  { config, checkpoint }: Actor,
  frames: PngFrameStore,
): Promise<{ readonly acting: ActingPolicy; readonly own: PersonalDesktop }> {
  const stop = new AbortController(),
    signal = AbortSignal.any([p.signal, stop.signal]);
  p.onStarting?.('Starting the policy and a desktop.');
  const starts = [
    startActing({ temporary: true, config, dir: p.dir, run: p.name, entry: host.entry, frames, signal, checkpoint }),
    openPersonalDesktop(host.own, { config, run: p.run, label: 'try', signal }),
  ] as const;
  for (const s of starts)
    s.catch(() => {
      stop.abort();
    });
  const [acting, desktop] = await Promise.allSettled(starts);
  if (acting.status === 'fulfilled' && desktop.status === 'fulfilled')
    return { acting: acting.value, own: desktop.value };
  await Promise.all([acting, desktop].flatMap((s) => (s.status === 'fulfilled' ? [s.value.close()] : [])));
  throw firstCause([acting, desktop]);
}
/** The error of the start that failed first: the other one was cancelled because of it. */
function firstCause(starts: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons = starts.flatMap((s): unknown[] => (s.status === 'rejected' ? [s.reason] : []));
  return reasons.find((e) => !(e instanceof StudioError && e.kind === 'cancelled')) ?? reasons[0];
}

const overridesOf = (p: TryRequest): RunFile => ({
  desktops: {
    count: 1,
    ...(p.provider === undefined ? {} : { provider: p.provider satisfies ProviderChoice }),
    // The layer was meant for the image of the run.
    ...(p.image === undefined ? {} : { image: p.image, imageExtra: '' }),
  },
});

interface Chosen {
  readonly task: Task;
  readonly engine: TaskEngine;
  readonly provenance: Provenance;
  readonly seed: number;
  readonly verified: boolean;
  readonly heldOut: boolean;
  /** The policy's tasks, where they can be read here. */
  readonly tasks: Tasks | undefined;
}
async function chooseTask(host: TryHost, p: TryRequest, { config, name }: Actor): Promise<Chosen> {
  const words = p.instruction?.trim() ?? '',
    from = `a try of ${name}`;
  if (p.family === undefined && words === '')
    throw new StudioError(
      'config.invalid',
      'There is no instruction: the policy has nothing to do.',
      'Enter an instruction, or choose a task, which has its own.',
    );
  const opening = desktopContents(config.desktops).then((image) => openTasks(config, image, host.entry));
  if (p.family === undefined)
    return {
      task: inWords(words),
      engine: unjudged(),
      provenance: { kind: 'imported', from },
      seed: 0,
      verified: false,
      heldOut: false,
      tasks: await orUndefined(opening, 'its tasks are not here; they would only be compared with'),
    };
  const tasks = await opening,
    family = familyOf(tasks, p.family),
    seeds = tasks.demoSeeds.length > 0 ? tasks.demoSeeds : [0],
    seed = p.seed ?? seeds[randomInt(seeds.length)]!,
    task = tasks.source.task(family.id, seed),
    own = words === '' || words === task.instruction,
    heldOut = family.split === 'heldout' || !seeds.includes(seed);
  return {
    // The task's own set-up; who asks for something else is not told whether that was done.
    task: own ? task : { ...task, instruction: words },
    engine: own ? tasks.engine : unjudged(task, tasks.engine),
    provenance: heldOut ? { kind: 'probe' } : { kind: 'imported', from },
    seed,
    verified: own,
    heldOut,
    tasks,
  };
}
function familyOf(tasks: Tasks, name: string): Tasks['source']['families'][number] {
  const f = [name, `desk/${name}`, `miniwob/${name}`]
    .map((n) => tasks.source.families.find((x) => x.id === n))
    .find((x) => x !== undefined);
  if (f) return f;
  throw new StudioError(
    'config.invalid',
    `There is no task family ${name} among the tasks of this policy.`,
    'Choose one from the list of tasks.',
  );
}
const inWords = (instruction: string): Task => ({
  id: id<TaskId>(`${IN_WORDS}#${createHash('sha256').update(instruction).digest('hex').slice(0, 8)}`),
  family: IN_WORDS,
  instruction,
  config: [],
  evaluator: { func: [] },
  relatedApps: [],
  infeasible: false,
});
/** Set up like `task`, or not at all; no verifier looks, and what is given here as its verdict is not shown or kept. */
const unjudged = (task?: Task, engine?: TaskEngine): TaskEngine => ({
  check: () => [],
  setup: async (_, desktop, signal) => {
    if (task && engine) await engine.setup(task, desktop, signal);
  },
  verify: () => Promise.resolve({ kind: 'failure', reward: 0, truncated: false }),
});

async function notesOf({ config, checkpoint }: Actor, { task, tasks, verified }: Chosen): Promise<readonly string[]> {
  const { instructionNotes } = backendOf(config.policy.kind);
  if (!instructionNotes || !checkpoint || verified) return [];
  return instructionNotes(checkpoint.dir, tasks, task.instruction);
}
