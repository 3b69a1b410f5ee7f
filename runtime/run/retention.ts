import type { RunConfig } from '../config/index.js';
import { keepsAll, removedText, retain } from '../data/store/retention.js';
import type { DataManager } from '../data/dataManager.js';
import { toRunError } from '../domain/index.js';
import { freeBytes } from '../files/freeSpace.js';
import type { RunLog } from './runLog.js';

/** Interval between two looks for screens to remove. */
const EVERY_MS = 10 * 60_000;
/**
 * Interval between two looks at the disk. With less free room than this, screens are removed at once, while packs can
 * still be copied.
 */
const DISK_MS = 15_000,
  LOW_BYTES = 256 << 20;

/**
 * Applies `store.keep` while a run goes on, and when its disk is full. What people annotated stays in the run's index,
 * whatever is kept.
 */
export class Retention {
  readonly #config: RunConfig;
  readonly #data: DataManager;
  readonly #log: RunLog;
  readonly #annotated: () => Promise<ReadonlySet<string>>;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #disk: NodeJS.Timeout | undefined;
  #low = false;
  #busy: Promise<void> | undefined;

  constructor(
    config: RunConfig,
    data: DataManager,
    log: RunLog,
    annotated: () => Promise<ReadonlySet<string>> = () => Promise.resolve(new Set()),
  ) {
    this.#config = config;
    this.#data = data;
    this.#log = log;
    this.#annotated = annotated;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), EVERY_MS).unref();
    this.#disk = setInterval(() => void this.#lookAtDisk(), DISK_MS).unref();
    void this.look();
  }
  async #lookAtDisk(): Promise<void> {
    const free = await freeBytes(this.#data.store.dir),
      before = this.#low;
    this.#low = free !== undefined && free < LOW_BYTES;
    if (this.#low && !before) await this.look();
  }
  /** Removes the screens that the rules no longer keep; never runs twice at once. */
  look(): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.resolve();
    return (this.#busy ??= this.#look().finally(() => {
      this.#busy = undefined;
    }));
  }
  async close(): Promise<void> {
    clearInterval(this.#timer);
    clearInterval(this.#disk);
    this.#stop.abort();
    await this.#busy;
  }

  async #look(): Promise<void> {
    try {
      const annotated = await this.#annotated();
      if (annotated.size > 0) await this.#data.store.index.hold([...annotated]);
      if (keepsAll(this.#config.store.keep)) return;
      const o = {
        rules: this.#config.store.keep,
        successes: this.#config.curation.pool.maxPerFamily,
        annotated,
        dry: false,
        now: Date.now(),
        signal: this.#stop.signal,
      };
      await retain(this.#data.store, o, async (r) => {
        await this.#data.note(r);
        this.#log.note(`Retention ${removedText(r)}.`);
      });
    } catch (e) {
      this.#log.note(`Screens could not be removed: ${toRunError(e).message}`);
    }
  }
}
