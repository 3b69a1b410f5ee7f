import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { decode } from 'jpeg-js';
import type { Size } from '../domain/index.js';
import { limits } from './types.js';
import { messageOf } from '../domain/index.js';
import { portOf } from '../concurrency/workerPort.js';

export interface JpegJob {
  readonly bytes: Uint8Array;
  /** See JpegHeader. */
  readonly rgb: boolean;
  /** Pixels that its header claims, which decide the memory that it takes. */
  readonly pixels: number;
}
/** BGRX, 4 bytes a pixel; or why there is none. */
export type JpegDone = (Size & { readonly data: Uint8Array<ArrayBuffer> }) | { readonly damage: string };

/** About 5 MB. A screen is collected at once; small pictures, which take less than a collection does, in their tens. */
const COLLECTED_PIXELS = 200_000;

/** Body of the JPEG worker: one picture after the other. */
export function runJpegWorker(): void {
  const port = portOf('JPEG'),
    collect = collector();
  let uncollected = 0;
  port.on('message', (j: JpegJob) => {
    const done = decoded(j);
    port.postMessage(done, 'data' in done ? [done.data.buffer] : []);
    uncollected += j.pixels;
    if (uncollected < COLLECTED_PIXELS) return;
    uncollected = 0;
    collect();
  });
}

/**
 * Frees what a picture took at once. jpeg-js makes an array of its own for every block, about 100,000 for a screen,
 * outside the heap that the collector watches: left to itself it lets several pictures' worth gather.
 */
function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  // The first collection starts to give back memory outside the heap, and the second waits for that.
  return () => {
    gc();
    gc();
  };
}

function decoded({ bytes, rgb }: JpegJob): JpegDone {
  try {
    // The memory is what the largest screen takes without halved chroma (about 370 MB), and some more.
    const { width, height, data } = decode(bytes, {
      useTArray: true,
      tolerantDecoding: false,
      maxResolutionInMP: limits.pixels / 1e6,
      maxMemoryUsageInMB: 448,
      ...(rgb ? { colorTransform: false } : {}),
    });
    for (let i = 0; i < data.length; i += 4) {
      const red = data[i]!;
      data[i] = data[i + 2]!;
      data[i + 2] = red;
      data[i + 3] = 0;
    }
    return { width, height, data: data as Uint8Array<ArrayBuffer> };
  } catch (e) {
    // Damage makes the decoder trip as often as name it.
    return { damage: e instanceof TypeError || e instanceof RangeError ? '' : messageOf(e) };
  }
}
