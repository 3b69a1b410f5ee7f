import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { StudioError, id, type RolloutId, type Trajectory } from '../domain/index.js';
import { parseRunFile, type RunConfig } from '../config/index.js';
import { RunAppender } from '../data/runAppender.js';
import { PngFrameStore } from '../data/store/frames.js';
import { readMeta, runPaths, type RunMeta, type RunReader } from '../data/store/runStore.js';
import type { FrameStore, PoolAnswer, PoolWish } from '../data/types.js';
import type { RunPath } from '../protocol/types.js';
import { newRun, poolConfigOf } from '../data/collections.js';
import type { Studio } from '../service/studio.js';
import { ServiceError } from '../service/types.js';

export type { PoolAnswer, PoolWish };

/**
 * Writes what people add to a run, whoever writes its journal: the active run's data manager, or, for a run that is
 * over or a collection, its folder opened for as long as needed. Rejects with `run.busy` when another process writes
 * it.
 */
export interface RunWriter {
  readonly run: RunPath;
  readonly config: RunConfig;
  readonly frames: FrameStore;
  /** On disk when resolved. */
  record(t: Trajectory, pool: PoolWish): Promise<PoolAnswer>;
  /** A finished trajectory of the run joins the pool, or says why not. */
  pool(rollout: string, wish: PoolWish): Promise<PoolAnswer>;
  setEnabled(rollouts: readonly string[], enabled: boolean): Promise<void>;
  unpool(rollouts: readonly string[], reason: string): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}

/** The run's folder is opened at once, so that what stands in the way is said before a person has done any work. */
export async function openRunWriter(studio: Studio, run: RunPath): Promise<RunWriter> {
  const dir = resolve(run),
    meta = await readMeta(dir);
  const writer = new SharedWriter(studio, dir, configOf(meta));
  await writer.open();
  return writer;
}

/** A collection: a run folder without training, `name` under `base`, made when it is missing. */
export async function openCollection(studio: Studio, base: string, name: string): Promise<RunWriter> {
  if (!isRunName(name))
    throw new StudioError(
      'config.invalid',
      `${name}: a collection's name is letters, digits, spaces, '.', '_' and '-'`,
      'Choose another name.',
    );
  const dir = resolve(base, name);
  if (!existsSync(join(dir, 'run.json'))) {
    await mkdir(base, { recursive: true }).catch((e: unknown) => {
      throw new StudioError(
        'store.io',
        `${base} cannot be made: ${(e as Error).message}.`,
        'Choose another folder for runs.',
        { cause: e },
      );
    });
    const made = await RunAppender.open(dir, {
      index: studio.entry,
      create: newRun(name, Date.now()),
      pool: poolConfigOf,
    });
    try {
      await made.store.append({ type: 'run.closed', reason: 'collection' });
    } finally {
      await made.close();
    }
    studio.readers.forget(dir);
    void studio.told(dir);
  }
  return openRunWriter(studio, dir);
}
export const isRunName = (name: string): boolean => /^[\w][\w .-]{0,99}$/.test(name);

/** A run of another version, or made by hand, has no run file that holds here; the defaults then do. */
function configOf(meta: RunMeta): RunConfig {
  try {
    return parseRunFile(meta.config ?? {});
  } catch (e) {
    if (e instanceof StudioError) return parseRunFile({});
    throw e;
  }
}

/** Where a call goes is decided when it comes: a run can end, or be resumed, while somebody holds its writer. */
class SharedWriter implements RunWriter {
  readonly run: RunPath;
  readonly config: RunConfig;
  readonly frames: FrameStore;
  readonly #studio: Studio;
  #folder: Appending | undefined;
  #closed = false;
  constructor(studio: Studio, dir: RunPath, config: RunConfig) {
    this.#studio = studio;
    this.run = dir;
    this.config = config;
    this.frames = new PngFrameStore(runPaths(dir).frames);
  }

  async open(): Promise<void> {
    if (!this.#active()) await this.#opened();
  }
  record(t: Trajectory, pool: PoolWish): Promise<PoolAnswer> {
    return this.#do(async (to) => {
      const answer = await ('data' in to
        ? to.data.record(t, pool).then((r) => r.pool)
        : to.folder.record(t, pool, pool === 'auto' ? undefined : 'person'));
      if ('folder' in to) void this.#studio.told(this.run);
      return [answer, answer.pooled];
    });
  }
  pool(rollout: string, wish: PoolWish): Promise<PoolAnswer> {
    return this.#do(async (to) => {
      const t = await this.#trajectory('data' in to ? to.data.store : to.folder.store, rollout),
        answer = await ('data' in to ? to.data : to.folder).addToPool(t, wish);
      return [answer, answer.pooled];
    });
  }
  setEnabled(rollouts: readonly string[], enabled: boolean): Promise<void> {
    return this.#do(async (to) => {
      await ('data' in to ? to.data : to.folder).switchPool(idsOf(rollouts), enabled);
      return [undefined, true];
    });
  }
  unpool(rollouts: readonly string[], reason: string): Promise<void> {
    return this.#do(async (to) => {
      await ('data' in to ? to.data : to.folder).removeFromPool(idsOf(rollouts), reason);
      return [undefined, true];
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const folder = this.#folder;
    this.#folder = undefined;
    if (folder) await letGo(this.#studio, this.run, folder);
  }

  #active(): { readonly data: NonNullable<Studio['session']>['data'] } | undefined {
    const { session } = this.#studio;
    return session?.run === this.run && !session.store.closed ? { data: session.data } : undefined;
  }
  async #opened(): Promise<{ readonly folder: RunAppender }> {
    // A run that is just ending still has its folder.
    if (this.#studio.session?.run === this.run) await this.#studio.session.ended;
    this.#folder ??= share(this.#studio, this.run);
    try {
      return { folder: await this.#folder.open };
    } catch (e) {
      this.#folder = undefined;
      throw e;
    }
  }
  /** `f` gives its answer, and whether the pool changed. */
  async #do<T>(
    f: (
      to: { readonly data: NonNullable<Studio['session']>['data'] } | { readonly folder: RunAppender },
    ) => Promise<readonly [T, boolean]>,
  ): Promise<T> {
    if (this.#closed)
      throw new StudioError(
        'internal',
        `The run ${this.run} is not open for writing any more.`,
        'This is a fault of DART Studio: please report it with the log.',
      );
    const active = this.#active();
    let result: readonly [T, boolean];
    try {
      result = await f(active ?? (await this.#opened()));
    } catch (e) {
      // It ended between the question and the answer, before anything was written.
      if (!active?.data.store.closed) throw e;
      result = await f(await this.#opened());
    }
    // The active run's pool is watched as it is (service/pool.ts).
    if (result[1] && !this.#active()) this.#studio.broadcast({ method: 'pool/changed', params: { run: this.run } });
    return result[0];
  }
  async #trajectory(reader: RunReader, rollout: string): Promise<Trajectory> {
    const t = await reader.readTrajectory(id<RolloutId>(rollout));
    if (!t)
      throw new ServiceError(
        'not.found',
        `There is no finished trajectory ${rollout} in this run.`,
        'List the trajectories again; one that is still running can be added when it has ended.',
      );
    return t;
  }
}
const idsOf = (rollouts: readonly string[]): RolloutId[] => rollouts.map((r) => id<RolloutId>(r));

/** One opened folder for all who add to it at the same time; the last one to let go closes it. */
export interface Appending {
  readonly open: Promise<RunAppender>;
  users: number;
  closing?: Promise<unknown>;
}
function share(studio: Studio, dir: RunPath): Appending {
  const there = studio.appending.get(dir);
  if (there && !there.closing) {
    there.users++;
    return there;
  }
  const open = (async () => {
      await there?.closing;
      return RunAppender.open(dir, { index: studio.entry, pool: poolConfigOf });
    })(),
    mine: Appending = { open, users: 1 };
  studio.appending.set(dir, mine);
  studio.readers.forget(dir);
  open.catch(() => {
    if (studio.appending.get(dir) === mine) studio.appending.delete(dir);
  });
  return mine;
}
async function letGo(studio: Studio, dir: RunPath, a: Appending): Promise<void> {
  if (--a.users > 0) return;
  a.closing = a.open
    .then(
      (r) => r.close(),
      () => undefined,
    )
    .then(() => {
      if (studio.appending.get(dir) === a) studio.appending.delete(dir);
      studio.readers.forget(dir);
    });
  await a.closing;
}
