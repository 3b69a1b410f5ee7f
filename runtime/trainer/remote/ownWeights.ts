import { mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { orUndefined } from '../../concurrency/failures.js';
import { errorCode } from '../../domain/index.js';
import { jsonOrNothing } from '../../foreign/json.js';
import { readForeignText } from '../../files/foreignFile.js';
import { replaceFile } from '../../files/replaceFile.js';
import { weightsIn } from './savedState.js';

/** File name, beside the checkpoints of a run. */
const FILE = 'weights.json';
const MOST_BYTES = 1 << 20,
  BOUNDS = { depth: 4, values: 1 << 14 };
const uris = z.array(z.string().max(4096));
const schema = z.object({
  /** `identityOf` the folder in which this was written: a copy of a run must not delete what the original needs. */
  folder: z.string(),
  /** Weights with optimizer, to go on from. */
  saved: uris,
  /** Weights for sampling. */
  exported: uris,
  /** Weights of another run that this one started from. */
  uses: uris,
});
type Listed = z.infer<typeof schema>;

/**
 * Weights that this run saved on its server, and which of them nothing needs any more. Each update saves some, and of a
 * large model they fill a disk. They stand in a file, so that a run that goes on after a crash knows them. What another
 * run saved or started from is never deleted: this looks at the runs beside it.
 */
export class OwnWeights {
  /** The folder's path as given. `#dir`: its real path. */
  readonly #given: string;
  #dir: string;
  readonly #saved = new Set<string>();
  readonly #exported = new Set<string>();
  readonly #uses = new Set<string>();
  #earlier: readonly string[] = [];
  #written: Promise<void> = Promise.resolve();
  #ended = false;

  /** `dir`: this run's checkpoints. */
  constructor(dir: string) {
    this.#given = this.#dir = resolve(dir);
  }
  /** Reads what earlier starts of this run saved. */
  async read(): Promise<void> {
    await orUndefined(mkdir(this.#dir, { recursive: true }), 'what is saved is not known later');
    this.#dir = await real(this.#dir);
    const l = await orUndefined(listIn(this.#dir), 'what was saved before stays on the server');
    if (!l) return;
    const own = l.folder === (await identityOf(this.#dir));
    for (const uri of l.uses) this.#uses.add(uri);
    for (const uri of l.saved) (own ? this.#saved : this.#uses).add(uri);
    if (!own) return;
    for (const uri of l.exported) this.#exported.add(uri);
    this.#earlier = l.exported;
  }

  saved(uri: string): Promise<void> {
    this.#saved.add(uri);
    return this.#write();
  }
  exported(uri: string): Promise<void> {
    this.#exported.add(uri);
    return this.#write();
  }
  /** Starts from a checkpoint; one of this run's own holds nothing new. */
  async startsFrom(checkpoint: string): Promise<void> {
    if ((await real(dirname(checkpoint))) === this.#dir) return;
    for (const uri of await weightsIn(checkpoint)) this.#uses.add(uri);
    await this.#write();
  }
  /** The server has deleted it, or cannot. */
  forgotten(uri: string): Promise<void> {
    this.#saved.delete(uri);
    this.#exported.delete(uri);
    return this.#write();
  }

  /** Exported by earlier starts: adapters have another name in each. */
  get earlierExports(): readonly string[] {
    return this.#earlier.filter((uri) => this.#exported.has(uri));
  }
  /**
   * Weights that neither a checkpoint here, nor `inUse`, nor another run names; none while one of these cannot be read.
   */
  async surplus(inUse: readonly (string | null)[]): Promise<string[]> {
    return (
      (await orUndefined(this.#surplus(inUse), 'what cannot be read may need them: the next save looks again')) ?? []
    );
  }
  async #surplus(inUse: readonly (string | null)[]): Promise<string[]> {
    const kept = new Set<string | null>(inUse);
    for (const name of await namesIn(this.#dir)) {
      if (name === FILE) continue;
      // One that is being deleted needs nothing.
      for (const uri of (await ifThere(weightsIn(join(this.#dir, name)))) ?? []) kept.add(uri);
    }
    const gone = [...this.#saved].filter((uri) => !kept.has(uri));
    if (gone.length === 0) return gone;
    const others = await this.#ofOthers();
    return gone.filter((uri) => !others.has(uri));
  }
  async #ofOthers(): Promise<ReadonlySet<string>> {
    const checkpoints = basename(this.#given),
      all = new Set<string>();
    // Runs beside a link to this one, and beside where it lies.
    for (const runs of new Set([this.#given, this.#dir].map((dir) => dirname(dirname(dir)))))
      for (const name of await namesIn(runs)) {
        const dir = join(runs, name, checkpoints);
        if ((await real(dir)) === this.#dir) continue;
        const l = await listIn(dir);
        for (const uri of l ? [...l.saved, ...l.uses] : []) all.add(uri);
      }
    return all;
  }

  /** Ends writing: nothing is written into the run's folder after this. */
  end(): Promise<void> {
    this.#ended = true;
    return this.#written;
  }
  /** Writes one after the other, each with what is known by then. */
  #write(): Promise<void> {
    if (this.#ended) return this.#written;
    const written = this.#written.then(() =>
      orUndefined(this.#writeNow(), 'a disk that is full keeps them there').then(() => undefined),
    );
    this.#written = written;
    return written;
  }
  async #writeNow(): Promise<void> {
    const l: Listed = {
      folder: await identityOf(this.#dir),
      saved: [...this.#saved],
      exported: [...this.#exported],
      uses: [...this.#uses],
    };
    await mkdir(this.#dir, { recursive: true });
    await replaceFile(join(this.#dir, FILE), `${JSON.stringify(l, null, 2)}\n`, { durable: true });
  }
}

/** The same after the folder was moved or reached through a link; another one for a copy of it, here or elsewhere. */
async function identityOf(dir: string): Promise<string> {
  const { ino, birthtimeNs } = await stat(dir, { bigint: true });
  return `${ino}-${birthtimeNs}`;
}
/** Of what is not there, is nobody's to read, or is no such file, nothing is known, now and later. */
const NOTHING = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'EIRREGULAR', 'ETOOLARGE', 'EDAMAGED']);
/** What is read, or undefined where there is nothing; rejects where a disk or the system fails just now. */
async function ifThere<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (e) {
    const code = errorCode(e) ?? (e instanceof Error ? errorCode(e.cause) : undefined);
    if (code === undefined || NOTHING.has(code)) return undefined;
    throw e;
  }
}
const real = async (dir: string): Promise<string> =>
  (await orUndefined(realpath(dir), 'a folder that is not there is where its path says')) ?? resolve(dir);
const namesIn = async (dir: string): Promise<readonly string[]> => (await ifThere(readdir(dir))) ?? [];
async function listIn(dir: string): Promise<Listed | undefined> {
  const text = await ifThere(readForeignText(join(dir, FILE), MOST_BYTES, { inside: dir }));
  return text === undefined ? undefined : schema.safeParse(jsonOrNothing(text, BOUNDS)).data;
}
