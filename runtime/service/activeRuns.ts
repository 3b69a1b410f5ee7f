import { join } from 'node:path';
import { toRunError } from '../domain/index.js';
import { jsonOrNothing } from '../foreign/json.js';
import { removeUnfinished } from '../files/removeUnfinished.js';
import { replaceFile } from '../files/replaceFile.js';
import { activeRunsBytes, activeRunsFile, parseActiveRuns, type ActiveRun } from '../protocol/activeRuns.js';
import type { RunPath } from '../protocol/types.js';
import { keepRecord, readOwnRecord } from './ownRecord.js';

/** A run during which this many daemons in a row died without anything new on disk is left stopped. */
export const DEATHS = 3;
/** The same, for one that writes something each time but neither learns nor is evaluated. */
export const IDLE_DEATHS = 10;
/** A run that has worked this long is not what kills its daemon. */
const SETTLED_MS = 10 * 60_000;
const BOUNDS = { depth: 8, values: 1 << 16 };

/** How many runs a record names; undefined where it is none. */
function listed(text: string): number | undefined {
  const { runs } = (jsonOrNothing(text, BOUNDS) ?? {}) as { readonly runs?: unknown };
  return Array.isArray(runs) ? runs.length : undefined;
}

/** How far a session has come since it was begun or resumed. */
export interface SessionProgress {
  /** Trajectories recorded. */
  readonly recorded: number;
  /** Version of the trainer's weights. */
  readonly version: number;
  readonly evaluations: number;
}

/**
 * The record of active runs, on disk before a run begins and gone when it has ended: what is found in it when a daemon
 * starts was interrupted. Written whole or not at all; changes are written one after another.
 */
export class ActiveRuns {
  readonly #dir: string;
  readonly #now: () => number;
  readonly #failed: (message: string) => void;
  readonly #loaded: Promise<void>;
  #runs: readonly ActiveRun[] = [];
  #writing: Promise<void>;
  #first: (SessionProgress & { readonly at: number }) | undefined;

  /**
   * `failed` is told when the record cannot be read or written: then nothing resumes by itself, and everything else goes
   * on.
   */
  constructor(dir: string, o: { readonly failed: (message: string) => void; readonly now?: () => number }) {
    this.#dir = dir;
    this.#now = o.now ?? Date.now;
    this.#failed = o.failed;
    this.#writing = this.#loaded = this.#load();
  }
  async #load(): Promise<void> {
    await removeUnfinished(this.#dir);
    const file = join(this.#dir, activeRunsFile),
      say = (why: string): void => this.#failed(`The record of active runs: ${why}`),
      text = await readOwnRecord(file, { most: activeRunsBytes, say });
    if (text === undefined) return;
    this.#runs = parseActiveRuns(text);
    if (this.#runs.length !== listed(text)) await keepRecord(file, text, say);
  }

  /** The runs known so far; all of them once `loaded`. */
  get runs(): readonly ActiveRun[] {
    return this.#runs;
  }
  get loaded(): Promise<void> {
    return this.#loaded;
  }
  /** Why a run is left stopped. */
  leftBecause(run: RunPath): string | undefined {
    return this.#runs.find((r) => r.run === run)?.left;
  }

  /** Records that a run is active; on disk when it resolves. */
  async begin(r: Pick<ActiveRun, 'run' | 'id' | 'name' | 'minutes' | 'alone'>): Promise<void> {
    await this.#loaded;
    this.#first = undefined;
    const before = this.#runs.find((x) => x.run === r.run && x.left === undefined);
    await this.#put({
      ...r,
      since: this.#now(),
      deaths: before?.deaths ?? 0,
      idleDeaths: before?.idleDeaths ?? 0,
      ...(before?.paused ? { paused: true } : {}),
    });
  }
  /** The last daemon ended while this run was active; on disk before it is resumed. */
  died(run: RunPath): Promise<void> {
    return this.#change(run, (r) => ({ ...r, deaths: r.deaths + 1, idleDeaths: r.idleDeaths + 1 }));
  }
  /** It did not end this time: the run could not be begun, and the daemon lives. On disk when it resolves. */
  survived({ run, deaths, idleDeaths }: Pick<ActiveRun, 'run' | 'deaths' | 'idleDeaths'>): Promise<void> {
    return this.#change(run, (r) => ({ ...r, deaths, idleDeaths }));
  }
  leave(run: RunPath, why: string): Promise<void> {
    return this.#change(run, (r) => ({ ...r, left: why }));
  }
  pause(run: RunPath, paused: boolean): Promise<void> {
    return this.#change(run, ({ paused: _, ...r }) => (paused ? { ...r, paused } : r));
  }
  end(run: RunPath): Promise<void> {
    return this.#runs.some((r) => r.run === run) ? this.#write(this.#runs.filter((r) => r.run !== run)) : this.#writing;
  }

  /** How far it has come; call it as often as you like. */
  async saw(run: RunPath, p: SessionProgress): Promise<void> {
    const first = (this.#first ??= { ...p, at: this.#now() }),
      r = this.#runs.find((x) => x.run === run);
    if (!r || (r.deaths === 0 && r.idleDeaths === 0)) return;
    const learned = p.version > first.version || p.evaluations > first.evaluations,
      lasting = learned || this.#now() - first.at >= SETTLED_MS,
      moved = lasting || p.recorded > first.recorded;
    if (lasting || (moved && r.deaths > 0))
      await this.#change(run, (x) => ({ ...x, deaths: 0, idleDeaths: lasting ? 0 : x.idleDeaths }));
  }

  /** Resolves when everything said so far is on disk. */
  async written(): Promise<void> {
    await this.#writing;
  }

  #put(r: ActiveRun): Promise<void> {
    return this.#write([...this.#runs.filter((x) => x.run !== r.run), r]);
  }
  #change(run: RunPath, how: (r: ActiveRun) => ActiveRun): Promise<void> {
    return this.#write(this.#runs.map((r) => (r.run === run ? how(r) : r)));
  }
  #write(runs: readonly ActiveRun[]): Promise<void> {
    const file = join(this.#dir, activeRunsFile),
      text = `${JSON.stringify({ format: 1, runs })}\n`;
    this.#runs = runs;
    this.#writing = this.#writing.then(() =>
      replaceFile(file, text, { durable: true, mode: 0o600 }).catch((e: unknown) => {
        this.#failed(`The record of active runs cannot be written: ${toRunError(e).message}`);
      }),
    );
    return this.#writing;
  }
}
