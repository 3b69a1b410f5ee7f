import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { xwdHeader } from '../../helpers/cluster/xwd.js';
import { FramebufferReader, parseXwd } from '../../../runtime/cluster/drivers/framebuffer.js';

const SCREEN = { width: 3, height: 2 };

const file = (h: Buffer, pixels: Buffer): string => {
  const path = join(mkdtempSync(join(tmpdir(), 'xwd-')), 'fb');
  writeFileSync(path, Buffer.concat([h, Buffer.alloc(256 * 12), pixels]));
  return path;
};

describe('parseXwd', () => {
  it('reads both byte orders', () => {
    for (const le of [false, true])
      expect(parseXwd(xwdHeader({ le }))).toEqual({ width: 3, height: 2, offset: 160 + 3072, bytesPerLine: 12 });
  });
  it.each([
    [{ version: 6 }, /version 7/],
    [{ bits: 16 }, /BGRX/],
    [{ width: 0 }, /sizes/],
    [{ bytesPerLine: 4 }, /sizes/],
    [{ width: 1 << 20, bytesPerLine: 1 << 22 }, /sizes/],
  ])('refuses %j', (o, why) => {
    expect(() => parseXwd(xwdHeader(o))).toThrow(why);
  });
  it('refuses a cut header', () => {
    expect(() => parseXwd(Buffer.alloc(10))).toThrow(/cut off/);
  });
});

describe('FramebufferReader', () => {
  const pixels = Buffer.from(Array.from({ length: 24 }, (_, i) => i));
  it('gives each caller a buffer of its own', () => {
    const r = new FramebufferReader(file(xwdHeader(), pixels), SCREEN);
    const [a, b] = [r.read(), r.read()];
    expect(a.data.equals(pixels)).toBe(true);
    a.data.fill(0);
    expect(b.data.equals(pixels)).toBe(true);
    r.close();
    expect(() => r.read()).toThrow(/closed/);
  });
  it('drops padding at the end of rows', () => {
    const padded = Buffer.concat([
      pixels.subarray(0, 12),
      Buffer.alloc(4, 255),
      pixels.subarray(12),
      Buffer.alloc(4, 255),
    ]);
    expect(
      new FramebufferReader(file(xwdHeader({ bytesPerLine: 16 }), padded), SCREEN).read().data.equals(pixels),
    ).toBe(true);
  });
  it('takes no other screen than the one that was asked for, however large it says it is', () => {
    for (const o of [{ width: 2 }, { height: 3 }, { width: 16_384, height: 16_384 }])
      expect(() => new FramebufferReader(file(xwdHeader(o), pixels), SCREEN)).toThrow(/a screen of \d+x\d+, not 3x2/);
  });
  it('notices a file that is too short, and follows no link', () => {
    const path = file(xwdHeader(), pixels.subarray(0, 20));
    expect(() => new FramebufferReader(path, SCREEN).read()).toThrow(/too short/);
    symlinkSync(path, `${path}.link`);
    expect(() => new FramebufferReader(`${path}.link`, SCREEN)).toThrow(/ELOOP/);
  });
});
