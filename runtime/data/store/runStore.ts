import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { StudioError, messageOf, errorCode } from '../../domain/index.js';
import { beyondBounds } from '../../domain/jsonBounds.js';
import { createFresh, folderInside } from '../../files/folderParts.js';
import { ForeignFileError, readForeignText } from '../../files/foreignFile.js';
import type { ProcessEntry, RolloutId, RunId, Step, Trajectory } from '../../domain/index.js';
import type { EventOf, JournalEvent, StoredEvent } from '../events.js';
import { follow, storedEvent } from './follow.js';
import type { Followed } from './follow.js';
import { PngFrameStore } from './frames.js';
import type { FrameStoreOptions } from './frames.js';
import { Journal, syncDir } from './journal.js';
import type { JournalOptions, Recovery } from './journal.js';
import { byteOf, readJournal, readRecord, segmentOf } from './journalReader.js';
import { SegmentFiles } from './segmentFiles.js';
import type { Damage, JournalEntry, JournalPosition } from './journalReader.js';
import { LocalIndex, WorkerIndex } from './runIndex.js';
import type { RunIndex } from './runIndex.js';
import { lockRun } from './runLock.js';
import type { RunLock } from './runLock.js';
import { DiskRoom } from './room.js';
import { Snapshots } from './snapshots.js';
import { removeUnfinished, restoreReplaced, unfinishedDir } from './unfinished.js';

/** run.json: what the run is. Never changed after creation; everything else is in the journal. */
export interface RunMeta {
  readonly id: RunId;
  readonly createdAt: number;
  readonly format: 1;
  /** The run file it was started with. */
  readonly config?: unknown;
  readonly name?: string;
  /** A collection of attempts (`dart-studio collect`), and what made them. */
  readonly collected?: { readonly policy: string };
}

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

export const runPaths = (
  dir: string,
): { meta: string; journal: string; index: string; frames: string; checkpoints: string; reserve: string } => ({
  meta: join(dir, 'run.json'),
  journal: join(dir, 'journal'),
  index: join(dir, 'index.sqlite'),
  frames: join(dir, 'frames'),
  checkpoints: join(dir, 'checkpoints'),
  reserve: join(dir, 'reserve'),
});

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
    return this.#files.use(
      segmentOf(position),
      async (file) => (await readRecord(file, byteOf(position))) as (JournalEvent & { at: number }) | undefined,
    );
  }

  /** The newest event of a type (steps and spans are not listed by type); undefined when there is none. */
  async latest<T extends Exclude<JournalEvent['type'], 'rollout.step' | 'spans'>>(
    type: T,
  ): Promise<(EventOf<T> & { readonly at: number }) | undefined> {
    const [row] = await this.index.query('SELECT position FROM events WHERE type = ? ORDER BY seq DESC LIMIT 1', [
      type,
    ]);
    return row && ((await this.at(Number(row['position']))) as (EventOf<T> & { at: number }) | undefined);
  }

  /**
   * Steps of a trajectory, finished or still running, in order. Rejects with `store.damaged` when one cannot be read.
   */
  async readSteps(rollout: RolloutId): Promise<StepRecord[]> {
    const rows = await this.index.query('SELECT position FROM steps WHERE rollout = ? ORDER BY idx', [rollout]);
    const one = async (row: Readonly<Record<string, unknown>>): Promise<StepRecord> => {
        const e = await this.at(Number(row['position']));
        if (e?.type !== 'rollout.step') throw damagedRecord(rollout);
        return { step: e.step, at: e.at, extra: e.extra };
      },
      out: StepRecord[] = [];
    for (let i = 0; i < rows.length; i += stepsAtOnce)
      out.push(...(await Promise.all(rows.slice(i, i + stepsAtOnce).map(one))));
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
  ) {
    super(dir, meta, frames, index);
    this.room = room;
    this.#journal = journal;
    this.recovery = recovery;
    this.#lock = lock;
    this.#now = o.now ?? Date.now;
    this.#snapshots = new Snapshots(o.snapshotMs ?? 10_000, async () => journal.lost || index.snapshot());
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
      for (const d of [dir, unfinishedDir(p.frames), p.checkpoints]) await removeUnfinished(d, dir);
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
      const paths = { journal: p.journal, file: p.index, until: journal.durable };
      const index = o.index === 'local' ? new LocalIndex(paths) : new WorkerIndex(o.index, paths);
      const frames = new PngFrameStore(p.frames, { ...o.frames, room });
      return new RunStore(dir, meta, frames, index, journal, opened.recovery, lock, room, o);
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
  /** ms since the oldest record that waits to be on disk was handed in; 0 when none waits. */
  get behindMs(): number {
    return this.#journal.behindMs;
  }
  /** Called after each write of the journal. */
  onDurable(listener: () => void): () => void {
    return this.#journal.onDurable(() => listener());
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
    await this.#journal.close();
    this.#ended = true;
    for (const w of this.#wake) w();
    // The index of a run that another process has taken over belongs to that process.
    await this.index.close({ snapshot: !this.#journal.lost });
    await this.closeFiles();
    await this.#lock.release();
  }
}

/** Format of run folders that this version reads and writes. */
const RUN_FORMAT = 1;
const newer = (dir: string, format: number): StudioError =>
  new StudioError(
    'store.newer',
    `The run in ${dir} was made by a newer DART Studio (format ${format}; this one reads up to ${RUN_FORMAT}).`,
    'Open it with the version that made it, or update DART Studio. Nothing in it was changed.',
    { details: { dir, format } },
  );
/** Records of a trajectory that are read at once. */
const stepsAtOnce = 64;
/** Far larger than any run file. */
const maxMetaBytes = 1 << 20,
  metaBounds = { depth: 32, values: 20_000 };
/** The text of run.json, which may be parsed. Rejects with Node's errors, or a `ForeignFileError`. */
export async function readMetaText(dir: string): Promise<string> {
  const text = await readForeignText(runPaths(dir).meta, maxMetaBytes, { inside: dir }),
    beyond = beyondBounds(text, metaBounds);
  if (beyond !== undefined) throw new ForeignFileError('ETOOLARGE', beyond);
  return text;
}

export async function readMeta(dir: string): Promise<RunMeta> {
  const file = runPaths(dir).meta;
  const text = await readMetaText(dir).catch((e: unknown) => {
    throw new StudioError(
      'store.io',
      `${dir} is not a run folder: run.json ${e instanceof ForeignFileError ? e.message : 'cannot be read'}.`,
      'Give a folder under runs/; `dart-studio runs list` shows them.',
      { cause: e, details: { file, code: errorCode(e) } },
    );
  });
  try {
    const meta = JSON.parse(text) as (Partial<Omit<RunMeta, 'format'>> & { readonly format?: unknown }) | null;
    if (typeof meta?.format === 'number' && meta.format > RUN_FORMAT) throw newer(dir, meta.format);
    if (typeof meta?.id !== 'string' || meta.format !== RUN_FORMAT)
      throw new Error('fields are missing or of another format');
    return meta as RunMeta;
  } catch (e) {
    if (e instanceof StudioError) throw e;
    throw new StudioError(
      'store.damaged',
      `run.json of ${dir} cannot be understood: ${messageOf(e)}.`,
      'Restore it from a copy, or open the run with the version that made it.',
      { cause: e, details: { file } },
    );
  }
}
async function writeMeta(dir: string, meta: RunMeta): Promise<RunMeta> {
  const { meta: file } = runPaths(dir);
  try {
    const f = await createFresh(`${file}.tmp`);
    try {
      await f.writeFile(`${JSON.stringify(meta, null, 2)}\n`);
      await f.sync();
    } finally {
      await f.close();
    }
    await rename(`${file}.tmp`, file);
    await syncDir(dir);
    return meta;
  } catch (e) {
    throw io(e, file);
  }
}
const io = (e: unknown, path: string): StudioError =>
  e instanceof StudioError
    ? e
    : new StudioError(
        'store.io',
        `The run folder cannot be written: ${messageOf(e)}.`,
        'Check free space and permissions, or choose another folder.',
        { cause: e, details: { path } },
      );
const damagedRecord = (rollout: RolloutId): StudioError =>
  new StudioError(
    'store.damaged',
    `Part of trajectory ${rollout} cannot be read back.`,
    'Restore the journal folder from a copy; other trajectories are not affected.',
    { details: { rollout } },
  );
