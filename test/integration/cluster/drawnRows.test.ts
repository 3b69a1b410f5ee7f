import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocalProvider, type LocalProvider } from '../../../runtime/cluster/index.js';
import type { SandboxDesktop } from '../../../runtime/cluster/drivers/desktop.js';
import { parseXwd } from '../../../runtime/cluster/drivers/framebuffer.js';
import { DrawnRows } from '../../../runtime/cluster/drivers/drawnRows.js';
import { decodePng, toBgrx } from '../../../runtime/data/store/png.js';
import { isEncoded, random, type Screenshot } from '../../../runtime/domain/index.js';
import { sandboxRecord, SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { XPainter } from '../../helpers/cluster/xPainter.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

describe.skipIf(why)('which rows of a screen were drawn', () => {
  let provider: LocalProvider, desktop: SandboxDesktop;
  beforeAll(async () => {
    provider = createLocalProvider({ screens: { entry: { file: resolve('dist/runtime.js') } } });
    desktop = (await provider.create(SMALL)) as SandboxDesktop;
  });
  afterAll(() => provider.dispose());

  const right = async (): Promise<void> => {
    await desktop.settle();
    await same();
  };
  /** The file is what the framebuffer shows. */
  async function same(): Promise<void> {
    const file = fileOf(await desktop.screenshot()),
      { width, height, data } = await desktop.observe(),
      shown = await toBgrx((await decodePng(file)).rgb, width, height);
    for (const b of [shown, data]) for (let i = 3; i < b.length; i += 4) b[i] = 0;
    expect(shown.equals(data)).toBe(true);
  }
  const { width, height } = SMALL.screen,
    inside = (path: string): string => `/proc/${sandboxRecord(desktop.id).processes.at(-1)!.pid}/root${path}`;

  it('no file misses what was drawn, or a pointer that was moved, while it was made or before', async () => {
    const { x } = desktop.session!,
      painter = new XPainter(x),
      r = random(7);
    /** One change of the screen, or none. */
    const change = async (): Promise<void> => {
      const at = { x: r.int(width - 60), y: r.int(height - 60) };
      switch (r.int(4)) {
        case 0:
          painter.fill(r.int(1 << 24), { ...at, width: 1 + r.int(60), height: 1 + r.int(60) });
          return x.sync();
        case 1:
          return desktop.input([{ type: 'move', ...at }]);
        case 2:
          await desktop.input([{ type: 'move', ...at }]);
          painter.fill(r.int(1 << 24), { ...at, width: 8, height: 8 });
          return x.sync();
        default:
          return undefined;
      }
    };
    for (let round = 0; round < 150; round++) {
      await change();
      if (round % 3 === 0) {
        // What it shows is of no one moment; what is made of it next must be right all the same.
        const drawing = Array.from({ length: 4 }, change);
        await Promise.all([desktop.screenshot(), ...drawing]);
      }
      await right();
    }
  });

  it('after a reset there is another X server', async () => {
    await provider.reset(desktop);
    await right();
    new XPainter(desktop.session!.x).fill(0x336699, { x: 10, y: 300, width: 50, height: 20 });
    await right();
  });

  it('are those of drawing and of the pointer, and no others', async () => {
    const rows = await DrawnRows.open(inside('/tmp/.X11-unix/X0'), SMALL.screen);
    const looked = async (): ReturnType<DrawnRows['since']> => {
      const told = await rows.since();
      await rows.wasRead();
      return told;
    };
    const covered = (told: Awaited<ReturnType<typeof looked>>): number =>
      Array.from({ length: height }, (_, y) => y).filter((y) => told!.some((t) => t.from <= y && y < t.to)).length;
    try {
      await desktop.input([{ type: 'move', x: 100, y: 200 }]);
      await desktop.settle();
      // Nothing is known yet.
      expect(await looked()).toBeUndefined();
      const pointer = covered(await looked());
      expect(pointer).toBeGreaterThan(0);
      expect(pointer).toBeLessThan(100);
      new XPainter(desktop.session!.x).fill(0x123456, { x: 5, y: 350, width: 10, height: 7 });
      await desktop.session!.x.sync();
      const drawn = await looked();
      expect(drawn).toContainEqual({ from: 350, to: 357 });
      expect(covered(drawn)).toBe(pointer + 7);
      expect(covered(await looked())).toBe(pointer);
      // Where it was and where it is.
      await desktop.input([{ type: 'move', x: 100, y: 60 }]);
      await desktop.settle();
      expect(covered(await looked())).toBe(2 * pointer);
      // Moved while the screen was read: all of it the next time.
      await rows.since();
      await desktop.input([{ type: 'move', x: 100, y: 300 }]);
      await rows.wasRead();
      expect(await looked()).toBeUndefined();
      expect(covered(await looked())).toBe(pointer);
    } finally {
      rows.close();
    }
  });

  it('others are not read, but every so often', async () => {
    await desktop.input([{ type: 'move', x: 300, y: 200 }]);
    for (let n = 0; n < 3; n++) await right();
    const path = inside('/run/dart/fb/Xvfb_screen0'),
      file = openSync(path, 'r+'),
      head = Buffer.alloc(160);
    try {
      readSync(file, head, 0, head.length, 0);
      // Behind the server's back.
      const { offset, bytesPerLine } = parseXwd(head),
        before = fileOf(await desktop.screenshot());
      writeSync(file, Buffer.from([0x12, 0x34, 0x56, 0]), 0, 4, offset + 380 * bytesPerLine + 40);
      expect(fileOf(await desktop.screenshot()).equals(before)).toBe(true);
      let reads = 0;
      while (reads < 100 && fileOf(await desktop.screenshot()).equals(before)) reads++;
      expect(reads).toBeLessThan(64);
      await right();
    } finally {
      closeSync(file);
    }
  });

  it('of an X server that does not answer all of the screen is read', async () => {
    const signal = (name: string): Promise<unknown> => desktop.exec(['pkill', name, 'Xvfb'], { verifier: true });
    await right();
    await desktop.input([{ type: 'move', x: 300, y: 200 }]);
    await desktop.settle();
    await signal('-STOP');
    try {
      await same();
      await same();
    } finally {
      await signal('-CONT');
    }
    new XPainter(desktop.session!.x).fill(0x996633, { x: 10, y: 320, width: 50, height: 20 });
    await right();
  });
});

function fileOf(s: Screenshot): Buffer {
  if (!isEncoded(s)) throw new Error('a file was asked for');
  return Buffer.from(s.png);
}
