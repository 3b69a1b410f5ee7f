import { lstat, rm } from 'node:fs/promises';
import { StudioError } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { pause } from '../../concurrency/pause.js';
import { isFull } from '../../files/diskFull.js';
import { createFresh } from '../../files/folderParts.js';

/** How often a write that found the disk full is tried again: nothing tells when there is room, least of all a quota. */
const RETRY_MS = 1000;
/** What the last records of a run need, and its end. */
const RESERVE_BYTES = 4 << 20;

/**
 * Room on the disk of one run folder. A write that finds the disk full waits here and is made again when there is room,
 * and while one waits nothing else is acknowledged: a journal must not tell of screens that could not be kept. A reserve
 * file is given up when the run ends meanwhile, so that the journal can be closed.
 */
export class DiskRoom {
  readonly #reserve: string | undefined;
  readonly #listeners = new Set<(full: boolean) => void>();
  readonly #ending = new AbortController();
  #waiting = 0;
  #clear: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  /** `reserve`: the path of the reserve file; none without. */
  constructor(reserve?: string) {
    this.#reserve = reserve;
  }

  get full(): boolean {
    return this.#waiting > 0;
  }
  /** Called when the disk is found full, and when there is room again. */
  onChange(listener: (full: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Sets the reserve aside, unless it is there or there is no room for it. */
  async keepReserve(): Promise<void> {
    const file = this.#reserve;
    if (file === undefined) return;
    const there = await lstat(file).then(
      (s) => s.isFile() && s.size === RESERVE_BYTES,
      () => false,
    );
    if (there) return;
    const made = (async () => {
      const f = await createFresh(file, 0o600);
      try {
        // Written and not just made long: a hole takes no room.
        await f.writeFile(Buffer.alloc(RESERVE_BYTES, 0x5a));
      } finally {
        await f.close();
      }
    })();
    await made.catch(async () => {
      await orUndefined(rm(file, { force: true }), 'a reserve that is short is none');
    });
  }

  /** Resolves when no write waits for room: at once, as a rule. */
  async clear(): Promise<void> {
    while (this.#clear && !this.#ending.signal.aborted) await this.#clear.promise;
  }

  /**
   * Makes a write, as often as it takes; `write` must leave nothing behind when it fails. Rejects with its error when
   * that is another one, and when the run ends while the disk is full: `last` writes have the reserve then.
   */
  async write<T>(write: () => Promise<T>, o: { readonly last?: boolean } = {}): Promise<T> {
    let waits = false;
    try {
      for (;;) {
        const ended = this.#ending.signal.aborted;
        try {
          return await write();
        } catch (e) {
          if (!isFull(e) || ended) throw e;
          if (!waits) this.#wait();
          waits = true;
          await orUndefined(pause(RETRY_MS, this.#ending.signal, closing), 'then it is tried a last time');
          if (this.#ending.signal.aborted && !o.last) throw e;
        }
      }
    } finally {
      if (waits) this.#goOn();
    }
  }

  /** The run ends: what still waits is tried a last time, in the room of the reserve. */
  async end(): Promise<void> {
    if (this.#reserve !== undefined)
      await orUndefined(rm(this.#reserve, { force: true }), 'then the last records may not fit');
    this.#ending.abort();
    this.#clear?.resolve();
  }

  #wait(): void {
    if (++this.#waiting > 1) return;
    let resolve: () => void = () => undefined;
    const promise = new Promise<void>((r) => {
      resolve = r;
    });
    this.#clear = { promise, resolve };
    this.#tell(true);
  }
  #goOn(): void {
    if (--this.#waiting > 0) return;
    this.#clear?.resolve();
    this.#clear = undefined;
    this.#tell(false);
  }
  #tell(full: boolean): void {
    for (const l of [...this.#listeners]) l(full);
  }
}

const closing = (): StudioError => new StudioError('cancelled', 'The run ends.', 'Resume it when there is room.');
