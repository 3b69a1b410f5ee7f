import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunStore } from '../../../runtime/data/store/runStore.js';
import { random, type Frame, type FrameRef } from '../../../runtime/domain/index.js';

export const screen = { width: 640, height: 400 };

/** The run folder `name-version` under `dir`, written when it is not there; those of other versions are removed. */
export async function madeOnce(
  dir: string,
  name: string,
  version: string,
  write: (making: string) => Promise<void>,
): Promise<string> {
  const run = join(dir, `${name}-${version}`);
  if (existsSync(join(run, 'run.json'))) return run;
  // Older ones would be listed beside it.
  for (const d of await readdir(dir))
    if (d.startsWith(`${name}-`)) await rm(join(dir, d), { recursive: true, force: true });
  const making = `${run}.making`;
  await rm(making, { recursive: true, force: true });
  await mkdir(making, { recursive: true });
  await write(making);
  await rename(making, run);
  return run;
}

/** Distinct screens with windows and rows of text-like marks, so that a PNG is as large as a desktop's. */
export async function drawFrames(store: RunStore, count: number): Promise<FrameRef[]> {
  const out: FrameRef[] = [],
    { width, height } = screen;
  for (let n = 0; n < count; n++) {
    const r = random(`frame${n}`),
      data = Buffer.alloc(width * height * 4, 0x50);
    const box = (x0: number, y0: number, w: number, h: number, c: number): void => {
      for (let y = y0; y < Math.min(height, y0 + h); y++)
        for (let x = x0; x < Math.min(width, x0 + w); x++) data.writeUInt32LE(c, (y * width + x) * 4);
    };
    for (let w = 0; w < 3; w++) {
      const x = r.int(360),
        y = r.int(220),
        wide = 180 + r.int(100),
        high = 100 + r.int(80);
      box(x, y, wide, high, 0xf0f0f0);
      box(x, y, wide, 14, 0x8a5a2b);
      for (let line = 0; line < high / 12 - 2; line++)
        for (let k = 0; k < wide / 7 - 2; k++)
          if (r.next() < 0.8) box(x + 6 + k * 7, y + 20 + line * 12, 2 + r.int(4), 2 + r.int(6), 0x202020);
    }
    const frame: Frame = { width, height, data, capturedAt: 0 };
    out.push(await store.frames.put(frame));
  }
  return out;
}
