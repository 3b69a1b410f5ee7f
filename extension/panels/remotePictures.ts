/** Pictures of a runtime elsewhere as files of this machine: VS Code shows a page nothing else. Plain Node. */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Params, Result } from '../../runtime/protocol/requests.js';
import type { Runtime } from '../runtimePort.js';

const folders = (cache: string): string => join(cache, 'attached'),
  /** Name of this window's process. */
  own = `${process.pid}-${Math.round(performance.timeOrigin)}`;
/** Folder of everything that this window fetched, in a cache that pages may show. */
export const fetchedIn = (cache: string): string => join(folders(cache), own);
/** Folder of what this window fetched from this runtime. */
export const picturesOf = (cache: string, name: string): string =>
  join(fetchedIn(cache), name.replace(/[^\w-]+/g, '-'));

const leftMs = 24 * 60 * 60_000;
/** Removes what windows left that ended without `forgetFetched`: nothing was fetched into it for a day. */
export async function sweepFetched(cache: string, now = Date.now()): Promise<void> {
  for (const name of await readdir(folders(cache)).catch(() => [])) {
    const folder = join(folders(cache), name),
      at = await stat(folder).then(
        (s) => s.mtimeMs,
        () => now,
      );
    if (name !== own && now - at > leftMs) await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}
/** Removes synchronously, because the window ends. */
export function forgetFetched(cache: string): void {
  try {
    rmSync(fetchedIn(cache), { recursive: true, force: true });
  } catch {
    // `sweepFetched` of another window does it.
  }
}

const isThere = (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  );
/** Written under a name of its own: another request may write the same picture. */
async function keep(file: string, png: string): Promise<void> {
  const part = `${file}.${randomBytes(6).toString('hex')}`;
  await mkdir(dirname(file), { recursive: true });
  try {
    await writeFile(part, Buffer.from(png, 'base64'));
    await rename(part, file);
  } finally {
    await rm(part, { force: true });
  }
}
/** Answers as the runtime of this machine does to `frame/thumbnails`; the hashes are unchecked here. */
export async function fetchPictures(
  runtime: Pick<Runtime, 'call'>,
  p: Params<'frame/thumbnails'>,
  folder: string,
  signal: AbortSignal,
): Promise<Result<'frame/thumbnails'>> {
  const asked = [...new Set(p.hashes)].filter((h) => /^[0-9a-f]{64}$/.test(h)),
    fileOf = (hash: string): string => join(folder, String(Number(p.width)), hash.slice(0, 2), `${hash}.png`),
    there = await Promise.all(asked.map((h) => isThere(fileOf(h)))),
    got = new Set(asked.filter((_h, i) => there[i]));
  let missing = asked.filter((_h, i) => !there[i]),
    some = missing.length > 0;
  // An answer is bounded: what it has no room for is asked for again, while answers bring something.
  while (some) {
    const { pictures } = await runtime.call('frame/pictures', { ...p, hashes: missing }, signal),
      before = missing.length;
    for (const hash of missing) {
      const png = pictures[hash],
        file = fileOf(hash);
      if (typeof png !== 'string') continue;
      await keep(file, png).catch(() => undefined);
      if (await isThere(file)) got.add(hash);
    }
    missing = missing.filter((h) => !got.has(h));
    some = missing.length > 0 && missing.length < before;
  }
  // Says to `sweepFetched` that its window lives.
  await utimes(dirname(folder), new Date(), new Date()).catch(() => undefined);
  return { paths: Object.fromEntries([...got].map((h) => [h, fileOf(h)])) };
}
