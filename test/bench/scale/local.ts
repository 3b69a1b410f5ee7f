/**
 * Screens of desktops on this machine, whose pixels the daemon reads itself: what one costs to be named, compressed and kept, with
 * threads for it and without. Every screen is new, as after an action that changed little.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { SandboxDesktop } from '../../../runtime/cluster/drivers/desktop.js';
import { createLocalProvider } from '../../../runtime/cluster/index.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { isEncoded, type Size } from '../../../runtime/domain/index.js';
import { SMALL } from '../../helpers/cluster/desktops.js';
import { XPainter } from '../../helpers/cluster/xPainter.js';
import { cpuMs, drawing, mainThreadMs, type LocalResult } from './wire.js';

const WARM = 150,
  MEASURED = 300,
  WINDOWS = 400;

/** Letters and rules on even ground, as on desktops. */
function lettered({ width, height }: Size): Buffer {
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
  const shown = lettered(screen);
  return { threads: await measure(shown, screen, true), here: await measure(shown, screen, false) };
}

/** With threads as a run with a vision-language model does it; without, as one whose policy takes pixels. */
async function measure(shown: Buffer, screen: Size, threads: boolean): Promise<LocalResult['here']> {
  const dir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'scale-local-')),
    provider = createLocalProvider(threads ? { screens: { entry: { file: resolve('dist/runtime.js') } } } : {}),
    store = new PngFrameStore(dir);
  try {
    const desktop = (await provider.create({ ...SMALL, screen })) as SandboxDesktop,
      { x } = desktop.session!,
      painter = new XPainter(x);
    painter.put(shown);
    await x.sync();
    let drawings = 0,
      readMs = 0;
    const draw = (): Promise<void> => {
      painter.fill(++drawings, { x: 0, y: (drawings * 37) % screen.height, width: 1, height: 1 });
      return x.sync();
    };
    const see = async (): Promise<void> => {
      await draw();
      const began = performance.now(),
        seen = await (threads ? desktop.screenshot() : desktop.observe());
      readMs += performance.now() - began;
      await store.put(seen);
      if (!isEncoded(seen)) desktop.recycle(seen);
    };
    await costs(WARM, see);
    readMs = 0;
    const [all, drawn] = [await costs(MEASURED, see), await costs(MEASURED, draw)];
    return { main: all.main - drawn.main, all: all.all - drawn.all, reading: readMs / MEASURED };
  } finally {
    await provider.dispose();
    await store.close();
    rmSync(dir, { recursive: true });
  }
}

/** Of one step, ms. */
async function costs(
  steps: number,
  step: () => Promise<void>,
): Promise<{ readonly main: number; readonly all: number }> {
  const before = { main: mainThreadMs(), all: cpuMs() };
  for (let i = 0; i < steps; i++) await step();
  return { main: (mainThreadMs() - before.main) / steps, all: (cpuMs() - before.all) / steps };
}
