/**
 * Screens of desktops on this machine, whose pixels the daemon reads itself: what one costs to be named, compressed and kept, with
 * threads for it and without. Every screen is new, as after an action that changed little.
 */
import { existsSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { FramebufferReader, recycleBuffer } from '../../../runtime/cluster/drivers/framebuffer.js';
import { FramebufferThreads } from '../../../runtime/cluster/drivers/framebufferThreads.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { isEncoded, type Size } from '../../../runtime/domain/index.js';
import { XWD_COLOURS, xwdHeader } from '../../helpers/cluster/xwd.js';
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

/** With threads as a run with a vision-language model does it; without, as one whose policy takes pixels. */
async function measure(shown: Buffer, screen: Size, threads: boolean): Promise<LocalResult['here']> {
  const dir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'scale-local-')),
    { width, height } = screen,
    store = new PngFrameStore(dir),
    drawn = new Drawn(join(dir, 'fb'), shown, screen),
    makers = threads ? new FramebufferThreads({ entry: { file: resolve('dist/runtime.js') } }) : undefined,
    reader = new FramebufferReader(drawn.path, screen, makers);
  let main = 0,
    all = 0,
    readMs = 0;
  for (let i = 0; i < WARM + MEASURED; i++) {
    if (i === WARM) {
      main = mainThreadMs();
      all = cpuMs();
      readMs = 0;
    }
    drawn.write(i, 4 * width * ((i * 37) % height));
    const began = performance.now(),
      seen = reader.readEncoded ? await reader.readEncoded() : reader.read();
    readMs += performance.now() - began;
    await store.put(seen);
    if (!isEncoded(seen)) recycleBuffer(seen.data);
  }
  const each = (ms: number): number => ms / MEASURED,
    result = { main: each(mainThreadMs() - main), all: each(cpuMs() - all), reading: each(readMs) };
  reader.close();
  makers?.close();
  await store.close();
  rmSync(dir, { recursive: true });
  return result;
}

/** The framebuffer file of an X server. */
class Drawn {
  readonly path: string;
  readonly #fd: number;
  readonly #offset: number;

  constructor(path: string, pixels: Buffer, { width, height }: Size) {
    const head = Buffer.concat([xwdHeader({ width, height }), XWD_COLOURS]);
    writeFileSync(path, Buffer.concat([head, pixels]));
    this.path = path;
    this.#offset = head.length;
    this.#fd = openSync(path, 'r+');
  }
  write(pixel: number, at: number): void {
    const b = Buffer.alloc(4);
    b.writeUInt32LE(pixel);
    writeSync(this.#fd, b, 0, 4, this.#offset + at);
  }
}
