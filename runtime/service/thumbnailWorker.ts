import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { decodeFrame } from '../data/store/decodeFrame.js';
import { readFrame, type FramePlace } from '../data/store/frames.js';
import { encodePng } from '../data/store/png.js';
import { messageOf } from '../domain/index.js';
import { oneByOne } from '../concurrency/workerPort.js';
import { digestOf } from '../files/digest.js';
import { replaceFile } from '../files/replaceFile.js';

export interface ThumbnailJob {
  readonly id: number;
  readonly from: FramePlace;
  readonly to: string;
  /** 0: as it is. */
  readonly width: number;
}
export interface ThumbnailDone {
  readonly id: number;
  readonly error?: string;
}

/** Body of the thumbnail worker: one picture after the other. */
export function runThumbnailWorker(): void {
  oneByOne<ThumbnailJob>('thumbnail', async (j, port) => {
    const done = thumbnail(j).then(
      (): ThumbnailDone => ({ id: j.id }),
      (e: unknown): ThumbnailDone => ({ id: j.id, error: messageOf(e) }),
    );
    port.postMessage(await done);
  });
}

async function thumbnail(j: ThumbnailJob): Promise<void> {
  const picture = await pictureOf(j);
  await mkdir(dirname(j.to), { recursive: true });
  await replaceFile(j.to, picture);
}

/**
 * All runs share the cache: a frame of a run folder that somebody else made counts only when it is what its name says.
 */
export async function pictureOf(j: Pick<ThumbnailJob, 'from' | 'width'>): Promise<Buffer> {
  const frame = await readFrame(j.from);
  if (j.width === 0 && digestOf(frame) === j.from.hash) return frame;
  const { width, height, rgb, right } = await decodeFrame(frame, j.from.hash);
  if (!right) throw new Error('The frame does not hold the pixels it was stored with.');
  if (j.width === 0) return frame;
  const small = shrink(rgb, width, height, Math.min(j.width, width));
  return encodePng(small.scanlines, small.width, small.height);
}

/**
 * Box filter: every source pixel counts in the output pixel its centre falls into. Gives PNG scanlines (a zero byte,
 * then RGB).
 */
export function shrink(
  rgb: Buffer,
  width: number,
  height: number,
  to: number,
): { scanlines: Buffer; width: number; height: number } {
  const h = Math.max(1, Math.round((height * to) / width)),
    stride = to * 3 + 1,
    sums = new Float64Array(to * 3),
    out = Buffer.alloc(stride * h);
  const column = Int32Array.from({ length: width }, (_, x) => Math.floor((x * to) / width) * 3),
    counts = new Int32Array(to);
  for (const c of column) counts[c / 3]!++;
  for (let y = 0, row = 0; y < h; y++) {
    sums.fill(0);
    let rows = 0;
    for (; row < height && Math.floor((row * h) / height) === y; row++, rows++) {
      for (let x = 0, i = row * width * 3; x < width; x++, i += 3) {
        const c = column[x]!;
        sums[c]! += rgb[i]!;
        sums[c + 1]! += rgb[i + 1]!;
        sums[c + 2]! += rgb[i + 2]!;
      }
    }
    for (let x = 0; x < to; x++) {
      const n = Math.max(1, counts[x]! * rows);
      for (let c = 0; c < 3; c++) out[y * stride + 1 + x * 3 + c] = Math.round(sums[x * 3 + c]! / n);
    }
  }
  return { scanlines: out, width: to, height: h };
}
