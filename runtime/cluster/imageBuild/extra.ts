import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { lstat, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../../domain/index.js';
import { foreignChunks, readForeign } from '../../files/foreignFile.js';
import { tar } from '../../files/tar.js';
import { broken, entries } from '../imageExtra.js';
import type { RecipeFile } from './recipeFile.js';

/** A package file of a layer; too large to be held in memory. */
export interface Deb {
  readonly name: string;
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}
/** A layer of the user's own, as it is built (imageExtra.ts). */
export interface ExtraParts {
  readonly dir: string;
  /** All but packages. */
  readonly files: readonly RecipeFile[];
  readonly debs: readonly Deb[];
}

/** Bounds of a layer without its packages (files and folders, and bytes in all), and of the bytes of all packages. */
const MOST_ENTRIES = 5000,
  MOST_BYTES = 64 << 20,
  MOST_PACKAGES = 4 * 2 ** 30;
/** The longest path that a tar archive can name. */
const MOST_PATH = 100;
/** Folders that an overlay may write: both forms of the desktop take these and no others. */
const OVERLAY = /^overlay\/(etc|opt)(\/|$)/;
/** The agent's, which the host talks to. */
const AGENT = /^overlay\/opt\/dart(\/|$)/;

/** Reads a layer of the user's own. Rejects with `desktop.image`, naming the file, where it is no plain one. */
export async function extraParts(dir: string, debs: readonly string[]): Promise<ExtraParts> {
  const files: RecipeFile[] = [];
  let bytes = 0,
    count = 0;
  const taken = (path: string): void => {
    if (++count > MOST_ENTRIES) throw broken(dir, `It has more than ${MOST_ENTRIES} files and folders.`);
    if (Buffer.byteLength(path) > MOST_PATH) throw broken(dir, `${path} is longer than ${MOST_PATH} characters.`);
    if (path.startsWith('overlay/') && (!OVERLAY.test(path) || AGENT.test(path)))
      throw broken(dir, `${path}: an overlay has files for /etc and /opt, and none for /opt/dart.`);
  };
  const add = async (path: string): Promise<void> => {
    taken(path);
    const file = join(dir, path);
    try {
      const data = await readForeign(file, MOST_BYTES - bytes, { inside: dir });
      bytes += data.length;
      files.push({ path, executable: ((await stat(file)).mode & 0o100) !== 0, data });
    } catch (cause) {
      throw broken(dir, `${path} cannot be read: it ${messageOf(cause)}.`, cause);
    }
  };
  const walk = async (folder: string): Promise<void> => {
    for (const name of (await entries(dir, folder)).sort()) {
      const path = `${folder}/${name}`;
      if (!(await lstat(join(dir, path))).isDirectory()) await add(path);
      else {
        taken(path);
        await walk(path);
      }
    }
  };
  const names = await entries(dir, '.');
  for (const name of ['image.json', 'packages.txt', 'setup.sh']) if (names.includes(name)) await add(name);
  if (names.includes('overlay')) await walk('overlay');
  return { dir, files, debs: await readDebs(dir, debs) };
}

/** Digests by what was read: a recipe is asked for often, and a package has hundreds of megabytes. */
const known = new Map<string, string>();
async function readDebs(dir: string, names: readonly string[]): Promise<Deb[]> {
  const out: Deb[] = [];
  let left = MOST_PACKAGES;
  for (const name of names) {
    const file = join(dir, 'debs', name);
    try {
      const { size, ctimeMs, ino, dev } = await lstat(file),
        key = [file, size, ctimeMs, ino, dev].join('\0');
      if (size > left) throw new Error(`is too large: packages may have ${MOST_PACKAGES >> 20} MB in all`);
      left -= size;
      let sha256 = known.get(key);
      if (sha256 === undefined) {
        const hash = createHash('sha256');
        for await (const chunk of foreignChunks(file, { inside: dir, most: size })) hash.update(chunk);
        known.set(key, (sha256 = hash.digest('hex')));
      }
      out.push({ name, file, bytes: size, sha256 });
    } catch (cause) {
      throw broken(dir, `debs/${name} cannot be read: it ${messageOf(cause)}.`, cause);
    }
  }
  return out;
}

/** A package's bytes. Rejects at their end when they are not those that were read before. A chunk is valid until the next. */
export async function* debChunks({ dir }: ExtraParts, d: Deb): AsyncGenerator<Buffer, void, undefined> {
  const hash = createHash('sha256');
  for await (const chunk of foreignChunks(d.file, { inside: dir, most: d.bytes })) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest('hex') !== d.sha256) throw broken(dir, `debs/${d.name} changed while it was read.`);
}

/** Files of a layer, copied for a build, so that nothing changes meanwhile. */
export interface StagedExtra {
  readonly debs: readonly string[];
  readonly setup?: string;
  /** A tar archive of what is laid over the system. */
  readonly overlay?: string;
}
export async function stageExtra(extra: ExtraParts, into: string): Promise<StagedExtra> {
  await mkdir(into, { mode: 0o700 });
  const debs: string[] = [];
  for (const d of extra.debs) {
    const file = join(into, d.name);
    await pipeline(copied(debChunks(extra, d)), createWriteStream(file, { flags: 'wx' }));
    debs.push(file);
  }
  const setup = extra.files.find((f) => f.path === 'setup.sh'),
    overlay = extra.files.filter((f) => f.path.startsWith('overlay/'));
  if (setup) await writeFile(join(into, 'setup.sh'), setup.data);
  if (overlay.length > 0)
    await writeFile(
      join(into, 'overlay.tar'),
      tar(overlay.map((f) => ({ ...f, path: f.path.slice('overlay/'.length) }))),
    );
  return {
    debs,
    ...(setup ? { setup: join(into, 'setup.sh') } : {}),
    ...(overlay.length > 0 ? { overlay: join(into, 'overlay.tar') } : {}),
  };
}
async function* copied(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  for await (const c of chunks) yield Buffer.from(c);
}
