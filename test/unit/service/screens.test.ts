import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodePng, encodePng } from '../../../runtime/data/store/png.js';
import { pixelHash } from '../../../runtime/data/store/screenEncoder.js';
import { type Frame } from '../../../runtime/domain/index.js';
import { digestOf } from '../../../runtime/files/digest.js';
import { pictureOf, shrink } from '../../../runtime/service/thumbnailWorker.js';
import { changedRect } from '../../../runtime/service/watch.js';

describe('pixels', () => {
  const frame = (w: number, h: number, set: readonly [number, number][] = []): Frame => {
    const data = Buffer.alloc(w * h * 4);
    for (const [x, y] of set) data.writeUInt32LE(0xffffff, (y * w + x) * 4);
    return { width: w, height: h, data, capturedAt: 0 };
  };
  it('find the smallest rectangle of what changed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 19 }), fc.integer({ min: 0, max: 11 })), {
          minLength: 1,
          maxLength: 6,
        }),
        (set) => {
          const xs = set.map((p) => p[0]),
            ys = set.map((p) => p[1]),
            x = Math.min(...xs),
            y = Math.min(...ys);
          expect(changedRect(frame(20, 12), frame(20, 12, set))).toEqual({
            x,
            y,
            width: Math.max(...xs) - x + 1,
            height: Math.max(...ys) - y + 1,
          });
        },
      ),
    );
    expect(changedRect(frame(5, 5, [[1, 1]]), frame(5, 5, [[1, 1]]))).toBeUndefined();
  });
  it('shrink by averaging every pixel', () => {
    const s = shrink(Buffer.from([0, 0, 0, 90, 90, 90, 30, 30, 30, 60, 60, 60]), 2, 2, 1);
    expect([s.width, s.height, ...s.scanlines]).toEqual([1, 1, 0, 45, 45, 45]);
    expect(shrink(Buffer.alloc(7 * 5 * 3, 200), 7, 5, 3)).toMatchObject({ width: 3, height: 2 });
    expect([...shrink(Buffer.alloc(7 * 5 * 3, 200), 7, 5, 3).scanlines].filter((v) => v !== 0)).toEqual(
      new Array(18).fill(200),
    );
  });
});

describe('pictures for pages', () => {
  const pixels = Buffer.from([1, 2, 3, 4, 5, 6]);
  const png = (rgb: Buffer): Promise<Buffer> => encodePng(Buffer.concat([Buffer.alloc(1), rgb]), 2, 1);
  const stored = async (file: Buffer, hash: string) => {
    const dir = await mkdtemp(join(tmpdir(), 'dart-picture-'));
    try {
      const place = join(dir, 'frames', 'ab', `${hash}.png`);
      await mkdir(dirname(place), { recursive: true });
      await writeFile(place, file);
      return await Promise.all([0, 1].map((width) => pictureOf({ from: { file: place, hash }, width })));
    } finally {
      await rm(dir, { recursive: true });
    }
  };

  it('are what their name says, by their bytes or by their pixels', async () => {
    const file = await png(pixels);
    for (const hash of [digestOf(file), pixelHash(2, 1).update(pixels).digest('hex')]) {
      const [whole, small] = await stored(file, hash);
      expect(whole!.equals(file)).toBe(true);
      expect(await decodePng(small!)).toMatchObject({ width: 1, height: 1 });
    }
  });
  it('are not shown where a run folder has other pixels under that name', async () => {
    const hash = digestOf(await png(pixels));
    await expect(stored(await png(Buffer.alloc(6, 9)), hash)).rejects.toThrow('does not hold the pixels');
  });
});
