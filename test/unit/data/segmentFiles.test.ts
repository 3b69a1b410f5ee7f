import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Journal } from '../../../runtime/data/store/journal.js';
import { byteOf, readRecord, segmentOf, type JournalPosition } from '../../../runtime/data/store/journalReader.js';
import { SegmentFiles } from '../../../runtime/data/store/segmentFiles.js';

/** A journal of many small segments. */
let dir: string;
const positions: JournalPosition[] = [];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-segments-'));
  const { journal } = await Journal.open(dir, { segmentBytes: 64 });
  for (let i = 0; i < 40; i++) positions.push((await journal.append({ n: i, text: 'x'.repeat(80) })).position);
  await journal.close();
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const openHere = async (): Promise<number> => {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((f) => readlink(join('/proc/self/fd', f)).catch(() => '')),
  );
  return links.filter((l) => l.startsWith(dir)).length;
};

describe.skipIf(process.platform !== 'linux')('files of segments', () => {
  it('are read in any order, many at once, and few of them stay open', async () => {
    expect(new Set(positions.map(segmentOf)).size).toBeGreaterThan(20);
    const files = new SegmentFiles(dir, 4),
      read = (p: JournalPosition): Promise<unknown> => files.use(segmentOf(p), (f) => readRecord(f, byteOf(p)));
    for (const order of [positions, [...positions].reverse()]) {
      const all = await Promise.all(order.map(read));
      expect(all).toEqual(order.map((p) => expect.objectContaining({ n: positions.indexOf(p) }) as unknown));
      await expect.poll(openHere).toBeLessThanOrEqual(4);
    }
    for (const p of positions) await read(p);
    await expect.poll(openHere).toBeLessThanOrEqual(4);
    await files.close();
    expect(await openHere()).toBe(0);
  });

  it('that are not there are an error each time, and open nothing', async () => {
    const files = new SegmentFiles(dir, 4);
    for (let i = 0; i < 2; i++)
      await expect(files.use(9999, () => Promise.resolve())).rejects.toMatchObject({ kind: 'store.damaged' });
    await files.close();
  });
});
