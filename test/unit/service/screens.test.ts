import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Frame } from '../../../runtime/domain/index.js';
import { shrink } from '../../../runtime/service/thumbnailWorker.js';
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
