import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { DesktopPool, Lease } from '../cluster/types.js';
import type { FrameStore } from '../data/types.js';
import {
  StudioError,
  id,
  isEncoded,
  isTerminal,
  type FrameRef,
  type GroupId,
  type RolloutId,
  type Screenshot,
  type Trajectory,
  cancelled,
} from '../domain/index.js';
import { deferred, type Deferred } from '../concurrency/deferred.js';
import { ignoreFailure } from '../concurrency/failures.js';
import { checkPerformable } from '../domain/performable.js';
import { NO_EPISODE, type Environment, type Observed } from '../gateway/openenv/types.js';
import { parseActions } from '../policy/actions/uiTars.js';
import type { Decision, Policy, PolicySession } from '../policy/types.js';
import { abortable } from '../rollout/clock.js';
import { runEpisode } from '../rollout/episode.js';
import type { EpisodeDeps, EpisodeResult } from '../rollout/types.js';
import type { Task } from '../tasks/types.js';

/** A client's request to reset. Further fields are ignored, as OpenEnv's servers do. */
const resetRequest = z.object({
  seed: z.int().min(0).nullish(),
  episode_id: z.string().max(255).nullish(),
  task: z.string().max(255).nullish(),
  family: z.string().max(255).nullish(),
  picture: z.boolean().nullish(),
});
export type ResetRequest = z.infer<typeof resetRequest>;
const stepRequest = z.object({ action: z.string().max(32_768) });

/** A task, and what it is drawn from. */
export interface ChosenTask {
  readonly task: Task;
  readonly seed: number;
}
export interface EnvironmentParts {
  readonly pool: Pick<DesktopPool, 'lease'>;
  readonly episode: Omit<EpisodeDeps, 'policy' | 'frames'>;
  /** Rejects with `config.invalid` for what there is not. */
  readonly choose: (wish: ResetRequest) => ChosenTask;
  readonly maxSteps: number;
  /** Whether observations have a picture where a reset does not say. */
  readonly picture: boolean;
  readonly encode: (screen: Screenshot) => Promise<Buffer>;
}

/** Episodes whose policy is a program elsewhere: it is shown a screen, and says what to do. */
export class EpisodeEnvironment implements Environment {
  readonly #parts: EnvironmentParts;
  readonly #closed = new AbortController();
  #episode: Episode | undefined;
  #begun = 0;

  constructor(parts: EnvironmentParts) {
    this.#parts = parts;
  }

  async reset(request: Readonly<Record<string, unknown>>): Promise<Observed> {
    const wish = parsed(resetRequest, request),
      chosen = this.#parts.choose(wish);
    await this.#episode?.end();
    this.#episode = undefined;
    const lease = await this.#parts.pool.lease({ signal: this.#closed.signal });
    // The environment was closed while the desktop was leased.
    if (this.#closed.signal.aborted) {
      lease.release();
      throw cancelled('The episode');
    }
    const name = wish.episode_id ?? `episode-${++this.#begun}`,
      episode = new Episode(this.#parts, lease, chosen, name, wish.picture ?? this.#parts.picture);
    this.#episode = episode;
    return episode.begin();
  }
  async step(request: Readonly<Record<string, unknown>>): Promise<Observed> {
    if (!this.#episode?.acts)
      throw new StudioError('config.invalid', 'No episode is running.', 'Send a reset to start one.');
    return this.#episode.step(parsed(stepRequest, request).action);
  }
  state(): Readonly<Record<string, unknown>> {
    return this.#episode?.state() ?? NO_EPISODE;
  }
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#episode?.end();
  }
}

function parsed<T>(schema: z.ZodType<T>, v: unknown): T {
  const r = schema.safeParse(v);
  if (r.success) return r.data;
  const issue = r.error.issues[0]!;
  throw new StudioError(
    'config.invalid',
    `${issue.path.join('.') || 'data'}: ${issue.message}.`,
    'GET /schema says what is expected.',
  );
}

/** One episode: the client that steps is its policy. */
class Episode implements Policy, FrameStore {
  readonly takesEncoded = true;
  readonly #parts: EnvironmentParts;
  readonly #lease: Lease;
  readonly #chosen: ChosenTask;
  readonly #name: string;
  readonly #pictures: boolean;
  readonly #stop = new AbortController();
  /** The observation that the client waits for. */
  #answer: Deferred<Observed> = deferred();
  /** The decision that the episode waits for; present while the client is to act. */
  #act: Deferred<Decision> | undefined;
  /** The newest screen, as it is sent. */
  #screen: Promise<string | undefined> = Promise.resolve(undefined);
  #instruction = '';
  #steps = 0;
  #done = false;
  #ended: Promise<void> | undefined;

  constructor(parts: EnvironmentParts, lease: Lease, chosen: ChosenTask, name: string, pictures: boolean) {
    this.#parts = parts;
    this.#lease = lease;
    this.#chosen = chosen;
    this.#name = name;
    this.#pictures = pictures;
  }

  begin(): Promise<Observed> {
    this.#ended = this.#run();
    return this.#answer.promise;
  }
  get acts(): boolean {
    return this.#act !== undefined;
  }
  /** Rejects with `policy.invalid` for what is no action: the episode waits for another. */
  step(text: string): Promise<Observed> {
    const { actions, thought } = parseActions(text, { mode: 'absolute', screen: this.#lease.desktop.screen }),
      act = this.#act!;
    checkPerformable(actions);
    this.#answer = deferred();
    this.#act = undefined;
    if (!actions.every(isTerminal)) this.#steps++;
    act.resolve({ actions, version: 0, queueMs: 0, computeMs: 0, ...(thought === undefined ? {} : { thought }) });
    return this.#answer.promise;
  }
  state(): Readonly<Record<string, unknown>> {
    return { episode_id: this.#name, step_count: this.#steps, task: this.#chosen.task.id, done: this.#done };
  }
  /** Gives the desktop back, whatever goes on. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  // The episode's policy.
  open({ instruction }: Parameters<Policy['open']>[0]): PolicySession {
    this.#instruction = instruction;
    return {
      decide: async (_screen, signal) => {
        const act = deferred<Decision>(),
          seen = this.#observed(await this.#screen);
        this.#act = act;
        this.#answer.resolve(seen);
        return abortable(act.promise, signal, 'The episode');
      },
      acted: () => undefined,
      close: () => undefined,
    };
  }
  // The episode's store of screens, which keeps none.
  async put(screen: Screenshot): Promise<FrameRef> {
    const { width, height } = screen;
    if (!this.#pictures) return { hash: '0'.repeat(64), width, height };
    const encoding = isEncoded(screen) ? Promise.resolve(screen.png) : this.#parts.encode(screen);
    this.#screen = encoding.then((png) => Buffer.from(png).toString('base64'));
    ignoreFailure(this.#screen, 'the observation that waits for it fails with it');
    return {
      hash: createHash('sha256')
        .update(await encoding)
        .digest('hex'),
      width,
      height,
    };
  }
  get(): Promise<never> {
    return Promise.reject(new Error('screens of served episodes are not kept'));
  }
  read(): Promise<never> {
    return this.get();
  }

  /** Never rejects: what goes wrong is told to whoever waits for an answer. */
  async #run(): Promise<void> {
    let release: Parameters<Lease['release']>[0] = { broken: true };
    try {
      const { trajectory, broken } = await this.#played(),
        { outcome } = trajectory,
        fault = outcome.kind === 'error' && outcome.error.kind.startsWith('desktop.') ? outcome.error : undefined;
      release = broken ? { broken: true, ...(fault ? { fault } : {}) } : {};
      this.#done = true;
      this.#act = undefined;
      await this.#tell(outcome);
    } catch (e) {
      this.#act = undefined;
      this.#answer.reject(e);
    } finally {
      this.#lease.release(release);
    }
  }
  #played(): Promise<EpisodeResult> {
    const { task, seed } = this.#chosen,
      { episode, maxSteps } = this.#parts;
    return runEpisode({ ...episode, policy: this, frames: this }, this.#lease, {
      task,
      order: {
        rollout: id<RolloutId>(`openenv/${this.#name}`),
        group: id<GroupId>(`openenv/${this.#name}`),
        family: task.family,
        task: task.id,
        seed,
        cap: this.#cap(maxSteps),
        groupSize: 1,
      },
      provenance: { kind: 'imported', from: 'OpenEnv' },
      sampling: { greedy: true, temperature: 1, seed },
      signal: this.#stop.signal,
      onStep: () => undefined,
      onPhase: () => undefined,
    });
  }
  async #tell(outcome: Trajectory['outcome']): Promise<void> {
    if (outcome.kind === 'error') {
      const { kind, message, remedy } = outcome.error;
      this.#answer.reject(new StudioError(kind, message, remedy));
      return;
    }
    const seen = this.#observed(await this.#screen.catch(() => undefined));
    this.#answer.resolve({
      observation: { ...seen.observation, verdict: outcome.kind, truncated: outcome.truncated },
      reward: outcome.reward,
      done: true,
    });
  }
  #cap(maxSteps: number): number {
    return Math.min(maxSteps, this.#chosen.task.maxSteps ?? maxSteps);
  }
  #observed(picture: string | undefined): Observed {
    const { width, height } = this.#lease.desktop.screen;
    return {
      observation: {
        instruction: this.#instruction,
        task: this.#chosen.task.id,
        width,
        height,
        step: this.#steps,
        steps_left: Math.max(0, this.#cap(this.#parts.maxSteps) - this.#steps),
        ...(picture === undefined ? {} : { picture }),
      },
      reward: undefined,
      done: false,
    };
  }
}
