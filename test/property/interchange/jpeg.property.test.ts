import fc from 'fast-check';
import { decode, encode } from 'jpeg-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jpegSize } from '../../../runtime/interchange/jpeg.js';
import { JpegDecoder } from '../../../runtime/interchange/jpegDecoder.js';
import { Unusable } from '../../../runtime/interchange/types.js';
import { jpegs } from '../../fixtures/interchange/jpegs.js';
import { screen } from '../../helpers/interchange/make.js';
import { bundle } from '../../helpers/data/manager.js';

let jpeg: JpegDecoder;
beforeAll(async () => {
  jpeg = new JpegDecoder(await bundle('test/helpers/interchange/jpegWorker.ts', 'property-jpeg'));
});
afterAll(() => jpeg.close());

test('any screen: the pixels the library gives, as BGRX, and close to the screen', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      fc.integer({ min: 1, max: 70 }),
      fc.integer({ min: 1, max: 70 }),
      async (seed, width, height) => {
        const before = screen(seed, width, height),
          rgba = Buffer.from(before.data).swap32();
        // swap32 makes XRGB of BGRX.
        for (let i = 0; i < rgba.length; i += 4) rgba.writeUInt32BE(((rgba.readUInt32BE(i) << 8) | 0xff) >>> 0, i);
        const { data: file } = encode({ width, height, data: rgba }, 100),
          theirs = decode(file, { useTArray: true }).data,
          ours = await jpeg.decode(file);
        expect(ours).toMatchObject({ width, height });
        for (let i = 0; i < theirs.length; i += 4)
          expect([ours.data[i + 2], ours.data[i + 1], ours.data[i], ours.data[i + 3]]).toEqual([
            theirs[i],
            theirs[i + 1],
            theirs[i + 2],
            0,
          ]);
        let off = 0;
        for (let i = 0; i < ours.data.length; i++) off += Math.abs(ours.data[i]! - before.data[i]!);
        expect(off / ours.data.length).toBeLessThan(3);
      },
    ),
    { numRuns: 60 },
  );
});

test('any damage: a picture of the size the header says, or a reason in words', async () => {
  const files = Object.values(jpegs).map((j) => Buffer.from(j.base64, 'base64'));
  const edit = fc.record({
    at: fc.double({ min: 0, max: 0.999, noNaN: true }),
    bytes: fc.uint8Array({ maxLength: 4 }),
    cut: fc.nat({ max: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...files), fc.array(edit, { minLength: 1, maxLength: 3 }), async (file, edits) => {
      let b = file;
      for (const e of edits) {
        const at = Math.floor(e.at * b.length);
        b = Buffer.concat([b.subarray(0, at), e.bytes, b.subarray(at + e.cut)]);
      }
      try {
        const f = await jpeg.decode(b);
        expect({ width: f.width, height: f.height }).toEqual(jpegSize(b));
        expect(f.data.length).toBe(f.width * f.height * 4);
      } catch (e) {
        if (!(e instanceof Unusable)) throw e;
        expect(e.message).toMatch(/^(is|claims|takes)/);
        expect(e.message).not.toMatch(/undefined|of null/);
      }
    }),
    { numRuns: 400 },
  );
});
