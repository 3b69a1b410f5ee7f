import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { deflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { unzipSync, zipSync } from 'fflate';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const { repack } = (await import(pathToFileURL('scripts/lib/zip.mjs').href)) as {
  repack(file: string, deflate: (b: Uint8Array) => Uint8Array, cacheDir: string): void;
};
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-zip-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));
const best = (b: Uint8Array): Uint8Array => deflateRawSync(b, { level: 9 });
const written = async (files: Record<string, Uint8Array>, deflate = best): Promise<Buffer> => {
  const file = join(dir, 'x.zip');
  await writeFile(file, zipSync(files, { level: 1, mtime: '2026-01-02' }));
  repack(file, deflate, join(dir, 'cache'));
  return readFile(file);
};

describe('a zip compressed anew', () => {
  it('holds the same files under the same names, in the same order', () =>
    fc.assert(
      fc.asyncProperty(
        fc.dictionary(
          fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }).filter((n) => !/^\d+$|[/\\]|__proto__/.test(n)),
          fc.uint8Array({ maxLength: 3000 }),
          { maxKeys: 6 },
        ),
        async (files) => {
          const out = unzipSync(await written(files));
          expect(Object.keys(out)).toEqual(Object.keys(files));
          for (const [n, b] of Object.entries(files)) expect(Buffer.from(out[n]!).equals(b), n).toBe(true);
        },
      ),
      { numRuns: 40 },
    ));

  it('is smaller, stores what does not shrink, and keeps large entries for the next time', async () => {
    const text = Buffer.from('abcdefgh'.repeat(200_000)),
      noise = Uint8Array.from({ length: 4000 }, (_, i) => (Math.imul(i + 1, 2_654_435_761) >>> 13) & 255),
      before = zipSync({ text, noise }, { level: 1 });
    expect((await written({ text, noise })).length).toBeLessThan(before.length);
    const kept = await readdir(join(dir, 'cache'));
    expect(kept).toHaveLength(1);
    const never = (b: Uint8Array): Uint8Array => {
      if (b.length === text.length) throw new Error('compressed again');
      return best(b);
    };
    expect(Buffer.from(unzipSync(await written({ text, noise }, never))['text']!).equals(text)).toBe(true);
    // What was kept and does not read back is made again.
    await writeFile(join(dir, 'cache', kept[0]!), 'no');
    expect(Buffer.from(unzipSync(await written({ text, noise }))['text']!).equals(text)).toBe(true);
  });

  it('is not written by a compressor that cannot be trusted, nor from a file that is damaged', async () => {
    const a = Buffer.from('a'.repeat(500));
    await expect(written({ a }, () => best(Buffer.from('b')))).rejects.toThrow(/read back/);
    expect(Buffer.from(unzipSync(await readFile(join(dir, 'x.zip')))['a']!).equals(a)).toBe(true);
    const file = join(dir, 'bad.zip'),
      bytes = Buffer.from(zipSync({ a }, { level: 0 }));
    bytes[35]! ^= 1;
    await writeFile(file, bytes);
    expect(() => {
      repack(file, best, dir);
    }).toThrow(/checksum/);
    await writeFile(file, 'not a zip');
    expect(() => {
      repack(file, best, dir);
    }).toThrow(/not a zip/);
  });
});
