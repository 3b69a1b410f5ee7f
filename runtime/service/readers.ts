import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { StudioError, ServiceError } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { orUndefined } from '../concurrency/failures.js';
import { FollowedRun } from '../data/store/followedRun.js';
import { segmentName, segments } from '../data/store/journalReader.js';
import { dropSpareIndex, prepareIndex } from '../data/store/runIndex.js';
import { RunReader } from '../data/store/runStore.js';
import { runHolder } from '../data/store/runLock.js';
import type { RunPath } from '../protocol/types.js';

/** Runs kept open for reading; each has its index in a worker thread of its own. */
const OPEN = 4;

interface Open {
  readonly reader: Promise<RunReader>;
  readonly alive: boolean;
  /** Journal and index as they were opened. */
  readonly mark: Promise<string>;
  users: number;
  /** Replaced by another reader: it closes with its last user. */
  retired: boolean;
}
/** A run as its reader sees it; `release` when done with it. */
export interface ReadRun {
  readonly reader: RunReader;
  /** Another process is writing it. */
  readonly alive: boolean;
  release(): void;
}

/** Runs that this process does not write, opened on demand and kept for the next question. */
export class Readers {
  readonly #entry: ProcessEntry;
  readonly #open = new Map<RunPath, Open>();
  /** Called when a run of another process ended. */
  readonly #onEnd: (run: RunPath) => void;
  #closed = false;
  /** The first run is read sooner when its worker is there already; so is each after it. */
  constructor(entry: ProcessEntry, onEnd: (run: RunPath) => void) {
    this.#entry = entry;
    this.#onEnd = onEnd;
    prepareIndex(entry);
  }

  async use(run: RunPath): Promise<ReadRun> {
    const dir = resolve(run),
      open = await this.#get(dir);
    let mine = true;
    const release = (): void => {
      if (!mine) return;
      mine = false;
      if (--open.users === 0 && open.retired) close(open);
      this.#trim();
      // Prepared only now: earlier it would delay the query that was just waited for.
      if (!this.#closed) prepareIndex(this.#entry);
    };
    try {
      return { reader: await open.reader, alive: open.alive, release };
    } catch (e) {
      release();
      if (this.#open.get(dir) === open) this.#open.delete(dir);
      throw notThere(e, run);
    }
  }

  /** Counted as used from the moment it is chosen. */
  async #get(dir: RunPath): Promise<Open> {
    const used = (o: Open): Open => {
      o.users++;
      return o;
    };
    const there = this.#open.get(dir),
      alive = (await runHolder(dir)) !== undefined;
    if (there && this.#open.get(dir) === there) {
      // A run that somebody wrote since, or writes no more, is opened anew.
      const same =
        there.alive === alive && (alive ? !(await hasEnded(there.reader)) : (await there.mark) === (await markOf(dir)));
      // Somebody else may have found so meanwhile.
      if (this.#open.get(dir) === there) {
        if (same) {
          this.#open.delete(dir);
          this.#open.set(dir, there);
          return used(there);
        }
        this.forget(dir);
      }
    }
    const again = this.#open.get(dir);
    if (again) return used(again);
    const o = { index: this.#entry },
      reader = alive ? FollowedRun.open(dir, o) : RunReader.open(dir, o),
      open: Open = { reader, alive, mark: markOf(dir).catch(() => 'none'), users: 1, retired: false };
    this.#open.set(dir, open);
    reader.then(
      (r) => {
        if (r instanceof FollowedRun)
          r.onEnd(() => {
            this.#onEnd(dir);
          });
      },
      () => undefined,
    );
    return open;
  }

  /** This process writes or wrote the run: drops the outdated reader. */
  forget(run: RunPath): void {
    const dir = resolve(run),
      open = this.#open.get(dir);
    if (!open) return;
    this.#open.delete(dir);
    open.retired = true;
    if (open.users === 0) close(open);
  }
  #trim(): void {
    for (const [dir, o] of this.#open) {
      if (this.#open.size <= OPEN) return;
      if (o.users === 0) this.forget(dir);
    }
  }
  async close(): Promise<void> {
    const all = [...this.#open.values()];
    this.#open.clear();
    this.#closed = true;
    await dropSpareIndex(this.#entry);
    await Promise.all(
      all.map((o) =>
        o.reader.then(
          (r) => r.close(),
          () => undefined,
        ),
      ),
    );
  }
}

const close = (o: Open): void => {
  void o.reader.then(
    (r) => r.close(),
    () => undefined,
  );
};

/** Changes whenever something was written to the run. */
export async function markOf(dir: string): Promise<string> {
  const last = (await segments(`${dir}/journal`)).at(-1);
  if (last === undefined) return 'none';
  const s = await stat(`${dir}/journal/${segmentName(last)}`);
  return `${last}/${s.size}/${s.mtimeMs}`;
}

const notThere = (e: unknown, run: string): unknown =>
  e instanceof StudioError && e.error.details?.['code'] === 'ENOENT'
    ? new ServiceError(
        'not.found',
        `There is no run in ${run}.`,
        'List the runs again; it may have been moved or deleted.',
      )
    : e;

/** Whether the process that writes a run has ended it. A reader that could not be opened is tried again. */
async function hasEnded(reader: Promise<RunReader>): Promise<boolean> {
  const r = await orUndefined(reader, 'who asked for it hears why');
  return r instanceof FollowedRun && r.ended;
}
