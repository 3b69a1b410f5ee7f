import { mkdir } from 'node:fs/promises';
import { StudioError } from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import { folderInside } from '../../files/folderParts.js';
import type { RolloutId, Step, Trajectory } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import type { EventOf, JournalEvent, StoredEvent } from '../events.js';
import { follow, storedEvent } from './follow.js';
import type { Followed } from './follow.js';
import { PngFrameStore } from './frames.js';
import type { FrameStoreOptions } from './frames.js';
import { Journal } from './journal.js';
import type { JournalOptions, Recovery } from './journal.js';
import { losingScreens } from './indexTrim.js';
import type { ListedEvent } from './indexWriter.js';
import { byteOf, readJournal, readRecord, segmentOf } from './journalReader.js';
import { SegmentFiles } from './segmentFiles.js';
import type { Damage, JournalEntry, JournalPosition } from './journalReader.js';
import { checkRecord } from './recordChecks.js';
import { LocalIndex, WorkerIndex } from './runIndex.js';
import type { RunIndex } from './runIndex.js';
import { io, readMeta, runPaths, writeMeta, type RunMeta } from './runMeta.js';
import { lockRun } from './runLock.js';
import type { RunLock } from './runLock.js';
import { ScreenThreads } from './screenEncoder.js';
import { DiskRoom } from './room.js';
import { Snapshots, indexTrouble } from './snapshots.js';
import { stepPlaces, type StepPlace } from './stepPlaces.js';
import { removeScratch } from './scratch.js';
import { removeUnfinished } from '../../files/removeUnfinished.js';
import { restoreReplaced, unfinishedDir } from './unfinished.js';

export { readMeta, readMetaText, runPaths, type RunMeta } from './runMeta.js';

export interface RunStoreOptions {
  /** Where the index lives: a worker thread of the bundle, or this process (short-lived commands, tests). */
  readonly index: ProcessEntry | 'local';
  readonly journal?: JournalOptions;
  readonly frames?: FrameStoreOptions;
  /** The index is snapshotted this long after a change. Default 10 s. */
  readonly snapshotMs?: number;
  /** ms since the epoch. */
  readonly now?: () => number;
}

/** A step read back, with what the policy knew beside it. */
export type StepRecord = Pick<EventOf<'rollout.step'>, 'step' | 'extra'> & { readonly at: number };

/**
 * Reads a run as it is when opened: works on a copy, an archive, or beside the writer; needs no lock and changes
 * nothing.
 */
export class RunReader {
  readonly dir: string;
  readonly meta: RunMeta;
  readonly frames: PngFrameStore;
  readonly index: RunIndex;
  readonly #files: SegmentFiles;

  constructor(dir: string, meta: RunMeta, frames: PngFrameStore, index: RunIndex) {
    this.dir = dir;
    this.meta = meta;
    this.frames = frames;
    this.index = index;
    this.#files = new SegmentFiles(runPaths(dir).journal);
  }

  static async open(dir: string, o: Pick<RunStoreOptions, 'index' | 'frames'>): Promise<RunReader> {
    const p = runPaths(dir),
      meta = await readMeta(dir);
    const paths = { journal: p.journal, file: p.index };
    return new RunReader(
      dir,
      meta,
      new PngFrameStore(p.frames, o.frames),
      o.index === 'local' ? new LocalIndex(paths) : new WorkerIndex(o.index, paths),
    );
  }

  /** End of what may be read; undefined = the end of the files. */
  protected end(): JournalPosition | undefined {
    return undefined;
  }

  /** Events from a sequence number on, to the present end. Damaged stretches are skipped and reported. */
  async *events(sinceSeq = 0, onDamage?: (d: Damage) => void): AsyncGenerator<StoredEvent, void, undefined> {
    const until = this.end();
    for await (const batch of readJournal(runPaths(this.dir).journal, {
      fromSeq: sinceSeq,
      until,
      onDamage,
    })) {
      for (const e of batch) yield storedEvent(e);
    }
  }

  /** All records to the present end, in batches; nothing of them is parsed. */
  records(): AsyncGenerator<JournalEntry[], void, undefined> {
    return readJournal(runPaths(this.dir).journal, { until: this.end() });
  }

  /** Batches of records from `sinceSeq` on: here, those there are; of a run being written, also those to come. */
  follow(sinceSeq: number, signal?: AbortSignal): AsyncGenerator<Followed, void, undefined> {
    const { journal } = runPaths(this.dir);
    return follow(
      { read: (o) => readJournal(journal, o), ended: () => true, onGrowth: () => () => undefined },
      sinceSeq,
      signal,
    );
  }

  /** One record by its journal position (the index's `position` columns). */
  async at(position: JournalPosition): Promise<(JournalEvent & { readonly at: number }) | undefined> {
    return this.#files.use(segmentOf(position), async (file) => {
      const e = (await readRecord(file, byteOf(position))) as (JournalEvent & { at: number }) | undefined;
      if (e) checkRecord(e);
      return e;
    });
  }

  /** The newest event of a type that is listed; undefined when there is none. */
  async latest<T extends ListedEvent>(type: T): Promise<(EventOf<T> & { readonly at: number }) | undefined> {
    const [row] = await this.index.query('SELECT position FROM events WHERE type = ? ORDER BY seq DESC LIMIT 1', [
      type,
    ]);
    return row && ((await this.at(Number(row['position']))) as (EventOf<T> & { at: number }) | undefined);
  }

  /**
   * Steps of a trajectory, finished or still running, in order. Rejects with `store.damaged` when one cannot be read.
   */
  async readSteps(rollout: RolloutId): Promise<StepRecord[]> {
    const places = (await stepPlaces(this.index, [rollout])).get(rollout) ?? [];
    const one = async ({ position }: StepPlace): Promise<StepRecord> => {
        const e = await this.at(position);
        if (e?.type !== 'rollout.step') throw damagedRecord(rollout);
        return { step: e.step, at: e.at, extra: e.extra };
      },
      out: StepRecord[] = [];
    for (let i = 0; i < places.length; i += stepsAtOnce)
      out.push(...(await Promise.all(places.slice(i, i + stepsAtOnce).map(one))));
    return out;
  }

  /**
   * A finished trajectory whole, with token traces and frame references; undefined when it has not ended or is unknown.
   * `times`: each step says when it was, for another folder.
   */
  async readTrajectory(rollout: RolloutId, o: { readonly times?: boolean } = {}): Promise<Trajectory | undefined> {
    const [row] = await this.index.query('SELECT head_position AS p FROM rollouts WHERE id = ?', [rollout]);
    if (!row || row['p'] === null || row['p'] === undefined) return undefined;
    const head = await this.at(Number(row['p']));
    if (head?.type !== 'trajectory.recorded') throw damagedRecord(rollout);
    const steps: readonly Step[] = (await this.readSteps(rollout)).map((s) =>
      o.times ? { ...s.step, at: s.step.at ?? s.at } : s.step,
    );
    if (steps.length !== head.head.steps) throw damagedRecord(rollout);
    return { ...head.head, steps };
  }

  async close(): Promise<void> {
    await this.index.close({ snapshot: false });
    await this.closeFiles();
  }
  protected closeFiles(): Promise<void> {
    return this.#files.close();
  }
}

/** The one writer of a run folder: `{run.json, journal/, index.sqlite, frames/, checkpoints/}`. */
export class RunStore extends RunReader {
  readonly recovery: Recovery;
  /** Room on the folder's disk: where writes wait while there is none. */
  readonly room: DiskRoom;
  readonly #journal: Journal;
  readonly #lock: RunLock;
  readonly #now: () => number;
  readonly #snapshots: Snapshots;
  #closed = false;
  #ended = false;
  readonly #wake = new Set<() => void>();

  private constructor(
    dir: string,
    meta: RunMeta,
    frames: PngFrameStore,
    index: RunIndex,
    journal: Journal,
    recovery: Recovery,
    lock: RunLock,
    room: DiskRoom,
    o: RunStoreOptions,
    say: (message: string) => void,
  ) {
    super(dir, meta, frames, index);
    this.room = room;
    this.#journal = journal;
    this.recovery = recovery;
    this.#lock = lock;
    this.#now = o.now ?? Date.now;
    this.#snapshots = new Snapshots(
      o.snapshotMs ?? 10_000,
      async () => journal.lost || index.snapshot(),
      (why) => say(indexTrouble.unwritten(why)),
    );
    journal.onDurable((position) => {
      index.durable(position);
      for (const w of this.#wake) w();
      this.#snapshots.changed();
    });
  }

  /**
   * Opens a run for writing, creating it from `create` when the folder has none. Takes the lock (`run.busy` names the
   * holder), cuts a torn tail off the journal and starts the index. `each` sees every event already in the journal, in
   * order, but not the types in `skip`, which are not even parsed.
   */
  static override async open(
    dir: string,
    o: RunStoreOptions & { readonly create?: Omit<RunMeta, 'format'> },
    each?: (e: StoredEvent) => void,
    skip: readonly JournalEvent['type'][] = [],
  ): Promise<RunStore> {
    const p = runPaths(dir);
    await mkdir(dir, { recursive: true }).catch((e: unknown) => {
      throw io(e, dir);
    });
    const lock = await lockRun(dir);
    const room = new DiskRoom(p.reserve);
    let journal: Journal | undefined;
    try {
      for (const d of [p.journal, p.frames, p.checkpoints])
        await folderInside(dir, d).catch((e: unknown) => {
          throw io(e, d);
        });
      for (const d of [dir, unfinishedDir(p.frames), p.checkpoints]) await removeUnfinished(d, { inside: dir });
      await removeScratch(dir);
      await restoreReplaced(p.checkpoints, dir);
      const meta = await readMeta(dir).catch(async (e: unknown) => {
        if (!o.create || !(e instanceof StudioError) || e.error.details?.['code'] !== 'ENOENT') throw e;
        return writeMeta(dir, { format: 1, ...o.create });
      });
      const skipped: ReadonlySet<string> = new Set(skip);
      const opened = await Journal.open(
        p.journal,
        { ...o.journal, room, fence: () => lock.verify() },
        each &&
          ((batch) => {
            for (const e of batch) if (!skipped.has(e.type())) each(storedEvent(e));
          }),
      );
      journal = opened.journal;
      // The run goes on: all that stands still is lists and figures.
      const say = (message: string): void =>
        ignoreFailure(
          opened.journal.append({ type: 'log', level: 'warn', message, at: (o.now ?? Date.now)() }),
          'a journal that cannot be written ends the run',
        );
      const paths = {
        journal: p.journal,
        file: p.index,
        until: journal.durable,
        options: { loseScreens: losingScreens(meta.config) },
        onFailure: (why: unknown) => say(indexTrouble.behind(why)),
      };
      const index = o.index === 'local' ? new LocalIndex(paths) : new WorkerIndex(o.index, paths);
      const encoder =
          o.index === 'local'
            ? undefined
            : new ScreenThreads(o.index, {
                onFailure: (why) => say(`Screens are encoded in the main thread: ${why}.`),
              }),
        frames = new PngFrameStore(p.frames, { encoder, ...o.frames, room });
      return new RunStore(dir, meta, frames, index, journal, opened.recovery, lock, room, o, say);
    } catch (e) {
      await journal?.close();
      await lock.release();
      throw e;
    }
  }

  protected override end(): JournalPosition {
    return this.#journal.durable;
  }
  get nextSeq(): number {
    return this.#journal.nextSeq;
  }
  /** ms since the oldest record or screen that waits to be on disk was handed in; 0 when none waits. */
  get behindMs(): number {
    return Math.max(this.#journal.behindMs, this.frames.behindMs);
  }
  /** Called after each write of the journal, and of screens. */
  onDurable(listener: () => void): () => void {
    const off = [this.#journal.onDurable(() => listener()), this.frames.onDurable(listener)];
    return () => off.forEach((f) => f());
  }
  /** Whether it was closed or is being closed: then it answers no more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves with the stored event once it is on disk. Order of calls is order in the journal. */
  async append<E extends JournalEvent>(e: E): Promise<E & { seq: number; at: number }> {
    const at = this.#now(),
      { seq } = await this.#journal.append({ ...e, at });
    return { ...e, at, seq };
  }

  /**
   * Events from `sinceSeq` on without a gap: first what is on disk, then each as it gets there. It always reads the
   * journal, so a slow reader holds nothing in memory. Ends when the store closes or the signal fires.
   */
  async *subscribe(sinceSeq: number, signal?: AbortSignal): AsyncGenerator<StoredEvent, void, undefined> {
    for await (const { entries } of this.follow(sinceSeq, signal)) {
      for (const e of entries) {
        if (signal?.aborted) return;
        yield storedEvent(e);
      }
    }
  }

  override follow(sinceSeq: number, signal?: AbortSignal): AsyncGenerator<Followed, void, undefined> {
    return follow(
      {
        read: (o) => this.#journal.read(o),
        ended: () => this.#ended,
        onGrowth: (grown) => {
          this.#wake.add(grown);
          return () => {
            this.#wake.delete(grown);
          };
        },
      },
      sinceSeq,
      signal,
    );
  }

  /** Everything acknowledged is already on disk; this writes the index, ends subscriptions and releases the lock. */
  override async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#snapshots.stop();
    await this.room.end();
    await Promise.all([this.frames.close(), this.#journal.close()]);
    this.#ended = true;
    for (const w of this.#wake) w();
    // The index of a run that another process has taken over belongs to that process.
    await this.index.close({ snapshot: !this.#journal.lost });
    await this.closeFiles();
    await this.#lock.release();
  }
}

/** Records of a trajectory that are read at once. */
const stepsAtOnce = 64;
const damagedRecord = (rollout: RolloutId): StudioError =>
  new StudioError(
    'store.damaged',
    `Part of trajectory ${rollout} cannot be read back.`,
    'Restore the journal folder from a copy; other trajectories are not affected.',
    { details: { rollout } },
  );
