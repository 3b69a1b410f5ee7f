import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keptScreens, type DrawnFrom } from '../../../runtime/run/backends/readingCache.js';
import type { ReadingScreen } from '../../../runtime/trainer/types.js';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-reading-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const from: DrawnFrom = {
  words: [{ text: 'Kiwi', bucket: 7 }],
  count: 60,
  seed: 1,
  image: 'desk',
  width: 16,
  height: 10,
};
const screens = Array.from({ length: 60 }, (_, i): ReadingScreen => ({
  // A line feed is a pixel like any other.
  obs: Uint8Array.from({ length: 160 }, (_, p) => (p * 7 + i * 10) % 256),
  buckets: Int32Array.of(7, i),
  boxes: Int32Array.of(1, 2, 3, 4, 5, 6, 7, i),
}));
async function drawn(
  what: DrawnFrom = from,
): Promise<{ readonly got: readonly ReadingScreen[]; readonly drew: number }> {
  let drew = 0;
  const got = await keptScreens(dir, what, () => {
    drew++;
    return Promise.resolve(screens);
  });
  return { got, drew };
}

describe('screens of reading lessons', () => {
  it('are drawn once in the life of a run', async () => {
    expect((await drawn()).drew).toBe(1);
    const again = await drawn();
    expect(again.drew).toBe(0);
    expect(again.got).toEqual(screens);
    expect(await readdir(join(dir, 'frames', 'unfinished'))).toEqual([]);
  });
  it('are drawn anew when they are others', async () => {
    await drawn();
    expect((await drawn({ ...from, seed: 2 })).drew).toBe(1);
    expect((await drawn({ ...from, words: [{ text: 'Pear', bucket: 8 }] })).drew).toBe(1);
  });
  it('are drawn anew when the file is cut short or damaged', async () => {
    await drawn();
    const file = join(dir, 'reading', 'screens.bin'),
      whole = await readFile(file);
    for (const damaged of [
      whole.subarray(0, whole.length - 5),
      whole.subarray(0, 100),
      Buffer.from(whole).fill(1, 150, 160),
      Buffer.alloc(0),
    ]) {
      await writeFile(file, damaged);
      const again = await drawn();
      expect(again.drew).toBe(1);
      expect(again.got).toEqual(screens);
    }
  });
  it('a drawing that is stopped leaves nothing', async () => {
    await expect(keptScreens(dir, from, () => Promise.reject(new Error('stopped')))).rejects.toThrow('stopped');
    expect(await readdir(dir)).toEqual([]);
  });
});
