import { webcrypto } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StudioError, messageOf, cancelled } from '../domain/index.js';
import { ignoreFailure, orUndefined } from '../concurrency/failures.js';
import { pause } from '../concurrency/pause.js';
import { readForeign } from '../files/foreignFile.js';
import { fileLock } from '../files/fileLock.js';
import { removeUnfinished } from '../files/removeUnfinished.js';
import { replaceFile } from '../files/replaceFile.js';
import { MANIFEST, readManifest, uuid5, type AssetManifest } from './assets.js';
import type { CheckedTask } from './check.js';
import {
  Refused,
  httpAddress,
  openDownload,
  isPublicAddress,
  type Download,
  type DownloadOptions,
} from './download.js';
import { Allowance, AGAIN, inWords, type FetchLimits } from './fetchAllowance.js';
import { assetsOf } from './needs.js';

export interface FetchOptions {
  /** Folder that becomes the mirror; a run uses it as `tasks.assets`. */
  readonly into: string;
  /** Address that replaces each download's own host, e.g. `https://mirror.example/osworld`. */
  readonly mirror?: string | undefined;
  /** Addresses of this machine and its network are asked too; those of a mirror always are. */
  readonly allowPrivate?: boolean;
  readonly signal: AbortSignal;
  readonly onFile?: (f: FetchedFile, done: number, of: number) => void;
  /** Another call fetches into this folder; this one goes on when it has ended. */
  readonly onWait?: () => void;
  /** Downloads at the same time. */
  readonly atOnce?: number;
  readonly limits?: Partial<FetchLimits>;
}
export interface FetchedFile {
  readonly url: string;
  readonly state: 'there' | 'fetched' | 'failed';
  readonly bytes: number;
  /** Why it failed. */
  readonly error?: string;
}
export interface FetchReport {
  readonly files: readonly FetchedFile[];
  readonly fetched: number;
  readonly there: number;
  readonly failed: number;
  readonly bytes: number;
}

const TRIES = 3;
/** Larger files are not used by runs. */
const MAX_BYTES = 512 * 1024 * 1024;
/** The manifest is written at most so often while files finish, ms. */
const SAVE_MS = 1000;

/** Every file that these tasks download, by address, each once. */
export function downloadsOf(tasks: readonly CheckedTask[]): string[] {
  const urls = tasks.flatMap(({ task }) => (task ? assetsOf(task).map((a) => a.url) : []));
  return [...new Set(urls)].sort();
}

/**
 * Mirrors what tasks download into a folder, with a manifest of sizes and SHA-256. Files that are there are left alone,
 * and one that was cut off goes on where it ended, so a call that was interrupted or killed is simply repeated. A file
 * that cannot be had is reported, and the others go on. One call at a time fetches into a folder: two would write into
 * one unfinished file, and each a manifest without what the other has fetched. Into a folder that has everything nothing
 * is written; it may be one that can only be read. Rejects with `config.invalid` for a mirror that is no address, with
 * `cancelled`.
 */
export async function fetchAssets(urls: readonly string[], o: FetchOptions): Promise<FetchReport> {
  const from = sourceOf(o.mirror),
    complete = urls.length > 0 && (await ifComplete(urls, o));
  if (complete) return complete;
  await mkdir(o.into, { recursive: true });
  const unlock = await fileLock(join(o.into, LOCK), {
    kind: 'config.invalid',
    signal: o.signal,
    ...(o.onWait ? { onWait: o.onWait } : {}),
  });
  try {
    await removeUnfinished(o.into, { of: MANIFEST });
    return await fetchAll(urls, from, o);
  } finally {
    await unlock();
  }
}

const LOCK = '.fetching';

async function ifComplete(urls: readonly string[], o: FetchOptions): Promise<FetchReport | undefined> {
  const known = new Map(Object.entries((await readManifest(o.into)).files)),
    files: FetchedFile[] = [];
  for (const url of urls) {
    const f = await ifThere(url, o.into, known);
    if (!f) return undefined;
    files.push(f);
  }
  files.forEach((f, i) => o.onFile?.(f, i + 1, files.length));
  return reportOf(files);
}

async function fetchAll(urls: readonly string[], from: (url: string) => string, o: FetchOptions): Promise<FetchReport> {
  const manifest = new Manifest(o.into, (await readManifest(o.into)).files),
    allowance = new Allowance(o),
    files: FetchedFile[] = [],
    waiting = [...urls];
  const worker = async (): Promise<void> => {
    for (let url = waiting.shift(); url !== undefined; url = waiting.shift()) {
      const f = await one(url, from, { ...o, allowance, manifest });
      files.push(f);
      o.onFile?.(f, files.length, urls.length);
    }
  };
  // All of them have ended before the manifest is written for the last time.
  const ends = await Promise.allSettled(Array.from({ length: Math.min(o.atOnce ?? 4, urls.length) }, worker));
  allowance.end();
  await manifest.close();
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return reportOf(files);
}

function reportOf(files: readonly FetchedFile[]): FetchReport {
  const count = (state: FetchedFile['state']): number => files.filter((f) => f.state === state).length;
  return {
    files: files.toSorted((a, b) => (a.url < b.url ? -1 : 1)),
    fetched: count('fetched'),
    there: count('there'),
    failed: count('failed'),
    bytes: files.reduce((n, f) => n + f.bytes, 0),
  };
}

type Entry = AssetManifest['files'][string];
/**
 * The list of a mirror's files. It is written soon after a file has finished, because nobody knows when the process is
 * killed or the power fails.
 */
class Manifest {
  readonly #dir: string;
  readonly #files: Map<string, Entry>;
  #savedAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  /** The last save: saves follow one another. */
  #saving: Promise<void> = Promise.resolve();

  constructor(dir: string, files: AssetManifest['files']) {
    this.#dir = dir;
    this.#files = new Map(Object.entries(files));
  }
  get(url: string): Entry | undefined {
    return this.#files.get(url);
  }
  add(url: string, entry: Entry): void {
    this.#files.set(url, entry);
    this.#timer ??= setTimeout(
      () => ignoreFailure(this.#save(), 'it is written again at the end, which reports it'),
      Math.max(0, this.#savedAt + SAVE_MS - performance.now()),
    );
  }
  /** Rejects where it cannot be written. */
  close(): Promise<void> {
    return this.#save();
  }
  #save(): Promise<void> {
    clearTimeout(this.#timer);
    const p = this.#saving.then(async () => {
      // Entries added from here on are written the next time.
      this.#timer = undefined;
      this.#savedAt = performance.now();
      const text = `${JSON.stringify({ version: 1, files: Object.fromEntries(this.#files) }, null, 1)}\n`;
      await replaceFile(join(this.#dir, MANIFEST), text, { durable: true });
    });
    this.#saving = p.catch(() => undefined);
    return p;
  }
}

/** Maps an address to the one to download from. Throws `Refused` for a text that is no address. */
function sourceOf(mirror: string | undefined): (url: string) => string {
  const base = mirror === undefined ? undefined : httpAddress(mirror);
  if (mirror !== undefined && !base)
    throw new StudioError('config.invalid', `--mirror ${mirror}: no http or https address`, 'Give the mirror’s URL.');
  return (url) => {
    const u = httpAddress(url);
    if (!u) throw new Refused('it is no http or https address');
    return base ? `${base.origin}${base.pathname.replace(/\/+$/, '')}${u.pathname}${u.search}` : url;
  };
}

async function ifThere(
  url: string,
  dir: string,
  manifest: { get(url: string): Entry | undefined },
): Promise<FetchedFile | undefined> {
  const known = manifest.get(url);
  if (!known) return undefined;
  const file = await orUndefined(stat(join(dir, uuid5(url))), 'it is not there yet');
  return file?.size === known.bytes ? { url, state: 'there', bytes: known.bytes } : undefined;
}

async function one(
  url: string,
  from: (url: string) => string,
  {
    allowance,
    manifest,
    ...o
  }: Pick<FetchOptions, 'into' | 'mirror' | 'allowPrivate' | 'signal'> & {
    readonly allowance: Allowance;
    readonly manifest: Manifest;
  },
): Promise<FetchedFile> {
  const failed = (error: string): FetchedFile => ({ url, state: 'failed', bytes: 0, error });
  const there = await ifThere(url, o.into, manifest);
  if (there) return there;
  const name = uuid5(url),
    file = join(o.into, name);
  for (let tries = 1; ; tries++) {
    if (allowance.spent !== undefined) return failed(allowance.spent);
    const time = allowance.forFile();
    try {
      const part = `${file}.part`;
      await download(from(url), part, {
        mayAsk: o.mirror !== undefined || o.allowPrivate ? () => true : isPublicAddress,
        signal: time.signal,
        received: (bytes) => allowance.received(bytes),
      });
      const sha256 = await hashOf(part),
        { size } = await stat(part);
      await rename(part, file);
      await rm(versionFile(part), { force: true });
      manifest.add(url, { file: name, bytes: size, sha256 });
      return { url, state: 'fetched', bytes: size };
    } catch (e) {
      if (o.signal.aborted)
        throw cancelled('The download', { cause: e, remedy: 'Start it again: it continues where it stopped.' });
      if (allowance.spent !== undefined) return failed(allowance.spent);
      if (time.signal.aborted)
        return failed(`it is not there after ${inWords(allowance.limits.fileMs, 3_600_000, 'h')}; ${AGAIN}`);
      if (tries >= TRIES || e instanceof Refused) return failed(messageOf(e));
      await pause(500 * tries, o.signal, () => new Error('cancelled'));
    } finally {
      time.end();
    }
  }
}

/** Name of the file that says which version of the server's file an unfinished one is the beginning of. */
const versionFile = (part: string): string => `${part}.version`;
/** A name of the server's version of a file that is exact to the byte; undefined where it gives none. */
function versionOf({ headers }: Download): string | undefined {
  const { etag } = headers;
  return etag !== undefined && !etag.startsWith('W/') ? etag : headers['last-modified'];
}

async function startAnew(part: string): Promise<void> {
  // The version first: a beginning without one is not gone on with.
  await rm(versionFile(part), { force: true });
  await rm(part, { force: true });
}

interface PartOptions extends Omit<DownloadOptions, 'headers'> {
  /** Told of the bytes as they arrive; throws where they are too many. */
  readonly received: (bytes: number) => void;
}
/** Continues a file that was cut off, where the server knows how and still has the same one. */
async function download(from: string, part: string, o: PartOptions): Promise<void> {
  const version = (await orUndefined(readForeign(versionFile(part), 1024), 'nobody knows what was begun'))?.toString(),
    begun = (await orUndefined(stat(part), 'nothing is there yet'))?.size ?? 0,
    have = version === undefined ? 0 : begun,
    r = await openDownload(from, {
      ...o,
      headers: {
        // Parts are counted in the bytes of the file, not in those of a compressed answer.
        'Accept-Encoding': 'identity',
        ...(have > 0 ? { Range: `bytes=${have}-`, 'If-Range': version! } : {}),
      },
    });
  try {
    await take(r, part, have, o);
  } finally {
    r.body.destroy();
  }
}

/** Writes what the server gives: the rest of `have` bytes, or all of it. */
async function take(
  r: Download,
  part: string,
  have: number,
  { signal, received }: Pick<PartOptions, 'signal' | 'received'>,
): Promise<void> {
  if (r.status === 416) {
    await startAnew(part);
    throw new Error('the server has less than was received');
  }
  if (r.status < 200 || r.status >= 300) {
    const why = `the server answered ${r.status}`;
    throw r.status >= 500 || r.status === 429 ? new Error(why) : new Refused(why);
  }
  if (!['identity', undefined].includes(r.headers['content-encoding']))
    throw new Refused('the server compresses the file, which it was not asked to');
  const goesOn = r.status === 206,
    range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(r.headers['content-range'] ?? '');
  if (goesOn && Number(range?.[1] ?? NaN) !== have) {
    await startAnew(part);
    throw new Error('the server answered with another part of the file');
  }
  if (!goesOn) {
    await startAnew(part);
    const now = versionOf(r);
    if (now !== undefined) await writeFile(versionFile(part), now);
  }
  await receive(r.body, part, { goesOn, have, total: goesOn ? Number(range?.[2]) : NaN, signal, received });
}

interface Receiving {
  readonly goesOn: boolean;
  readonly have: number;
  /** NaN where the server does not say it. */
  readonly total: number;
  readonly signal: AbortSignal;
  readonly received: PartOptions['received'];
}
async function receive(
  body: Download['body'],
  part: string,
  { goesOn, have, total, signal, received }: Receiving,
): Promise<void> {
  let bytes = goesOn ? have : 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      try {
        if (bytes > MAX_BYTES) throw new Refused('the file is larger than 512 MB');
        received(chunk.length);
        done(null, chunk);
      } catch (e) {
        done(e as Error);
      }
    },
  });
  await pipeline(body, bounded, createWriteStream(part, { flags: goesOn ? 'a' : 'w' }), { signal });
  if (Number.isNaN(total) || bytes === total) return;
  if (bytes > total) await startAnew(part);
  throw new Error(`the server gave ${bytes} of ${total} bytes`);
}

/** Off this thread. */
async function hashOf(file: string): Promise<string> {
  const data = (await readForeign(file, MAX_BYTES)) as Uint8Array<ArrayBuffer>;
  return Buffer.from(await webcrypto.subtle.digest('SHA-256', data)).toString('hex');
}
