import { orUndefined } from '../concurrency/failures.js';
import { readForeign } from '../files/foreignFile.js';
import * as m from '../protocol/methods.js';
import { schemas, type Handlers } from './params.js';

/** Bytes of one answer: more pictures than that are asked for again. */
const MOST_BYTES = 64 << 20;

/** `frame/pictures`: what `frame/thumbnails` names, as bytes. */
export function pictureHandlers(h: Handlers): void {
  const thumbnails = h.map.get(m.thumbnails.method)!;
  h.on(m.pictures, schemas.thumbnails, async (p, c) => {
    const { paths } = (await thumbnails(p, c)) as { readonly paths: Readonly<Record<string, string>> },
      pictures: Record<string, string> = {};
    let bytes = 0;
    for (const [hash, path] of Object.entries(paths)) {
      const png = await orUndefined(readForeign(path, MOST_BYTES - bytes), 'it is missing, as any that cannot be read');
      if (!png) continue;
      bytes += png.length;
      pictures[hash] = png.toString('base64');
    }
    return { pictures };
  });
}
