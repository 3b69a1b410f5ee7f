import { RunReader, readMeta, runPaths, type RunStoreOptions } from './runStore.js';
import { follow, journalEnd, watchJournal, type Followed } from './follow.js';
import { PngFrameStore } from './frames.js';
import { readJournal } from './journalReader.js';
import { LocalIndex, WorkerIndex } from './runIndex.js';
import { runHolder } from './runLock.js';

/** How often to check that another process still writes the run: no event tells that it was killed. */
const ALIVE_MS = 5000;

/** A run that another process is writing: its index and followers learn of growth from the file system. */
export class FollowedRun extends RunReader {
  #ended = false;
  #watching: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #wake = new Set<() => void>();
  readonly #onEnd = new Set<() => void>();

  static override async open(dir: string, o: Pick<RunStoreOptions, 'index' | 'frames'>): Promise<FollowedRun> {
    const p = runPaths(dir),
      meta = await readMeta(dir),
      paths = { journal: p.journal, file: p.index };
    const run = new FollowedRun(
      dir,
      meta,
      new PngFrameStore(p.frames, o.frames),
      o.index === 'local' ? new LocalIndex(paths) : new WorkerIndex(o.index, paths),
    );
    run.#watching = watchJournal(p.journal, () => {
      void run.#grown();
    });
    run.#timer = setInterval(() => {
      void run.#look();
    }, ALIVE_MS).unref();
    await run.#grown();
    return run;
  }

  get ended(): boolean {
    return this.#ended;
  }
  /** Calls the listener once, when the run is no longer written. */
  onEnd(listener: () => void): void {
    if (this.#ended) listener();
    else this.#onEnd.add(listener);
  }

  override follow(sinceSeq: number, signal?: AbortSignal): AsyncGenerator<Followed, void, undefined> {
    const { journal } = runPaths(this.dir);
    return follow(
      {
        read: (o) => readJournal(journal, o),
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

  override async close(): Promise<void> {
    this.#end();
    await super.close();
  }

  async #grown(): Promise<void> {
    const end = await journalEnd(runPaths(this.dir).journal).catch(() => 0);
    if (end > 0) this.index.durable(end);
    for (const w of this.#wake) w();
  }
  async #look(): Promise<void> {
    if ((await runHolder(this.dir)) !== undefined) return;
    await this.#grown();
    this.#end();
  }
  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#watching?.();
    clearInterval(this.#timer);
    for (const w of this.#wake) w();
    for (const l of this.#onEnd) l();
    this.#onEnd.clear();
  }
}
