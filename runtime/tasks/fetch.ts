import { webcrypto } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StudioError, messageOf, orUndefined } from '../domain/index.js';
import { pause } from '../domain/pause.js';
import { readForeign } from '../files/foreignFile.js';
import { MANIFEST, readManifest, uuid5, type AssetManifest } from './assets.js';
import type { CheckedTask } from './check.js';
import { assetsOf } from './needs.js';

export interface FetchOptions {
  /** Folder that becomes the mirror; a run uses it as `tasks.assets`. */
  readonly into: string;
  /** Where to download from in place of each address's own host, e.g. `https://mirror.example/osworld`. */
  readonly mirror?: string | undefined;
  readonly signal: AbortSignal;
  readonly onFile?: (f: FetchedFile, done: number, of: number) => void;
  /** Downloads at the same time. */
  readonly atOnce?: number;
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

/** Every file that these tasks download, by address, each once. */
export function downloadsOf(tasks: readonly CheckedTask[]): string[] {
  const urls = tasks.flatMap(({ task }) => (task ? assetsOf(task).map((a) => a.url) : []));
  return [...new Set(urls)].sort();
}

/**
 * Mirrors what tasks download into a folder, with a manifest of sizes and SHA-256. Files that are there are left alone,
 * and one that was cut off goes on where it ended, so an interrupted call is simply repeated. A file that cannot be
 * had is reported, and the others go on. Rejects with `config.invalid` for a mirror that is no address, with
 * `cancelled`.
 */
export async function fetchAssets(urls: readonly string[], o: FetchOptions): Promise<FetchReport> {
  const from = sourceOf(o.mirror);
  await mkdir(o.into, { recursive: true });
  const manifest: Record<string, AssetManifest['files'][string]> = { ...(await readManifest(o.into)).files },
    files: FetchedFile[] = [],
    waiting = [...urls];
  const save = async (): Promise<void> => {
    const temporary = join(o.into, `.${MANIFEST}.part`);
    await writeFile(temporary, `${JSON.stringify({ version: 1, files: manifest }, null, 1)}\n`);
    await rename(temporary, join(o.into, MANIFEST));
  };
  const worker = async (): Promise<void> => {
    for (let url = waiting.shift(); url !== undefined; url = waiting.shift()) {
      const f = await one(url, from(url), o, manifest);
      files.push(f);
      o.onFile?.(f, files.length, urls.length);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(o.atOnce ?? 4, urls.length) }, worker));
  } finally {
    await save();
  }
  const count = (state: FetchedFile['state']): number => files.filter((f) => f.state === state).length;
  return {
    files: files.sort((a, b) => (a.url < b.url ? -1 : 1)),
    fetched: count('fetched'),
    there: count('there'),
    failed: count('failed'),
    bytes: files.reduce((n, f) => n + f.bytes, 0),
  };
}

/** Where an address is downloaded from. */
function sourceOf(mirror: string | undefined): (url: string) => string {
  if (mirror === undefined) return (url) => url;
  let base: URL;
  try {
    base = new URL(mirror);
  } catch {
    base = new URL('invalid:');
  }
  if (!['http:', 'https:'].includes(base.protocol))
    throw new StudioError('config.invalid', `--mirror ${mirror}: no http or https address`, 'Give the mirror’s URL.');
  return (url) => {
    const u = new URL(url);
    return `${base.origin}${base.pathname.replace(/\/+$/, '')}${u.pathname}${u.search}`;
  };
}

async function one(
  url: string,
  from: string,
  o: FetchOptions,
  manifest: Record<string, AssetManifest['files'][string]>,
): Promise<FetchedFile> {
  const name = uuid5(url),
    file = join(o.into, name),
    known = manifest[url],
    there = await orUndefined(stat(file), 'it is not there yet');
  if (known && there?.size === known.bytes) return { url, state: 'there', bytes: known.bytes };
  for (let tries = 1; ; tries++) {
    try {
      const part = `${file}.part`;
      await download(from, part, o.signal);
      const sha256 = await hashOf(part),
        { size } = await stat(part);
      await rename(part, file);
      manifest[url] = { file: name, bytes: size, sha256 };
      return { url, state: 'fetched', bytes: size };
    } catch (e) {
      if (o.signal.aborted)
        throw new StudioError(
          'cancelled',
          'The download was cancelled.',
          'Start it again: it continues where it stopped.',
          {
            cause: e,
          },
        );
      if (tries >= TRIES || e instanceof Refused) return { url, state: 'failed', bytes: 0, error: messageOf(e) };
      await pause(500 * tries, o.signal, () => new Error('cancelled'));
    }
  }
}

/** An answer that another try does not change. */
class Refused extends Error {}

/** Continues a file that was cut off, where the server knows how. */
async function download(from: string, part: string, signal: AbortSignal): Promise<void> {
  const have = (await orUndefined(stat(part), 'nothing is there yet'))?.size ?? 0,
    r = await fetch(from, { signal, ...(have > 0 ? { headers: { Range: `bytes=${have}-` } } : {}) });
  if (r.status === 416) {
    await rm(part, { force: true });
    throw new Error('the server has less than was received');
  }
  if (!r.ok || !r.body) {
    const why = `the server answered ${r.status}`;
    throw r.status >= 500 || r.status === 429 ? new Error(why) : new Refused(why);
  }
  const goesOn = r.status === 206;
  let bytes = goesOn ? have : 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(bytes > MAX_BYTES ? new Refused('the file is larger than 512 MB') : null, chunk);
    },
  });
  await pipeline(
    Readable.fromWeb(r.body as Parameters<typeof Readable.fromWeb>[0]),
    bounded,
    createWriteStream(part, { flags: goesOn ? 'a' : 'w' }),
    { signal },
  );
}

/** Off this thread. */
async function hashOf(file: string): Promise<string> {
  const data = (await readForeign(file, MAX_BYTES)) as Uint8Array<ArrayBuffer>;
  return Buffer.from(await webcrypto.subtle.digest('SHA-256', data)).toString('hex');
}
