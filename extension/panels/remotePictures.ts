/** Pictures of a runtime elsewhere as files of this machine: VS Code shows a page nothing else. Plain Node. */
import { mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Params, Result } from '../../runtime/protocol/requests.js';
import type { Runtime } from '../runtimePort.js';

/** Folder of what was fetched from this runtime, in a cache that pages may show. */
export const picturesOf = (cache: string, name: string): string =>
  join(cache, 'attached', name.replace(/[^\w-]+/g, '-'));

const isThere = (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  );
/** As the runtime of this machine answers `frame/thumbnails`; its hashes were checked by nobody yet. */
export async function fetchPictures(
  runtime: Pick<Runtime, 'call'>,
  p: Params<'frame/thumbnails'>,
  folder: string,
  signal: AbortSignal,
): Promise<Result<'frame/thumbnails'>> {
  const asked = p.hashes.filter((h) => /^[0-9a-f]{64}$/.test(h)),
    fileOf = (hash: string): string => join(folder, String(Number(p.width)), hash.slice(0, 2), `${hash}.png`),
    there = await Promise.all(asked.map((h) => isThere(fileOf(h)))),
    missing = asked.filter((_h, i) => !there[i]);
  const got = new Set(asked.filter((_h, i) => there[i]));
  if (missing.length > 0) {
    const { pictures } = await runtime.call('frame/pictures', { ...p, hashes: missing }, signal);
    for (const hash of missing) {
      const png = pictures[hash];
      if (typeof png !== 'string') continue;
      const file = fileOf(hash),
        part = `${file}.${process.pid}`;
      await mkdir(dirname(file), { recursive: true });
      await writeFile(part, Buffer.from(png, 'base64'));
      await rename(part, file);
      got.add(hash);
    }
  }
  return { paths: Object.fromEntries([...got].map((h) => [h, fileOf(h)])) };
}
