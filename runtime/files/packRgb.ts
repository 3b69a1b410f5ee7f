/** Pixels of BGRX as little-endian words, which is what every platform of ours has. */
export const wordsOf = (bgrx: Buffer): Uint32Array =>
  bgrx.byteOffset % 4 === 0
    ? new Uint32Array(bgrx.buffer, bgrx.byteOffset, bgrx.length >> 2)
    : new Uint32Array(new Uint8Array(bgrx).buffer);

/** Four pixels to three words of RGB at a time: half the time of byte by byte. `bytes` are those of `words`. */
export function packRgb(pixels: Uint32Array, words: Uint32Array, bytes: Buffer): void {
  const whole = pixels.length & ~3;
  let o = 0;
  for (let i = 0; i < whole; i += 4) {
    const a = pixels[i]!,
      b = pixels[i + 1]!,
      c = pixels[i + 2]!,
      d = pixels[i + 3]!;
    words[o++] = ((a >>> 16) & 0xff) | (a & 0xff00) | ((a & 0xff) << 16) | ((b & 0xff0000) << 8);
    words[o++] = ((b >>> 8) & 0xff) | ((b & 0xff) << 8) | (c & 0xff0000) | ((c & 0xff00) << 16);
    words[o++] = (c & 0xff) | ((d >>> 8) & 0xff00) | ((d & 0xff00) << 8) | ((d & 0xff) << 24);
  }
  for (let i = whole; i < pixels.length; i++) {
    const p = pixels[i]!;
    bytes[i * 3] = p >>> 16;
    bytes[i * 3 + 1] = p >>> 8;
    bytes[i * 3 + 2] = p;
  }
}
