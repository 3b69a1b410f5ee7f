import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { StudioError, messageOf } from '../domain/index.js';
import { Journal, syncDir } from '../data/store/journal.js';
import { folderInside } from '../files/folderParts.js';
import { readJournal, segmentName, segments, type Damage, type JournalEntry } from '../data/store/journalReader.js';
import { DiskRoom } from '../data/store/room.js';
import { lockRun, type RunLock } from '../data/store/runLock.js';
import { applyRecord, emptyLine, type AnnotationRecord, type Line } from './line.js';
import { parseRecord } from './schema.js';
import { Turns } from '../concurrency/turns.js';

/** Annotations of a run: an append-only log of their own beside the run's journal, in the same record format. */
export const annotationsDir = (run: string): string => join(run, 'annotations');

/** Lines by the id of the recorded trajectory. */
export type Lines = ReadonlyMap<string, Line>;
/**
 * The contents of a log. A torn tail is a write that was never answered; everything else in `damage`, and `skipped`
 * records, was lost.
 */
export interface LogContent {
  readonly lines: Lines;
  readonly records: number;
  /** Records that are not of this format. */
  readonly skipped: number;
  readonly damage: readonly Damage[];
}

class Collected {
  readonly lines = new Map<string, Line>();
  records = 0;
  skipped = 0;
  /** A batch is a thousand records, each checked word by word. */
  async take(batch: readonly JournalEntry[], turns: Turns): Promise<void> {
    for (const e of batch) {
      const r = parseRecord(e.event());
      if (r) this.apply(r);
      else this.skipped++;
      if (turns.over) await turns.next();
    }
  }
  apply(r: AnnotationRecord): void {
    this.lines.set(r.rollout, applyRecord(this.lines.get(r.rollout) ?? emptyLine, r));
    this.records++;
  }
}

/** Reads the log as it is now, also while another process writes it; needs no lock and changes nothing. */
export async function readLog(run: string): Promise<LogContent> {
  const damage: Damage[] = [],
    c = new Collected(),
    turns = new Turns();
  for await (const batch of readJournal(annotationsDir(run), { onDamage: (d) => damage.push(d) }))
    await c.take(batch, turns);
  return { lines: c.lines, records: c.records, skipped: c.skipped, damage: damage.filter((d) => !d.tail) };
}

/** Changes whenever something was written to the log; 'none' where there is none. */
export async function logMark(run: string): Promise<string> {
  const dir = annotationsDir(run),
    last = (await segments(dir)).at(-1);
  if (last === undefined) return 'none';
  const s = await stat(join(dir, segmentName(last)));
  return `${last}/${s.size}/${s.mtimeMs}`;
}

/** The log, open for writing. One writer: a second one is refused with `run.busy`. */
export class AnnotationLog {
  readonly #journal: Journal;
  readonly #lock: RunLock;
  readonly #content: Collected;
  readonly found: Omit<LogContent, 'lines'>;
  #closed = false;
  private constructor(journal: Journal, lock: RunLock, content: Collected, found: Omit<LogContent, 'lines'>) {
    this.#journal = journal;
    this.#lock = lock;
    this.#content = content;
    this.found = found;
  }

  /** Makes the log where there is none; cuts what a crash left half written. Rejects with `run.busy` or `store.io`. */
  static async open(run: string): Promise<AnnotationLog> {
    const dir = annotationsDir(run);
    let lock: RunLock | undefined;
    try {
      await folderInside(run, dir);
      await syncDir(run);
      const mine = (lock = await lockRun(dir));
      const content = new Collected(),
        turns = new Turns(),
        room = new DiskRoom();
      // A person waits for each edit, and is told when the disk is full: no write waits for room.
      await room.end();
      const { journal, recovery } = await Journal.open(dir, { room, fence: () => mine.verify() }, (batch) =>
        content.take(batch, turns),
      );
      return new AnnotationLog(journal, lock, content, {
        records: content.records,
        skipped: content.skipped,
        damage: recovery.damage,
      });
    } catch (e) {
      await lock?.release();
      if (e instanceof StudioError && e.kind === 'run.busy')
        throw new StudioError(
          'run.busy',
          `The annotations of this run are being edited by another process. ${e.error.message}`,
          'Edit them there, or close it first.',
          { cause: e },
        );
      throw e instanceof StudioError && e.kind !== 'store.io' ? e : unwritable(e, run);
    }
  }

  get lines(): Lines {
    return this.#content.lines;
  }
  get closed(): boolean {
    return this.#closed;
  }
  /**
   * Appends a record; on disk when resolved. A write that failed closes the log: what is on disk is found out when it
   * is opened again.
   */
  async append(r: AnnotationRecord): Promise<void> {
    try {
      await this.#journal.append(r);
    } catch (e) {
      await this.close();
      throw e instanceof StudioError && e.kind === 'run.lost' ? e : unwritable(e, annotationsDir(this.#journal.dir));
    }
    this.#content.apply(r);
  }
  /** Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#journal.close();
    await this.#lock.release();
  }
}

const unwritable = (e: unknown, run: string): StudioError =>
  new StudioError(
    'store.io',
    `The annotations cannot be written: ${e instanceof StudioError ? e.error.message : messageOf(e)}`,
    'Check free space and the permissions of the run folder, or copy the run to a folder you can write to.',
    { cause: e, details: { run } },
  );
