/**
 * Screens of desktops on this machine, whose pixels the daemon reads itself: what one costs to be named, compressed and kept, with
 * threads for it and without. Every screen is new, as after an action that changed little.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { recycleBuffer, takeShared } from '../../../runtime/cluster/drivers/framebuffer.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { ScreenThreads } from '../../../runtime/data/store/screenEncoder.js';
import type { Size } from '../../../runtime/domain/index.js';
import { cpuMs, drawing, mainThreadMs, type LocalResult } from './wire.js';

const WARM = 20,
  MEASURED = 150,
  WINDOWS = 400;

/** Where a framebuffer file would be: letters and rules on even ground, as on desktops. */
function desktop({ width, height }: Size): Buffer {
  const pixels = Buffer.alloc(4 * width * height, 0xee),
    draw = drawing(1),
    upTo = (n: number): number => Math.floor(draw() * n);
  for (let n = 0; n < WINDOWS; n++) {
    const [left, top, colour, pitch] = [upTo(width - 180), upTo(height - 30), upTo(1 << 24), 3 + upTo(9)];
    for (let y = top; y < top + 30; y++)
      for (let x = left; x < left + 180; x++)
        if ((x * y) % pitch === 0) pixels.writeUInt32LE(colour, 4 * (y * width + x));
  }
  return pixels;
}

export async function localScreens(screen: Size): Promise<LocalResult> {
  const shown = desktop(screen);
  return { threads: await measure(shown, screen, true), here: await measure(shown, screen, false) };
}

async function measure(shown: Buffer, { width, height }: Size, threads: boolean): Promise<LocalResult['here']> {
  const dir = mkdtempSync(join(tmpdir(), 'scale-local-')),
    encoder = threads ? new ScreenThreads({ file: resolve('dist/runtime.js') }) : undefined,
    store = new PngFrameStore(dir, { encoder });
  let main = 0,
    all = 0,
    readMs = 0;
  for (let i = 0; i < WARM + MEASURED; i++) {
    if (i === WARM) {
      main = mainThreadMs();
      all = cpuMs();
      readMs = 0;
    }
    const data = takeShared(shown.length),
      began = performance.now();
    shown.copy(data);
    readMs += performance.now() - began;
    data.writeUInt32LE(i, 4 * width * ((i * 37) % height));
    await store.put({ width, height, data, capturedAt: 0 });
    recycleBuffer(data);
  }
  const each = (ms: number): number => ms / MEASURED,
    result = { main: each(mainThreadMs() - main), all: each(cpuMs() - all), reading: each(readMs) };
  await store.close();
  rmSync(dir, { recursive: true });
  return result;
}
