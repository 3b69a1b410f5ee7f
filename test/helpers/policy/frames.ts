/** Screens for policy tests. */
import type { Frame } from '../../../runtime/domain/index.js';

/** A BGRX frame from a function of pixel position to [r, g, b]. The X byte is noise on purpose: it must not matter. */
export function frameOf(
  width: number,
  height: number,
  rgb: (x: number, y: number) => readonly [number, number, number] | number[],
): Frame {
  const data = Buffer.alloc(width * height * 4);
  for (let y = 0, o = 0; y < height; y++)
    for (let x = 0; x < width; x++, o += 4) {
      const [r, g, b] = rgb(x, y);
      data[o] = b!;
      data[o + 1] = g!;
      data[o + 2] = r!;
      data[o + 3] = (x * 31 + y) & 255;
    }
  return { width, height, data, capturedAt: 0 };
}
