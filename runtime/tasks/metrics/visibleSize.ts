import type { Size } from '../../domain/index.js';
import { pngChunks, pngParts, pngRows, type Chunks } from '../../files/png.js';

/** The part of a PNG that is not transparent, as Pillow's `convert('RGBA')` and `getbbox()` find it. */

const GREY_ALPHA = 4,
  RGBA = 6;

/** Whether a PNG file has an alpha channel. */
export const hasAlpha = (file: Buffer): boolean => file[25] === GREY_ALPHA || file[25] === RGBA;
/** Whether a colour, or an entry of the palette, stands for transparency: a chunk tRNS before the pixels. */
export function hasColourKey(file: Buffer): boolean {
  if (hasAlpha(file)) return false;
  for (const { type } of pngParts(file)) {
    if (type === 'tRNS') return true;
    if (type === 'IDAT') break;
  }
  return false;
}

/** Width and height of the smallest box around what shows; 0x0 where nothing does. Rejects with Unusable. */
export async function visibleSize(file: Buffer): Promise<Size> {
  const chunks = await pngChunks(file),
    shows = showsOf(chunks);
  let left = Infinity,
    right = -1,
    top = -1,
    bottom = -1;
  await pngRows(chunks, (y, row) => {
    let first = 0,
      last = chunks.header.width - 1;
    while (first <= last && !shows(row, first)) first++;
    if (first > last) return;
    while (!shows(row, last)) last--;
    left = Math.min(left, first);
    right = Math.max(right, last);
    if (top < 0) top = y;
    bottom = y;
  });
  return top < 0 ? { width: 0, height: 0 } : { width: right - left + 1, height: bottom - top + 1 };
}

/**
 * Whether the pixel x of a row shows. Pillow keeps the upper 8 of 16 bits and the lower 8 of a colour in tRNS, and has no
 * transparent grey of 16 bits.
 */
function showsOf({ header: { depth, type }, transparency }: Chunks): (row: Buffer, x: number) => boolean {
  const bytes = depth >> 3,
    key = transparency ?? Buffer.alloc(0),
    keyAt = (i: number): number => key[2 * i + 1] ?? -1;
  if (type === GREY_ALPHA || type === RGBA) {
    const samples = type === RGBA ? 4 : 2;
    return (row, x) => row[(x * samples + samples - 1) * bytes] !== 0;
  }
  if (type === 2) {
    const [r, g, b] = [keyAt(0), keyAt(1), keyAt(2)];
    return (row, x) => {
      const at = 3 * x * bytes;
      return row[at] !== r || row[at + bytes] !== g || row[at + 2 * bytes] !== b;
    };
  }
  if (type === 0 && depth === 16) return () => true;
  const most = 2 ** depth - 1,
    value = (row: Buffer, x: number): number =>
      depth === 8 ? row[x]! : (row[(x * depth) >> 3]! >> (8 - depth - ((x * depth) & 7))) & most;
  if (type === 3) return (row, x) => key[value(row, x)] !== 0;
  const grey = keyAt(0),
    scale = 255 / most;
  return (row, x) => value(row, x) * scale !== grey;
}
