import { opendir, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { StudioError, safeRelative } from '../domain/index.js';
import { ForeignFileError, foreignChunks, openForeign, readForeign } from '../files/foreignFile.js';
import { importedJson } from './json.js';
import { Unusable, limits } from './types.js';

const archives: readonly (readonly [string, readonly number[]])[] = [
  ['zip', [0x50, 0x4b, 0x03, 0x04]],
  ['gzip', [0x1f, 0x8b]],
  ['7z', [0x37, 0x7a, 0xbc, 0xaf]],
  ['rar', [0x52, 0x61, 0x72, 0x21]],
  ['zstd', [0x28, 0xb5, 0x2f, 0xfd]],
  ['xz', [0xfd, 0x37, 0x7a, 0x58]],
  ['bzip2', [0x42, 0x5a, 0x68]],
];

/**
 * The files of an import: regular ones below one real folder, whatever names, links or paths the files themselves give.
 * Archives are refused: unpacking one needs bounds that only the user's own tool and disk can set.
 */
export class ImportFolder {
  /** Real path. */
  readonly root: string;
  /** Set when a single file was named; then `root` is its folder. */
  readonly only: string | undefined;
  private constructor(root: string, only: string | undefined) {
    this.root = root;
    this.only = only;
  }

  /** Rejects with `config.invalid` for a path that is not there, or is an archive. */
  static async open(path: string): Promise<ImportFolder> {
    const real = await realpath(path).catch((e: NodeJS.ErrnoException) => {
      throw new StudioError(
        'config.invalid',
        `${path} cannot be read: ${e.code ?? e.message}.`,
        'Give the folder or file that holds the trajectories.',
        { cause: e },
      );
    });
    const s = await stat(real);
    if (s.isDirectory()) return new ImportFolder(real, undefined);
    if (!s.isFile())
      throw new StudioError(
        'config.invalid',
        `${path} is neither a file nor a folder.`,
        'Give the folder or file that holds the trajectories.',
      );
    const head = await readSlice(real, 0, 8),
      kind =
        archives.find(([, magic]) => magic.every((b, i) => head[i] === b))?.[0] ??
        (/\.tar$/i.test(real) ? 'tar' : undefined);
    if (kind)
      throw new StudioError(
        'config.invalid',
        `${path} is a ${kind} archive; archives are not read.`,
        'Unpack it, and import the folder it gives.',
      );
    return new ImportFolder(dirname(real), real);
  }

  /** A path for people, relative to the folder named. */
  name(path: string): string {
    return relative(this.root, path) || path;
  }

  /**
   * A file named by the import's own data, relative to `base`: a regular file inside the folder after all links are
   * followed, or Unusable.
   */
  async file(base: string, name: string): Promise<string> {
    if (name === '' || name.includes('\0') || name.length > 1024) throw new Unusable('a file name is empty or not one');
    if (!safeRelative(name))
      throw new Unusable(`${quoted(name)} leads out of the import folder`, {
        remedy: 'Only files inside the folder that is imported are read; put them there and name them relative to it.',
      });
    const real = await realpath(join(base, name)).catch((e: NodeJS.ErrnoException) => {
      throw new Unusable(`${quoted(name)} is missing${e.code === 'ENOENT' ? '' : ` (${e.code ?? 'unreadable'})`}`);
    });
    if (!this.#inside(real))
      throw new Unusable(`${quoted(name)} is a link out of the import folder`, {
        remedy: 'Copy what it points to into the folder.',
      });
    if (!(await stat(real)).isFile()) throw new Unusable(`${quoted(name)} is not a regular file`);
    return real;
  }
  /** The same, undefined when it is not there. */
  async maybe(base: string, name: string): Promise<string | undefined> {
    return this.file(base, name).catch((e: unknown) => {
      if (e instanceof Unusable && /is missing$/.test(e.message)) return undefined;
      throw e;
    });
  }
  #inside(real: string): boolean {
    return real === this.root || real.startsWith(this.root.endsWith(sep) ? this.root : this.root + sep);
  }

  /**
   * Folders below the root, itself first, each with the names of its files that `wanted` accepts; in order of names.
   * Links to folders are not followed.
   */
  async *walk(
    wanted: (name: string) => boolean,
  ): AsyncGenerator<{ readonly dir: string; readonly files: readonly string[] }, void, undefined> {
    const todo: { dir: string; depth: number }[] = [{ dir: this.root, depth: 0 }];
    for (let seen = 0, at = todo.pop(); at; at = todo.pop()) {
      const files: string[] = [],
        dirs: string[] = [];
      for await (const e of await opendir(at.dir)) {
        if (++seen > limits.entries)
          throw new StudioError(
            'config.invalid',
            `${this.root} holds more than ${limits.entries} files and folders.`,
            'Import its parts one after the other.',
          );
        if (e.isDirectory()) dirs.push(e.name);
        else if (wanted(e.name)) files.push(e.name);
      }
      if (files.length > 0) yield { dir: at.dir, files: files.sort() };
      if (at.depth < limits.depth)
        for (const d of dirs.sort().reverse()) todo.push({ dir: join(at.dir, d), depth: at.depth + 1 });
    }
  }
}

const quoted = (name: string): string => `'${name.length > 120 ? `${name.slice(0, 120)}…` : name}'`;

/**
 * A file of an import whole. Paths are real ones, checked to be inside the folder: what is a link now was not one then.
 * Unusable beyond `max` bytes.
 */
export const readWhole = (file: string, max: number): Promise<Buffer> =>
  readForeign(file, max, { follow: false }).catch(unusable);
/** A small text file whole. Unusable beyond `max` bytes. */
export const readSmall = async (file: string, max: number): Promise<string> =>
  (await readWhole(file, max)).toString('utf8');

/** The bytes of a file of an import, in chunks that are valid until the next one is asked for. */
export async function* chunksOf(file: string): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* foreignChunks(file, { follow: false, most: limits.file });
  } catch (e) {
    unusable(e);
  }
}
function unusable(e: unknown): never {
  throw e instanceof ForeignFileError ? new Unusable(e.message) : e;
}

export async function readSlice(file: string, offset: number, length: number): Promise<Buffer> {
  const f = await openForeign(file, { follow: false }).catch(unusable);
  try {
    const out = Buffer.alloc(length);
    let have = 0;
    for (let n = -1; have < length && n !== 0; have += n)
      n = (await f.read(out, have, length - have, offset + have)).bytesRead;
    return out.subarray(0, have);
  } finally {
    await f.close();
  }
}

/** Lines of a text file, 1-based, one at a time; a line longer than `max` bytes comes without its text. */
export async function* lines(
  file: string,
  max: number = limits.line,
): AsyncGenerator<{ readonly line: number; readonly text: string | undefined }, void, undefined> {
  let parts: Buffer[] = [],
    bytes = 0,
    line = 1;
  const take = (): { line: number; text: string | undefined } => {
    const text =
      bytes > max
        ? undefined
        : Buffer.concat(parts)
            .toString('utf8')
            .replace(/^\ufeff/, '')
            .replace(/\r$/, '');
    parts = [];
    bytes = 0;
    return { line: line++, text };
  };
  for await (const chunk of chunksOf(file)) {
    let from = 0;
    for (let nl = chunk.indexOf(10); nl >= 0; nl = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, nl));
      yield take();
      from = nl + 1;
    }
    add(chunk.subarray(from));
  }
  if (bytes > 0) yield take();
  function add(b: Buffer): void {
    bytes += b.length;
    // A copy: the chunk it lies in may be reused, and is larger.
    if (bytes <= max) parts.push(Buffer.from(b));
    else parts = [];
  }
}

/** JSON of one line, or Unusable in words a person can act on. */
export function parseLine(text: string | undefined): unknown {
  if (text === undefined) throw new Unusable(`the line is longer than ${limits.line >> 20} MB`);
  return importedJson(text, 'the line');
}
