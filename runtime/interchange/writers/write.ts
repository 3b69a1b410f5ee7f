import { createHash } from 'node:crypto';
import { mkdir, open, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FrameRef, RolloutId, Trajectory, TrajectoryView } from '../../domain/index.js';
import type { CoordinateMode } from '../../policy/actions/coordinates.js';
import type { RunReader } from '../../data/store/runStore.js';
import { ForeignFileError } from '../../files/foreignFile.js';
import { Unusable } from '../types.js';
import { errorCode } from '../../domain/index.js';

export interface WriteOptions {
  /** Coordinates of UI-TARS text. */
  readonly coordinates: CoordinateMode;
}
/** A recorded trajectory for people. Whoever exports gives it: this room knows no policy or trainer. */
export type ReadView = (run: RunReader, rollout: RolloutId) => Promise<TrajectoryView>;
/** Heading under which a trajectory's task is listed. */
export type DomainOf = (t: Pick<Trajectory, 'task' | 'family'>) => string | undefined;
export interface WriteContext {
  readonly run: RunReader;
  readonly view: ReadView;
  /** Folder of this part of the export. */
  readonly dir: string;
  readonly options: WriteOptions;
  readonly domainOf?: DomainOf;
}

/**
 * Writes one format to one folder, a trajectory at a time. `add` rejects with Unusable, and leaves nothing of the
 * trajectory behind, when a frame is gone.
 */
export interface Writer {
  /** `from`: the trajectory in the run, and where its steps lie in it. */
  add(t: Trajectory, from: { readonly root: RolloutId; readonly places: readonly number[] }): Promise<void>;
  close(): Promise<void>;
}

/** A frame's PNG under a name of its own. Returns whether it was new. */
export async function copyFrame(run: RunReader, ref: FrameRef, to: string): Promise<boolean> {
  try {
    await writeFile(to, await run.frames.read(ref), { flag: 'wx' });
    return true;
  } catch (e) {
    const code = errorCode(e);
    if (code === 'EEXIST') return false;
    if (e instanceof ForeignFileError) throw new Unusable(`the file of frame ${ref.hash.slice(0, 12)} ${e.message}`);
    if (code === 'ENOENT') throw new Unusable(`frame ${ref.hash.slice(0, 12)} is missing in the run folder`);
    throw e;
  }
}

/** Pictures under the hash of their pixels, each once. */
export class Images {
  readonly #run: RunReader;
  readonly #dir: string;
  #made = false;
  constructor(run: RunReader, dir: string) {
    this.#run = run;
    this.#dir = dir;
  }
  /** The name that lines refer to, relative to the export's folder. */
  async put(ref: FrameRef): Promise<string> {
    if (!this.#made) {
      await mkdir(this.#dir, { recursive: true });
      this.#made = true;
    }
    await copyFrame(this.#run, ref, join(this.#dir, `${ref.hash}.png`));
    return `${ref.hash}.png`;
  }
}

/** A file of JSON lines, made with its first line. */
export class Lines {
  readonly #path: string;
  #file: FileHandle | undefined;
  constructor(path: string) {
    this.#path = path;
  }
  async add(line: unknown): Promise<void> {
    if (!this.#file) {
      await mkdir(dirname(this.#path), { recursive: true });
      this.#file = await open(this.#path, 'w');
    }
    await this.#file.writeFile(`${JSON.stringify(line)}\n`);
  }
  async close(): Promise<void> {
    await this.#file?.close();
  }
}

/**
 * A name for one folder or file: what a file name cannot hold is written with percent signs, so that it can be read
 * back; a long one ends in its hash.
 */
export function fileName(s: string): string {
  const safe = encodeURIComponent(s.replace(/[\ud800-\udfff]/gu, '\ufffd')).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16)}`,
  );
  if (safe.length > 180) return `${safe.slice(0, 150)}-${createHash('sha256').update(s).digest('hex').slice(0, 16)}`;
  if (safe === '') return '%00';
  return safe === '.' || safe === '..' ? `%2e${safe.slice(1)}` : safe;
}
