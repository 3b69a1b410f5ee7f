import { createHash, webcrypto } from 'node:crypto';
import { lstat, readdir } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { StudioError, messageOf } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { foreignJson } from '../foreign/json.js';
import { nextTurn } from '../concurrency/turns.js';
import { ForeignFileError, readForeign } from '../files/foreignFile.js';

/**
 * Files that tasks download, from a folder on this machine; nothing is fetched from the network.
 * A URL is found under, in this order: OSWorld's cache name `uuid5(URL)_basename` anywhere in the folder; the URL's
 * path (host/path, or any tail of it of two parts or more: a mirror of the file host); `<task id>/<name>` (OSWorld's
 * cache of gold files).
 */
export interface AssetStore {
  readonly dir: string | undefined;
  has(url: string, hint?: AssetHint): boolean;
  /** Rejects with `task.unsupported` when the file is missing. */
  read(url: string, hint?: AssetHint): Promise<Buffer>;
}
export interface AssetHint {
  /** Base name the task gives the file. */
  readonly name?: string;
  readonly task?: string;
}

/** RFC 4122 namespace for URLs. */
const NAMESPACE_URL = Buffer.from('6ba7b8119dad11d180b400c04fd430c8', 'hex');

/** Python's uuid.uuid5(uuid.NAMESPACE_URL, url). */
export function uuid5(url: string): string {
  const h = createHash('sha1').update(NAMESPACE_URL).update(url, 'utf8').digest().subarray(0, 16);
  h[6] = (h[6]! & 0x0f) | 0x50;
  h[8] = (h[8]! & 0x3f) | 0x80;
  const x = h.toString('hex');
  return `${x.slice(0, 8)}-${x.slice(8, 12)}-${x.slice(12, 16)}-${x.slice(16, 20)}-${x.slice(20)}`;
}

const missing = (url: string, dir: string | undefined): StudioError =>
  new StudioError(
    'task.unsupported',
    `The task downloads ${url}, which is not among the local assets.`,
    dir === undefined
      ? 'Give a folder of downloaded task files with --assets DIR.'
      : `Put the file into ${dir} under the name ${uuid5(url)}_NAME.`,
    { details: { needs: [`asset:${url}`] } },
  );

export const noAssets: AssetStore = {
  dir: undefined,
  has: () => false,
  read: (url) => Promise.reject(missing(url, undefined)),
};

/** A folder with more entries is not indexed: it cannot be an assets folder. */
const MAX_FILES = 200_000;
const MAX_BYTES = 512 * 1024 * 1024;

/** File of a mirror that `tasks fetch` made, which says what each file is. */
export const MANIFEST = 'manifest.json';
const entrySchema = z.object({ file: z.string(), bytes: z.number(), sha256: z.string() });
const manifestSchema = z.object({ files: z.record(z.string(), z.unknown()) });
export interface AssetManifest {
  readonly files: Readonly<Record<string, z.infer<typeof entrySchema>>>;
}
/** 8,000 files, several times what OSWorld's tasks download. */
const MANIFEST_BOUNDS = { depth: 4, values: 1 << 15 };
const MANIFEST_BYTES = 8 << 20;

/** The manifest of a mirror; empty where there is none. Rejects with `config.invalid` where it cannot be used. */
export async function readManifest(dir: string): Promise<AssetManifest> {
  const damaged = (why: string, cause?: unknown): StudioError =>
    new StudioError(
      'config.invalid',
      `${join(dir, MANIFEST)} is damaged: it ${why}.`,
      'Delete it and run `dart-studio tasks fetch` again.',
      { cause },
    );
  const data = await readForeign(join(dir, MANIFEST), MANIFEST_BYTES).catch((e: unknown) => {
    if (e instanceof ForeignFileError && e.code === 'ETOOLARGE') throw damaged(e.message, e);
    return undefined; // not every folder of assets is a mirror
  });
  if (!data) return { files: {} };
  const content = foreignJson(data.toString('utf8'), MANIFEST_BOUNDS, (why, _, cause) => damaged(why, cause));
  try {
    const files: [string, z.infer<typeof entrySchema>][] = [];
    for (const [i, [url, entry]] of Object.entries(manifestSchema.parse(content).files).entries()) {
      if (i % 2000 === 1999) await nextTurn();
      files.push([url, entrySchema.parse(entry)]);
    }
    return { files: Object.fromEntries(files) };
  } catch (cause) {
    throw damaged(`is no manifest (${messageOf(cause).slice(0, 200)})`, cause);
  }
}

/** An empty file of this name in a folder says that tasks may read every file below it. */
export const MARK = '.dart-assets';
/** Folders that the command line has named. */
const named = new Set<string>();
/** A person gives this folder to tasks, by the command line; returns its absolute path. */
export function giveAssets(dir: string): string {
  const path = resolve(dir);
  named.add(path);
  return path;
}

/**
 * The folder that a run file names, which may be a stranger's: it would otherwise give its tasks, and the model server
 * that sees their screens, any folder of this machine. So the folder itself must say that it is for tasks, by its mark or
 * as a mirror made by `tasks fetch`, unless the command line has named it. Rejects with `config.invalid`.
 */
export async function openNamedAssets(dir: string): Promise<AssetStore> {
  const marked = async (name: string): Promise<boolean> =>
    (await orUndefined(lstat(join(dir, name)), 'a folder without one'))?.isFile() === true;
  if (named.has(resolve(dir)) || (await marked(MARK))) return openAssets(dir);
  const manifest: AssetManifest = (await marked(MANIFEST)) ? await readManifest(dir) : { files: {} };
  if (Object.keys(manifest.files).length > 0) return indexed(dir, manifest, true);
  throw new StudioError(
    'config.invalid',
    `tasks.assets: ${dir} does not say that tasks may read its files.`,
    `If they may read every file below it, put an empty file ${MARK} into it; \`dart-studio tasks fetch\` makes a folder of its own.`,
  );
}

/** Indexes a folder of assets once. Rejects with `config.invalid` when it cannot be listed. */
export const openAssets = async (dir: string): Promise<AssetStore> => indexed(dir, await readManifest(dir), false);

/** `only`: no file that the manifest does not name. */
async function indexed(dir: string, manifest: AssetManifest, only: boolean): Promise<AssetStore> {
  const hashes = new Map(Object.values(manifest.files).map((f) => [f.file, f.sha256]));
  let entries;
  try {
    entries = await readdir(dir, { recursive: true, withFileTypes: true });
  } catch (cause) {
    throw new StudioError(
      'config.invalid',
      `The assets folder ${dir} cannot be read.`,
      'Give an existing folder with --assets DIR.',
      { cause },
    );
  }
  const files = entries
    .filter((e) => e.isFile())
    .slice(0, MAX_FILES)
    .map((e) => join(e.parentPath, e.name))
    .filter((f) => !only || hashes.has(relative(dir, f)));
  const byName = new Map<string, string>();
  const byTail = new Map<string, string>();
  for (const [i, f] of files.entries()) {
    if (i % 2000 === 1999) await nextTurn();
    byName.set(basename(f), f);
    const id = /^([0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})(_|$)/.exec(basename(f))?.[1];
    if (id !== undefined && !byName.has(id)) byName.set(id, f);
    byTail.set(relative(dir, f).split(sep).join('/'), f);
  }
  const find = (url: string, hint: AssetHint = {}): string | undefined => {
    const id = uuid5(url);
    const named = (hint.name !== undefined ? byName.get(`${id}_${hint.name}`) : undefined) ?? byName.get(id);
    if (named !== undefined) return named;
    for (const tail of urlTails(url)) {
      const f = byTail.get(tail);
      if (f !== undefined) return f;
    }
    return hint.task !== undefined && hint.name !== undefined ? byTail.get(`${hint.task}/${hint.name}`) : undefined;
  };
  return {
    dir,
    has: (url, hint) => find(url, hint) !== undefined,
    read: async (url, hint) => {
      const f = find(url, hint);
      if (f === undefined) throw missing(url, dir);
      const data = await readForeign(f, MAX_BYTES).catch((cause: unknown) => {
        if (!(cause instanceof ForeignFileError)) throw cause;
        throw new StudioError('task.unsupported', `The asset ${f} ${cause.message}.`, 'Use a smaller, regular file.', {
          cause,
        });
      });
      const hash = hashes.get(relative(dir, f));
      if (hash !== undefined && (await sha256(data)) !== hash)
        throw new StudioError(
          'task.unsupported',
          `The asset ${f} is not what the mirror's manifest says.`,
          'Delete it and run `dart-studio tasks fetch` again.',
        );
      return data;
    },
  };
}

/** Off this thread: a file may have hundreds of megabytes. */
const sha256 = async (data: Buffer): Promise<string> =>
  Buffer.from(await webcrypto.subtle.digest('SHA-256', data as Uint8Array<ArrayBuffer>)).toString('hex');

/** Parts of the longest tail: addresses come from task files of others, and all tails of a long one are its square. */
const DEEPEST = 32;
/** host/path, then shorter and shorter tails of the path, the shortest of two parts. */
function urlTails(url: string): string[] {
  let u: URL;
  try {
    u = new URL(url);
  } catch {
    return [];
  }
  const parts = [
    u.host,
    ...u.pathname
      .split('/')
      .filter((p) => p !== '')
      .map(decode),
  ];
  const tails: string[] = [];
  for (let i = Math.max(0, parts.length - DEEPEST); i + 1 < parts.length; i++) tails.push(parts.slice(i).join('/'));
  return tails;
}
function decode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}
