import { orUndefined } from '../../concurrency/failures.js';
import { freeBytes } from '../../files/freeSpace.js';
import type { FrameAppender } from './frameAppender.js';
import { readPlace, type FramePacks, type Pack } from './framePacks.js';
import type { Packed } from './packRecord.js';

/** Bytes of frames that are copied together: what a rollout's screen waits behind. */
const SLICE = 2 << 20;
/** Free bytes that a copy leaves alone. */
const SPARE = 64 << 20;

export interface CompactOptions {
  /** A pack of which a smaller share counts is written anew. */
  readonly share: number;
  /** A pack without contents, to which somebody added within so many ms, may still be somebody's. */
  readonly restMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Gives back the room of frames that were removed. What still counts in a pack is appended anew, as any frame is, and
 * the file goes when all of it is on disk: killed in between, a frame is there twice. Packs in which nothing counts
 * go first, since a copy needs room itself; where there is not enough, a pack stays.
 */
export async function compact(packs: FramePacks, to: FrameAppender, o: CompactOptions): Promise<void> {
  await packs.known();
  await packs.refresh();
  // A copy in an older pack must not count again when the newer one goes.
  await packs.list();
  const poor = packs.all
    .filter((p) => mayGo(p, to, o.restMs) && p.live < o.share * (p.live + p.dead))
    .sort((a, b) => a.live - b.live);
  for (const pack of poor) {
    if (o.signal?.aborted) return;
    const empty = pack.live === 0 || (await orUndefined(moved(pack, packs, to, o.signal), 'then it stays as it is'));
    if (empty) await packs.discard(pack);
  }
  // There may be room now.
  await packs.list();
}
/** Whether nobody adds to it any more. */
export const mayGo = (p: Pack, to: FrameAppender, restMs: number): boolean =>
  !to.adds(p) && (p.sealed || p.own || p.changedAt < Date.now() - restMs);

/** Whether everything that can be read of it is elsewhere. */
async function moved(pack: Pack, packs: FramePacks, to: FrameAppender, signal?: AbortSignal): Promise<boolean> {
  // The copy would wait behind what waits for room.
  if (to.full) return false;
  const free = await freeBytes(packs.dir);
  if (free !== undefined && free < pack.live + SPARE) return false;
  let slice: Packed[] = [],
    bytes = 0;
  const copy = async (): Promise<void> => {
    const some = slice;
    slice = [];
    bytes = 0;
    await Promise.all(some.map((f) => copied(f, pack, packs, to)));
  };
  for (const f of await packs.liveOf(pack)) {
    if (signal?.aborted) return false;
    slice.push(f);
    if ((bytes += f.bytes) >= SLICE) await copy();
  }
  await copy();
  return true;
}
/** A damaged record is not: it is missing from then on. */
async function copied(f: Packed, pack: Pack, packs: FramePacks, to: FrameAppender): Promise<void> {
  const hash = f.name.toString('hex'),
    frame = await readPlace(packs.placeOf(hash, { pack: pack.number, at: f.at, bytes: f.bytes }));
  // A frame that was removed meanwhile does not come back.
  const now = packs.find(hash);
  if (frame && now?.pack === pack.number && now.at === f.at) await to.append(hash, frame);
}
