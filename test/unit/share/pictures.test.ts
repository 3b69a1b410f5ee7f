import { decode } from 'fast-png';
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { encodePng, toScanlines } from '../../../runtime/data/store/png.js';
import { random, type FrameLink } from '../../../runtime/domain/index.js';
import { albumOf, type Album, type Picture } from '../../../runtime/share/pictures.js';

const width = 320,
  height = 200;
/** Screens in memory, by hash; BGRX. */
class Screens {
  readonly files = new Map<string, Buffer>();
  readonly pixels = new Map<string, Buffer>();
  async add(draw: (at: (x: number, y: number, colour: number) => void) => void, w = width, h = height) {
    const data = Buffer.alloc(w * h * 4, 0xc0);
    draw((x, y, c) => data.writeUInt32LE(c, (y * w + x) * 4));
    const hash = createHash('sha256').update(`${w}`).update(data).digest('hex');
    this.files.set(hash, await encodePng(await toScanlines(data, w, h, () => undefined), w, h));
    this.pixels.set(hash, data);
    return { hash, width: w, height: h } satisfies FrameLink;
  }
  readonly read = (f: FrameLink): Promise<Buffer | undefined> => Promise.resolve(this.files.get(f.hash));
}
const box =
  (x0: number, y0: number, size: number, colour: number) => (at: (x: number, y: number, c: number) => void) => {
    for (let y = y0; y < y0 + size; y++) for (let x = x0; x < x0 + size; x++) at(x, y, colour);
  };
/** RGB of a picture as a browser composes it: what it is over first, then its pieces. */
function composed(album: Album, p: Picture): Uint8Array {
  const under = p.over === undefined ? undefined : album.pictures.find((x) => x.id === p.over)!,
    out = under ? composed(album, under) : new Uint8Array(p.width * p.height * 3);
  for (const piece of p.pieces) {
    const png = decode(Buffer.from(piece.data, 'base64'));
    for (let y = 0; y < piece.height; y++)
      for (let x = 0; x < piece.width; x++) {
        const i = y * piece.width + x,
          rgb = png.palette ? png.palette[png.data[i]!]! : [...png.data.slice(i * 3, i * 3 + 3)];
        out.set(rgb.slice(0, 3), ((piece.y + y) * p.width + piece.x + x) * 3);
      }
  }
  return out;
}
const rgbOf = (bgrx: Buffer): Uint8Array => {
  const out = new Uint8Array((bgrx.length / 4) * 3);
  for (let i = 0; i < bgrx.length / 4; i++) out.set([bgrx[i * 4 + 2]!, bgrx[i * 4 + 1]!, bgrx[i * 4]!], i * 3);
  return out;
};

describe('screens of a page', () => {
  it('are drawn as what changed, and are the recorded pixels all the same', async () => {
    const s = new Screens(),
      r = random('noise'),
      frames = [
        await s.add(box(10, 10, 30, 0x112233)),
        // Two changes far apart: two pieces.
        await s.add((at) => {
          box(10, 10, 30, 0x112233)(at);
          box(200, 20, 8, 0xff0000)(at);
          box(20, 150, 12, 0x00ff00)(at);
        }),
        // More colours than a palette has.
        await s.add((at) => {
          for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) at(x, y, Math.floor(r.next() * 0x1000000));
        }),
        await s.add(box(10, 10, 30, 0x112233)),
      ],
      album = await albumOf(frames, s.read, 4_000_000);
    expect(album).toMatchObject({ scale: 1, gone: 0, left: 0 });
    for (const f of frames) {
      const p = album.of.get(f.hash)!;
      expect(Buffer.from(composed(album, p)).equals(Buffer.from(rgbOf(s.pixels.get(f.hash)!)))).toBe(true);
    }
    const second = album.of.get(frames[1]!.hash)!;
    expect(second.over).toBe('p0');
    expect(second.pieces.length).toBe(2);
    expect(second.pieces.reduce((n, p) => n + p.width * p.height, 0)).toBeLessThan(600);
    // Seen before: once in the file.
    expect(album.of.get(frames[3]!.hash)).toBe(album.of.get(frames[0]!.hash));
  });

  it('are made smaller until they fit, and left out where even that is too much', async () => {
    const s = new Screens(),
      r = random('noise'),
      noisy = () =>
        s.add((at) => {
          for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) at(x, y, Math.floor(r.next() * 0x1000000));
        }),
      frames = [await noisy(), await noisy(), await noisy()],
      size = (a: Album): number => a.pictures.flatMap((p) => p.pieces).reduce((n, p) => n + p.data.length, 0);
    for (const [budget, scale] of [
      [900_000, 1],
      [300_000, 2],
      [60_000, 4],
    ] as const) {
      const album = await albumOf(frames, s.read, budget);
      expect([album.scale, album.left]).toEqual([scale, 0]);
      expect(size(album)).toBeLessThanOrEqual(budget);
      expect(album.pictures[0]).toMatchObject({ width: width / scale, screen: { width, height } });
    }
    const little = await albumOf(frames, s.read, 8000);
    expect(little.scale).toBe(8);
    expect(little.left).toBeGreaterThan(0);
    expect(size(little)).toBeLessThanOrEqual(8000);
  });

  it('that cannot be read are missing and nothing else', async () => {
    const s = new Screens(),
      a = await s.add(box(0, 0, 5, 1)),
      b = await s.add(box(0, 0, 9, 2));
    s.files.set(a.hash, Buffer.from('no picture'));
    const album = await albumOf([a, { ...b, hash: 'ff' }, b], s.read, 100_000);
    expect([album.gone, album.of.has(a.hash), album.of.has(b.hash)]).toEqual([2, false, true]);
  });

  it('of another size begin anew', async () => {
    const s = new Screens(),
      a = await s.add(box(0, 0, 5, 1)),
      b = await s.add(box(0, 0, 5, 1), 100, 80),
      album = await albumOf([a, b], s.read, 100_000);
    expect(album.of.get(b.hash)).toMatchObject({ screen: { width: 100, height: 80 } });
    expect(album.of.get(b.hash)!.over).toBeUndefined();
  });
});
