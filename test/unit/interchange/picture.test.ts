import { deflateSync } from 'node:zlib';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encode } from 'fast-png';
import { JpegDecoder } from '../../../runtime/interchange/jpegDecoder.js';
import { checkPicture, decodePicture, pictureSize } from '../../../runtime/interchange/picture.js';
import { pngHeader } from '../../../runtime/files/png.js';
import { PNG_SIGNATURE, pngChunk } from '../../../runtime/files/pngWriter.js';
import { jpegs, points } from '../../fixtures/interchange/jpegs.js';
import { random } from '../../../runtime/domain/index.js';
import { Unusable } from '../../../runtime/interchange/types.js';
import type { Picture } from '../../../runtime/interchange/types.js';
import { bundle } from '../../helpers/data/manager.js';
import { inFolder, png, put, screen } from '../../helpers/interchange/make.js';

let entry: { file: string }, jpeg: JpegDecoder;
beforeAll(async () => {
  entry = await bundle('test/helpers/interchange/jpegWorker.ts', 'picture-jpeg');
  jpeg = new JpegDecoder(entry);
});
afterAll(() => jpeg.close());
const decode = (p: Picture): ReturnType<typeof decodePicture> => decodePicture(p, jpeg);

const inline = (b: Buffer | Uint8Array): Picture => ({
  file: '',
  name: 'x.png',
  inline: Buffer.from(b).toString('base64'),
});
function rawPng(
  width: number,
  height: number,
  depth: number,
  type: number,
  idat: Buffer,
  o: { interlace?: number; extra?: Buffer } = {},
): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = depth;
  head[9] = type;
  head[12] = o.interlace ?? 0;
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', head),
    ...(o.extra ? [o.extra] : []),
    pngChunk('IDAT', idat),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}
const rgbAt = (f: { data: Buffer; width: number }, x: number, y: number): number[] => {
  const i = (y * f.width + x) * 4;
  return [f.data[i + 2]!, f.data[i + 1]!, f.data[i]!];
};

describe('screenshots of any PNG kind', () => {
  test('what we write ourselves comes back pixel for pixel', async () => {
    const f = await decode(inline(await png(7)));
    expect(f.data.equals(screen(7).data)).toBe(true);
  });
  test('RGBA, RGB, grey, grey with alpha, 16 bits, by another encoder', async () => {
    for (const [channels, depth] of [
      [4, 8],
      [3, 8],
      [1, 8],
      [2, 8],
      [3, 16],
      [4, 16],
    ] as const) {
      const [w, h] = [13, 9],
        max = depth === 8 ? 256 : 65_536,
        values = Array.from({ length: w * h * channels }, (_, i) => (i * 7919 * 31) % max),
        data = depth === 8 ? Uint8Array.from(values) : Uint16Array.from(values);
      const f = await decode(inline(encode({ width: w, height: h, data, channels, depth })));
      for (const [x, y] of [
        [0, 0],
        [5, 3],
        [12, 8],
      ] as const) {
        const at = (c: number): number => data[(y * w + x) * channels + (channels >= 3 ? c : 0)]! >> (depth - 8);
        expect(rgbAt(f, x, y)).toEqual([at(0), at(1), at(2)]);
      }
    }
  });
  test('palettes and fewer than 8 bits', async () => {
    const palette = pngChunk('PLTE', Buffer.from([10, 20, 30, 40, 50, 60, 70, 80, 90, 1, 2, 3]));
    const f = await decode(
      inline(rawPng(4, 1, 2, 3, deflateSync(Buffer.from([0, 0b00_01_10_11])), { extra: palette })),
    );
    expect([0, 1, 2, 3].map((x) => rgbAt(f, x, 0))).toEqual([
      [10, 20, 30],
      [40, 50, 60],
      [70, 80, 90],
      [1, 2, 3],
    ]);
    const bits = await decode(inline(rawPng(3, 1, 1, 0, deflateSync(Buffer.from([0, 0b101_00000])))));
    expect([0, 1, 2].map((x) => rgbAt(bits, x, 0)[0])).toEqual([255, 0, 255]);
  });
});

describe('JPEG, as UI-TARS-desktop records it', () => {
  const bytesOf = (name: string): Buffer => Buffer.from(jpegs[name]!.base64, 'base64');
  test.each(Object.keys(jpegs))('%s: as libjpeg decodes it, to a few levels where chroma is halved', async (name) => {
    const { pixels } = jpegs[name]!,
      p = inline(bytesOf(name));
    expect(await pictureSize(p)).toEqual({ width: 45, height: 27 });
    await checkPicture(p);
    const f = await decode(p),
      levels = name === 'grey' ? 1 : name === '444' ? 2 : 8;
    expect(f).toMatchObject({ width: 45, height: 27 });
    for (const [i, [x, y]] of points.entries())
      for (const [c, v] of rgbAt(f, x, y).entries()) expect(Math.abs(v - pixels[i]![c]!)).toBeLessThanOrEqual(levels);
    for (let i = 3; i < f.data.length; i += 4) expect(f.data[i]).toBe(0);
  });
  test('components that are red, green and blue stay what they are', async () => {
    const ycc = bytesOf('444'),
      adobe = Buffer.from([0xff, 0xee, 0, 14, ...Buffer.from('Adobe'), 0, 100, 0, 0, 0, 0, 0]),
      f = await decode(inline(Buffer.concat([ycc.subarray(0, 2), adobe, ycc.subarray(2)])));
    for (const [i, [x, y]] of points.entries()) {
      const [r, g, b] = jpegs['444']!.pixels[i] as [number, number, number],
        l = 0.299 * r + 0.587 * g + 0.114 * b;
      for (const [c, v] of [l, 128 + (b - l) / 1.772, 128 + (r - l) / 1.402].entries())
        expect(Math.abs(rgbAt(f, x, y)[c]! - v)).toBeLessThan(6);
    }
  });
  test('cut short, of a size no screen has, of a kind nobody reads, with any byte changed: a picture or a reason, never anything else', async () => {
    for (const name of ['420', 'progressive']) {
      const good = bytesOf(name),
        sof = good.indexOf(Buffer.from([0xff, name === '420' ? 0xc0 : 0xc2])),
        sos = good.indexOf(Buffer.from([0xff, 0xda]));
      const edited = (at: number, ...bytes: number[]): Picture => {
        const b = Buffer.from(good);
        b.set(bytes, at);
        return inline(b);
      };
      for (const p of [edited(sof + 5, 0xea, 0x60), edited(sof + 5, 0, 0), edited(sof + 5, 0x30, 0, 0x30, 0)]) {
        await expect(pictureSize(p)).rejects.toThrow(/claims to be/);
        await expect(decode(p)).rejects.toThrow(/claims to be/);
      }
      // Lossless, arithmetic, 12 bits, four components.
      for (const p of [edited(sof + 1, 0xc3), edited(sof + 1, 0xc9), edited(sof + 4, 12), edited(sof + 9, 4)])
        await expect(checkPicture(p)).rejects.toThrow(/rare kind of JPEG/);
      for (const n of [4, 20, sof + 4, sos + 3, good.length >> 1, good.length - 2])
        await expect(checkPicture(inline(good.subarray(0, n)))).rejects.toThrow(/cut short/);
      // Half of the pixels, but with an end; a frame inside another; a header alone.
      const end = good.subarray(-2),
        half = inline(Buffer.concat([good.subarray(0, (sos + good.length) >> 1), end]));
      await expect(decode(half)).rejects.toThrow(/damaged/);
      await expect(
        decode(inline(Buffer.concat([good.subarray(0, sos), good.subarray(sof, sos), good.subarray(sos)]))),
      ).rejects.toThrow(/two frames/);
      await expect(decode(inline(Buffer.concat([good.subarray(0, sos), end])))).rejects.toThrow(/cut short/);
      for (let i = 2; i < good.length; i += 3)
        await decode(edited(i, good[i]! ^ (1 << (i % 8)))).catch((e: unknown) => {
          expect(e).toBeInstanceOf(Unusable);
          expect((e as Error).message).not.toMatch(/undefined|of null/);
        });
    }
    expect(await decode(inline(bytesOf('444')))).toMatchObject({ width: 45 });
  });
  test('many at once come back each as itself', async () => {
    const names = Object.keys(jpegs),
      alone = new Map<string, Buffer>();
    for (const n of names) alone.set(n, (await decode(inline(bytesOf(n)))).data);
    const all = await Promise.all(
      [...names, ...names].map(async (n) => (await decode(inline(bytesOf(n)))).data.equals(alone.get(n)!)),
    );
    expect(all).toEqual(Array(2 * names.length).fill(true));
  });
  test("one that takes too long is given up; a worker that leaves is our fault, not the picture's", () =>
    inFolder(async (dir) => {
      // No worker is up within a millisecond.
      const hasty = new JpegDecoder(entry, 1);
      await expect(hasty.decode(bytesOf('420'))).rejects.toThrow(/takes longer than 0.001 s/);
      await hasty.close();
      const leaves = join(dir, 'leaves.mjs');
      await put(leaves, 'process.exit(3);');
      for (const file of [leaves, join(dir, 'none.mjs')])
        await expect(new JpegDecoder({ file }).decode(bytesOf('420'))).rejects.toMatchObject({
          name: 'StudioError',
          kind: 'internal',
        });
      const closed = new JpegDecoder(entry);
      await closed.decode(bytesOf('420'));
      await closed.close();
      await closed.close();
    }));
});

describe('pictures nobody should decode', () => {
  test('a header that claims gigapixels is refused before anything is read or inflated', async () => {
    const bomb = inline(rawPng(100_000, 100_000, 8, 2, deflateSync(Buffer.alloc(10))));
    await expect(pictureSize(bomb)).rejects.toThrow(/claims to be 100000x100000/);
    await expect(decode(bomb)).rejects.toThrow(Unusable);
    for (const [w, h] of [
      [0, 5],
      [5, 0],
      [16_385, 1],
      [4096, 4097],
      [0xffffffff, 0xffffffff],
    ] as const)
      expect(() => pngHeader(rawPng(w, h, 8, 2, Buffer.alloc(1)))).toThrow(/claims/);
    expect(pngHeader(rawPng(4096, 4096, 8, 2, Buffer.alloc(1)))).toMatchObject({ width: 4096 });
  });
  test('a small file that inflates without end stops at its own size', async () => {
    const bomb = inline(rawPng(8, 8, 8, 2, deflateSync(Buffer.alloc(64 << 20))));
    await expect(checkPicture(bomb)).resolves.toBeUndefined();
    await expect(decode(bomb)).rejects.toThrow(/damaged/);
  });
  test('cut short, damaged, empty, interlaced, other formats', async () => {
    const good = await png(1),
      flipped = Buffer.from(good);
    flipped[good.length - 20] = flipped[good.length - 20]! ^ 0xff;
    const cases: readonly (readonly [Buffer, RegExp])[] = [
      [good.subarray(0, good.length - 30), /cut short/],
      [flipped, /checksum/],
      [Buffer.alloc(0), /not a PNG or JPEG/],
      [Buffer.from('GIF89a'.padEnd(64)), /not a PNG/],
      [Buffer.from([0xff, 0xd8, 0xff, 0xe0, ...Buffer.alloc(40)]), /cut short|damaged/],
      [Buffer.from('RIFF\0\0\0\0WEBPVP8 '.padEnd(64)), /WebP/],
      [rawPng(4, 4, 8, 2, Buffer.alloc(1), { interlace: 1 }), /interlaced/],
      [rawPng(4, 4, 3, 2, Buffer.alloc(1)), /unknown kind/],
      [rawPng(4, 4, 8, 3, Buffer.alloc(1)), /palette/],
    ];
    for (const [bytes, why] of cases) await expect(checkPicture(inline(bytes))).rejects.toThrow(why);
    await expect(decode(inline(rawPng(4, 4, 8, 2, deflateSync(Buffer.alloc(7)))))).rejects.toThrow(/too few/);
    await expect(decode(inline(rawPng(1, 1, 8, 2, deflateSync(Buffer.from([9, 1, 2, 3])))))).rejects.toThrow(/filter/);
  });
  test('a picture inside a larger file is read from its bytes alone', () =>
    inFolder(async (dir) => {
      const text = (await png(3)).toString('base64'),
        file = join(dir, 'a.json');
      await put(file, `{"x":"${text}"}`);
      const f = await decode({ file, name: 'x', slice: { offset: 6, length: text.length } });
      expect(f.data.equals(screen(3).data)).toBe(true);
    }));
  test('a large one within a JSON file, its slashes escaped, comes out whole at every alignment', () =>
    inFolder(async (dir) => {
      // Noise, so that it stays as large as it is: some 800 kB, read in several pieces.
      const [w, h] = [600, 440],
        r = random('slice'),
        data = Uint8Array.from({ length: w * h * 3 }, () => r.int(256)),
        picture = encode({ width: w, height: h, data, channels: 3, depth: 8 });
      for (const prefix of ['', 'data:image/png;base64,', 'data:image/png;a=b;base64,']) {
        const text = prefix + Buffer.from(picture).toString('base64').replaceAll('/', '\\/'),
          file = join(dir, 'a.json');
        expect(text.length).toBeGreaterThan(1_000_000);
        await put(file, `["${text}"]`);
        const f = await decode({ file, name: 'x', slice: { offset: 2, length: text.length } });
        expect(Buffer.from(f.data).equals((await decode(inline(picture))).data)).toBe(true);
      }
    }));
});
