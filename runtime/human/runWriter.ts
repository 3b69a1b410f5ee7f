import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import {
  ServiceError,
  StudioError,
  id,
  isRunName,
  type RolloutId,
  type RunPath,
  type Trajectory,
  messageOf,
  internalError,
} from '../domain/index.js';
import { orUndefined, ignoreFailure } from '../concurrency/failures.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { parseRunFile, parseStoredConfig, type RunConfig } from '../config/index.js';
import type { StepExtra } from '../data/events.js';
import { RunAppender } from '../data/runAppender.js';
import { PngFrameStore } from '../data/store/frames.js';
import { ScreenThreads } from '../data/store/screenEncoder.js';
import { readMeta, runPaths, type RunMeta, type RunReader, type RunStore } from '../data/store/runStore.js';
import type { FrameStore, HeldFrames, PoolAnswer, PoolWish } from '../data/types.js';
import { newRun, poolConfigOf } from '../data/collections.js';
import type { RunAccess } from '../run/runAccess.js';

/**
 * Writes what people add to a run, whoever writes its journal: the active run's data manager, or, for a run that is
 * over or a collection, its folder opened for as long as needed. Rejects with `run.busy` when another process writes
 * it.
 */
export interface RunWriter {
  readonly run: RunPath;
  readonly config: RunConfig;
  /** Frames of whoever writes the run at the moment: its retention must know of them. Serves when closed, too. */
  readonly frames: RunFrames;
  /**
   * Records a trajectory; on disk when resolved. `extras`: for people, beside each step; the active run's data manager
   * has its own.
   */
  record(t: Trajectory, pool: PoolWish, extras?: readonly (StepExtra | undefined)[]): Promise<PoolAnswer>;
  /** A finished trajectory of the run joins the pool, or says why not. */
  pool(rollout: string, wish: PoolWish): Promise<PoolAnswer>;
  setEnabled(rollouts: readonly string[], enabled: boolean): Promise<void>;
  unpool(rollouts: readonly string[], reason: string): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}

export type RunFrames = FrameStore & Pick<PngFrameStore, 'copyIn'>;

/** The process whose runs people add to. */
export interface RunWriterHost {
  readonly entry: ProcessEntry;
  /** The active run of this process. */
  readonly session: RunAccess | undefined;
  /** Drops what was read of this folder: it is out of date. */
  forget(run: RunPath): void;
  /** A run has changed: its state, or its trajectories. */
  changed(run: RunPath): void;
  /** The pool of a run that is not active changed; the active run's pool is watched elsewhere. */
  poolChanged(run: RunPath): void;
}

/** Writers of runs. The folder of an inactive run stays open while anyone adds to it, opened once for all. */
export class RunWriters {
  readonly #host: RunWriterHost;
  readonly #appending = new Map<RunPath, Appending>();
  constructor(host: RunWriterHost) {
    this.#host = host;
  }

  /** Opens the run's folder at once, so that an obstacle shows before a person has done any work. */
  async open(run: RunPath): Promise<RunWriter> {
    const dir = resolve(run),
      meta = await readMeta(dir),
      writer = new SharedWriter(this.#host, this, dir, configOf(meta));
    await writer.open();
    return writer;
  }

  /** A collection: a run folder without training, `name` under `base`, made when it is missing. */
  async openCollection(base: string, name: string): Promise<RunWriter> {
    if (!isRunName(name))
      throw new StudioError(
        'config.invalid',
        `${name}: a collection's name is letters, digits, spaces, '.', '_' and '-'`,
        'Choose another name.',
      );
    const dir = resolve(base, name);
    if (!existsSync(join(dir, 'run.json'))) await this.#create(dir, name);
    return this.open(dir);
  }
  async #create(dir: RunPath, name: string): Promise<void> {
    const base = dirname(dir);
    await mkdir(base, { recursive: true }).catch((e: unknown) => {
      throw new StudioError(
        'store.io',
        `${base} cannot be created: ${messageOf(e)}.`,
        'Choose another folder for runs.',
        { cause: e },
      );
    });
    const made = await RunAppender.open(dir, {
      index: this.#host.entry,
      create: newRun(name, Date.now()),
      pool: poolConfigOf,
    });
    try {
      await made.store.append({ type: 'run.closed', reason: 'collection' });
    } finally {
      await made.close();
    }
    this.#host.forget(dir);
    this.#host.changed(dir);
  }

  /** The folder as it is being written, for whoever reads the run meanwhile; undefined when it is not. */
  async reader(dir: RunPath): Promise<RunStore | undefined> {
    const opening = this.#appending.get(dir)?.open,
      appender = opening && (await orUndefined(opening, 'who opened it hears why; a reader finds the folder as it is'));
    return appender && !appender.store.closed ? appender.store : undefined;
  }
  /** Resolves when a folder that is being let go of is closed. */
  async closed(dir: RunPath): Promise<void> {
    await this.#appending.get(dir)?.closing;
  }
  async close(): Promise<void> {
    await Promise.all([...this.#appending.values()].map(closeFolder));
  }

  /** Opens the folder, or uses the one that is open. Pair it with `release`. */
  share(dir: RunPath): Appending {
    const there = this.#appending.get(dir);
    if (there && !there.closing) {
      there.users++;
      return there;
    }
    const open = (async () => {
        await there?.closing;
        return RunAppender.open(dir, { index: this.#host.entry, pool: poolConfigOf });
      })(),
      mine: Appending = { open, users: 1 };
    this.#appending.set(dir, mine);
    this.#host.forget(dir);
    open.catch(() => {
      if (this.#appending.get(dir) === mine) this.#appending.delete(dir);
    });
    return mine;
  }
  async release(dir: RunPath, a: Appending): Promise<void> {
    if (--a.users > 0) return;
    a.closing = closeFolder(a).then(() => {
      if (this.#appending.get(dir) === a) this.#appending.delete(dir);
      this.#host.forget(dir);
    });
    await a.closing;
  }
}

/** One open folder for everyone who adds to it at the same time; the last one to release it closes it. */
interface Appending {
  readonly open: Promise<RunAppender>;
  users: number;
  closing?: Promise<unknown>;
}
/** Closes a folder; one that could not be opened needs no closing. */
const closeFolder = (a: Appending): Promise<void> =>
  a.open.then(
    (r) => r.close(),
    () => undefined,
  );

/** A run of another version, or made by hand, has no run file that holds here; the defaults then do. */
function configOf(meta: RunMeta): RunConfig {
  try {
    return parseStoredConfig(meta.config ?? {});
  } catch (e) {
    if (e instanceof StudioError) return parseRunFile({});
    throw e;
  }
}

/** Decides at each call who writes: a run can end, or be resumed, while somebody holds its writer. */
class SharedWriter implements RunWriter {
  readonly run: RunPath;
  readonly config: RunConfig;
  readonly frames: RunFrames;
  #own: PngFrameStore | undefined;
  readonly #host: RunWriterHost;
  readonly #writers: RunWriters;
  #folder: Appending | undefined;
  #closed = false;
  constructor(host: RunWriterHost, writers: RunWriters, dir: RunPath, config: RunConfig) {
    this.#host = host;
    this.#writers = writers;
    this.run = dir;
    this.config = config;
    this.frames = {
      put: (screen) => this.#store().put(screen),
      get: (ref) => this.#store().get(ref),
      read: (ref) => this.#store().read(ref),
      copyIn: (ref, from) => this.#store().copyIn(ref, from),
      hold: () => this.#hold(),
    };
  }
  /** In the store of whoever writes at each put. */
  #hold(): HeldFrames {
    const held = new Map<PngFrameStore, HeldFrames>();
    return {
      put: (screen) => {
        const store = this.#store(),
          own = held.get(store) ?? store.hold();
        held.set(store, own);
        return own.put(screen);
      },
      end: () => {
        for (const h of held.values()) h.end();
      },
    };
  }
  /** An active run's own store, since its retention may remove what another store believes to be there. */
  #store(): PngFrameStore {
    const active = this.#active();
    if (!active) {
      return (this.#own ??= new PngFrameStore(runPaths(this.run).frames, {
        encoder: new ScreenThreads(this.#host.entry),
      }));
    }
    const own = this.#own;
    this.#own = undefined;
    if (own) ignoreFailure(own.close(), 'who put a screen there is told');
    return active.data.store.frames;
  }

  async open(): Promise<void> {
    if (!this.#active()) await this.#opened();
  }
  record(t: Trajectory, pool: PoolWish, extras?: readonly (StepExtra | undefined)[]): Promise<PoolAnswer> {
    return this.#do(async (to) => {
      const answer = await ('data' in to
        ? to.data.record(t, pool).then((r) => r.pool)
        : to.folder.record(t, pool, pool === 'auto' ? undefined : 'person', extras));
      if ('folder' in to) this.#host.changed(this.run);
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
    await this.#own?.close();
    const folder = this.#folder;
    this.#folder = undefined;
    if (folder) await this.#writers.release(this.run, folder);
  }

  #active(): { readonly data: RunAccess['data'] } | undefined {
    const { session } = this.#host;
    return session?.run === this.run && !session.data.store.closed ? { data: session.data } : undefined;
  }
  async #opened(): Promise<{ readonly folder: RunAppender }> {
    // A run that is just ending still has its folder.
    const { session } = this.#host;
    if (session?.run === this.run) await session.ended;
    this.#folder ??= this.#writers.share(this.run);
    try {
      return { folder: await this.#folder.open };
    } catch (e) {
      this.#folder = undefined;
      throw e;
    }
  }
  /** `f` gives its answer, and whether the pool changed. */
  async #do<T>(
    f: (to: { readonly data: RunAccess['data'] } | { readonly folder: RunAppender }) => Promise<readonly [T, boolean]>,
  ): Promise<T> {
    if (this.#closed) throw internalError(`The run ${this.run} is no longer open for writing.`);
    const active = this.#active();
    let result: readonly [T, boolean];
    try {
      result = await f(active ?? (await this.#opened()));
    } catch (e) {
      // The run ended between the question and the answer, before anything was written.
      if (!active?.data.store.closed) throw e;
      result = await f(await this.#opened());
    }
    // The active run's pool is watched as it is (service/pool.ts).
    if (result[1] && !this.#active()) this.#host.poolChanged(this.run);
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
