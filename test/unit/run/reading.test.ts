import { describe, expect, it } from 'vitest';
import { StudioError } from '../../../runtime/domain/index.js';
import { parseScreens } from '../../../runtime/run/backends/reading.js';

const words = [{ bucket: 7 }, { bucket: 9 }];
const screen = (pixels: number[], head: object): Buffer =>
  Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), Buffer.from(pixels)]);

describe('reading screens from a desktop', () => {
  it('are told apart even when a pixel looks like a line end', () => {
    const b = Buffer.concat([
      screen([10, 10, 3, 4], { words: [1], boxes: [[1, 2, 3, 4]] }),
      screen([5, 6, 7, 10], {
        words: [0, 1],
        boxes: [
          [0, 0, 1, 1],
          [2, 2, 3, 3],
        ],
      }),
    ]);
    expect(parseScreens(b, 4, words)).toEqual([
      { obs: Uint8Array.of(10, 10, 3, 4), buckets: Int32Array.of(9), boxes: Int32Array.of(1, 2, 3, 4) },
      { obs: Uint8Array.of(5, 6, 7, 10), buckets: Int32Array.of(7, 9), boxes: Int32Array.of(0, 0, 1, 1, 2, 2, 3, 3) },
    ]);
  });
  it('that come back cut short are an error', () => {
    expect(() => parseScreens(screen([1, 2, 3], { words: [], boxes: [] }), 4, words)).toThrow(StudioError);
  });
});
