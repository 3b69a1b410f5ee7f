import type { FileHandle } from 'node:fs/promises';
import { ignoreFailure } from '../../concurrency/failures.js';
import { openSegment } from './journalReader.js';

interface Open {
  readonly file: Promise<FileHandle>;
  users: number;
}
/** A journal grows for weeks: so many of its files are kept open for reading, those used last. */
const MOST = 8;

/** Files of a journal's segments, opened when one is read. */
export class SegmentFiles {
  readonly #dir: string;
  readonly #most: number;
  /** The one used last is the last. */
  readonly #open = new Map<number, Open>();

  constructor(dir: string, most = MOST) {
    this.#dir = dir;
    this.#most = most;
  }

  /** The file is open until `f` has ended. Rejects with `store.damaged` when it cannot be opened. */
  async use<T>(segment: number, f: (file: FileHandle) => Promise<T>): Promise<T> {
    const open = this.#open.get(segment) ?? { file: openSegment(this.#dir, segment), users: 0 };
    this.#open.delete(segment);
    this.#open.set(segment, open);
    open.users++;
    try {
      return await f(await this.#opened(segment, open));
    } finally {
      open.users--;
      this.#trim();
    }
  }
  /** Resolves when none is open. */
  async close(): Promise<void> {
    const all = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(all.map(closed));
  }

  /** Opens a segment; one that cannot be opened is tried again the next time. */
  async #opened(segment: number, open: Open): Promise<FileHandle> {
    try {
      return await open.file;
    } catch (e) {
      if (this.#open.get(segment) === open) this.#open.delete(segment);
      throw e;
    }
  }
  #trim(): void {
    for (const [segment, open] of this.#open) {
      if (this.#open.size <= this.#most) return;
      if (open.users > 0) continue;
      this.#open.delete(segment);
      ignoreFailure(closed(open), 'a file that was only read');
    }
  }
}
const closed = ({ file }: Open): Promise<void> =>
  file.then(
    (f) => f.close(),
    () => undefined,
  );
