import fc from 'fast-check';
import { crc32 as native } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { crc32, crc32InJs } from '../../../runtime/files/crc32.js';

describe('CRC-32', () => {
  it("without zlib's help has the published check value, and zlib's for any bytes in any pieces", () => {
    expect(crc32InJs(Buffer.from('123456789')).toString(16)).toBe('cbf43926');
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.nat(400), (bytes, cut) => {
        expect(crc32InJs(bytes)).toBe(native(bytes));
        expect(crc32InJs(bytes.subarray(cut), crc32InJs(bytes.subarray(0, cut)))).toBe(native(bytes));
        expect(crc32(bytes.subarray(cut), crc32(bytes.subarray(0, cut)))).toBe(native(bytes));
      }),
    );
  });
});
