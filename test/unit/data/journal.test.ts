import {
  appendFile,
  copyFile,
  mkdtemp,
  open,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StudioError } from '../../../runtime/domain/index.js';
import { Journal } from '../../../runtime/data/store/journal.js';
import type { Recovery } from '../../../runtime/data/store/journal.js';
import { positionOf, readJournal, readRecord, segmentHeader } from '../../../runtime/data/store/journalReader.js';
import type { Damage, JournalEntry } from '../../../runtime/data/store/journalReader.js';
import { decodeRecord, encodeRecord, recordAt } from '../../../runtime/data/store/record.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'journal-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

type Entry = { seq: number; event: unknown };
async function all(o: Parameters<typeof readJournal>[1] = {}): Promise<Entry[]> {
  const out: Entry[] = [];
  for await (const batch of readJournal(dir, o)) for (const e of batch) out.push({ seq: e.seq, event: e.event() });
  return out;
}
const seqs = (es: Entry[]): number[] => es.map((e) => e.seq);
async function write(n: number, o = {}, size = 10): Promise<void> {
  const { journal } = await Journal.open(dir, o);
  for (let i = 0; i < n; i++) await journal.append({ n: journal.nextSeq, text: 'x'.repeat(size) });
  await journal.close();
}
const file = (segment = 0): string => join(dir, `${String(segment).padStart(8, '0')}.journal`);
async function reopen(): Promise<Recovery> {
  const { journal, recovery } = await Journal.open(dir);
  await journal.close();
  return recovery;
}
async function flip(path: string, at: number): Promise<void> {
  const f = await open(path, 'r+'),
    b = Buffer.alloc(1);
  await f.read(b, 0, 1, at);
  b[0] = b[0]! ^ 0xff;
  await f.write(b, 0, 1, at);
  await f.close();
}

describe('record', () => {
  it('carries JSON and typed arrays, whatever their alignment', () => {
    const event = {
      type: 'x',
      a: Float32Array.from([1.5, -2, NaN]),
      deep: [{ ids: Int32Array.from([7, -1]) }],
      d: Float64Array.from([Math.PI]),
      odd: Buffer.from([1, 2, 3]),
      again: new Float32Array(0),
      text: 'ö \u0000 \u{1f600}',
    };
    const data = encodeRecord(9, event),
      back = decodeRecord(data) as typeof event;
    expect(recordAt(data, 0)).toMatchObject({ seq: 9, bytes: data.length });
    expect(back.a).toEqual(event.a);
    expect(back.deep[0]!.ids).toEqual(event.deep[0]!.ids);
    expect(back.d).toEqual(event.d);
    expect(Buffer.from(back.odd)).toEqual(event.odd);
    expect(back.again).toEqual(event.again);
    expect(back.text).toBe(event.text);
  });
  it('packs a trace tighter than JSON would', () => {
    const a = Float32Array.from({ length: 300 }, (_, i) => Math.sin(i));
    expect(encodeRecord(0, { a }).length).toBeLessThan(300 * 4 + 80);
  });
  it('keeps any JSON value, with arrays anywhere', () => {
    fc.assert(
      fc.property(
        fc.record({
          v: fc.jsonValue(),
          a: fc.float32Array({ maxLength: 5 }),
          b: fc.array(fc.int32Array({ maxLength: 3 }), { maxLength: 3 }),
        }),
        (event) => {
          expect(decodeRecord(encodeRecord(1, event))).toEqual({
            ...event,
            v: JSON.parse(JSON.stringify(event.v)) as unknown,
          });
        },
      ),
      { numRuns: 200 },
    );
  });
  it('never passes an altered record, nor half of one', () => {
    const data = encodeRecord(3, { hello: 'world', a: Float32Array.of(1) });
    for (let i = 0; i < data.length; i++) {
      const bad = Buffer.from(data);
      bad[i] = bad[i]! ^ 0x10;
      expect(typeof recordAt(bad, 0), `byte ${i}`).toBe('string');
      expect(typeof recordAt(data.subarray(0, i), 0)).toBe('string');
    }
  });
});

describe('journal', () => {
  it('gives back what was appended, in order, from any number or position', async () => {
    await write(20);
    const entries = await all();
    expect(seqs(entries)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(entries[7]!.event).toEqual({ n: 7, text: 'x'.repeat(10) });
    expect(seqs(await all({ fromSeq: 15 }))).toEqual([15, 16, 17, 18, 19]);
    const positions: number[] = [];
    for await (const b of readJournal(dir)) positions.push(...b.map((e) => e.position));
    expect(seqs(await all({ from: positions[12]!, until: positions[15]! }))).toEqual([12, 13, 14]);
    const f = await open(file());
    expect(await readRecord(f, positions[12]! % 2 ** 32)).toMatchObject({ n: 12 });
    await f.close();
  });

  it('shares one fsync among the appends of a turn and those that come while one is under way', async () => {
    const { journal } = await Journal.open(dir);
    const first = Array.from({ length: 50 }, (_, i) => journal.append({ i }));
    await Promise.all(first);
    expect(journal.syncs).toBe(1);
    const a = journal.append({ a: 1 });
    await new Promise((r) => setImmediate(r));
    const late = Array.from({ length: 10 }, (_, i) => journal.append({ late: i }));
    await Promise.all([a, ...late]);
    expect(journal.syncs).toBe(3);
    expect((await all()).length).toBe(61);
    await journal.close();
  });

  it('resolves only when the record is readable from the file', async () => {
    const { journal } = await Journal.open(dir);
    for (let i = 0; i < 5; i++) {
      const { seq } = await journal.append({ i });
      expect(seqs(await all())).toContain(seq);
    }
    await journal.close();
    await expect(journal.append({})).rejects.toMatchObject({ kind: 'store.io' });
  });

  it('rotates segments, finds numbers in them, and goes on after reopening', async () => {
    await write(30, { segmentBytes: 400 }, 60);
    expect((await readdir(dir)).length).toBeGreaterThan(4);
    await write(3, { segmentBytes: 400 }, 60);
    expect(seqs(await all())).toEqual(Array.from({ length: 33 }, (_, i) => i));
    for (const from of [0, 1, 8, 17, 29, 32]) expect(seqs(await all({ fromSeq: from }))[0]).toBe(from);
    expect(await all({ fromSeq: 33 })).toEqual([]);
  });

  it('reads records larger than its buffer', async () => {
    const { journal } = await Journal.open(dir);
    await journal.append({ big: 'y'.repeat(1_000_000) });
    const { position } = await journal.append({ a: new Float32Array(200_000).fill(2) });
    await journal.append({ end: true });
    await journal.close();
    const entries = await all();
    expect(seqs(entries)).toEqual([0, 1, 2]);
    const f = await open(file());
    expect(((await readRecord(f, position)) as { a: Float32Array }).a.length).toBe(200_000);
    await f.close();
  });

  it('cuts a torn tail at every length and loses no whole record', async () => {
    await write(4);
    const whole = await readFile(file()),
      third: number[] = [];
    for await (const b of readJournal(dir)) third.push(...b.map((e) => e.next));
    for (let cut = third[2]! + 1; cut < third[3]!; cut += 3) {
      await writeFile(file(), whole.subarray(0, cut));
      expect(seqs(await all())).toEqual([0, 1, 2]);
      const recovery = await reopen();
      expect(recovery).toMatchObject({ records: 3, nextSeq: 3, truncated: cut - third[2]!, damage: [], missing: 0 });
      expect((await stat(file())).size).toBe(third[2]!);
    }
    await write(1);
    expect(seqs(await all())).toEqual([0, 1, 2, 3]);
  });

  it('survives a header that was not written whole', async () => {
    await write(2, { segmentBytes: segmentHeader + 1 });
    for (const size of [0, 5, segmentHeader]) {
      await truncate(file(1), size);
      expect((await reopen()).nextSeq).toBe(1);
      await write(1);
      expect(seqs(await all())).toEqual([0, 1]);
    }
  });

  it('reports damage in the middle and keeps everything else', async () => {
    await write(30, {}, 40);
    const at: number[] = [];
    for await (const b of readJournal(dir)) at.push(...b.map((e) => e.position));
    await flip(file(), at[10]! + 30);
    await flip(file(), at[20]!);
    const found: Damage[] = [];
    expect(seqs(await all({ onDamage: (d) => found.push(d) }))).toEqual(
      Array.from({ length: 30 }, (_, i) => i).filter((i) => i !== 10 && i !== 20),
    );
    expect(found).toEqual([
      { segment: 0, from: at[10], to: at[11], tail: false },
      { segment: 0, from: at[20], to: at[21], tail: false },
    ]);
    const recovery = await reopen();
    expect(recovery).toMatchObject({ records: 28, nextSeq: 30, truncated: 0, missing: 2 });
    expect(recovery.damage).toHaveLength(2);
    await write(1);
    expect(seqs(await all()).at(-1)).toBe(30);
  });

  it('passes over a damaged length, a damaged segment header and foreign bytes between', async () => {
    await write(12, { segmentBytes: 300 }, 60);
    await flip(file(0), segmentHeader + 5);
    await flip(file(1), 2);
    const size = (await stat(file(2))).size;
    await appendFile(file(2), Buffer.alloc(1000, 0xd5));
    const found: Damage[] = [];
    expect(seqs(await all({ onDamage: (d) => found.push(d) }))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(found.map((d) => d.segment)).toEqual([0, 1, 2]);
    expect(found[1]).toEqual({ segment: 1, from: 0, to: segmentHeader, tail: false });
    expect(found[2]).toMatchObject({ from: size, tail: false });
    expect(seqs(await all({ fromSeq: 4 }))).toEqual([4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it('whatever one stretch of bytes becomes, the records outside it come back', async () => {
    await write(25, {}, 30);
    const whole = await readFile(file()),
      spans: [number, number][] = [];
    for await (const b of readJournal(dir)) spans.push(...b.map((e): [number, number] => [e.position, e.next]));
    await fc.assert(
      fc.asyncProperty(
        fc.nat(whole.length - segmentHeader - 1),
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        async (at, noise) => {
          const bad = Buffer.from(whole),
            from = segmentHeader + at;
          bad.set(noise.subarray(0, whole.length - from), from);
          await writeFile(file(), bad);
          const touched = (i: number): boolean =>
            spans[i]![0] < from + noise.length &&
            spans[i]![1] > from &&
            !bad.subarray(...spans[i]!).equals(whole.subarray(...spans[i]!));
          expect(seqs(await all())).toEqual(spans.map((_, i) => i).filter((i) => !touched(i)));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('gives whoever follows it the same from memory as from its files, from any position and number', async () => {
    const { journal } = await Journal.open(dir, { segmentBytes: 4000 });
    // More than is kept in memory, and several segments of it.
    await journal.append({ pad: 'x'.repeat(1 << 20) });
    for (let group = 0; group < 12; group++)
      await Promise.all([1, 2, 3].map((n) => journal.append({ group, n, pad: 'x'.repeat(100 * n * (group % 4)) })));
    const collect = async (of: AsyncIterable<readonly JournalEntry[]>): Promise<unknown[]> => {
      const out: unknown[] = [];
      for await (const batch of of)
        for (const e of batch) out.push([e.seq, e.position, e.next, e.type(), JSON.stringify(e.event()).length]);
      return out;
    };
    const entries: JournalEntry[] = [];
    for await (const batch of readJournal(dir)) entries.push(...batch);
    expect(entries).toHaveLength(37);
    for (const e of entries)
      for (const o of [{ from: e.position }, { from: e.next }, { from: e.next, fromSeq: e.seq + 3 }])
        expect(await collect(journal.read(o))).toEqual(await collect(readJournal(dir, o)));
    // Nobody opens a file for what was written just now.
    await rm(dir, { recursive: true });
    expect(await collect(journal.read({ from: entries[20]!.position }))).toHaveLength(17);
    await journal.close();
  });

  it('can be followed without polling', async () => {
    const { journal } = await Journal.open(dir),
      seen: number[] = [];
    let at = positionOf(0, segmentHeader);
    const done = new Promise<void>((resolve) =>
      journal.onDurable((until) => {
        void (async () => {
          for await (const b of readJournal(dir, { from: at, until })) {
            for (const e of b)
              if (e.position >= at) {
                seen.push(e.seq);
                at = e.next;
              }
          }
          if (seen.length === 3) resolve();
        })();
      }),
    );
    for (let i = 0; i < 3; i++) await journal.append({ i });
    await done;
    expect(seen).toEqual([0, 1, 2]);
    await journal.close();
  });
});

describe('the fence', () => {
  const foreign: [string, () => Promise<unknown>][] = [
    ['appends a record', () => appendFile(file(), encodeRecord(2, { foreign: true }))],
    ['cuts the segment', () => truncate(file(), segmentHeader)],
    [
      'replaces the segment by a copy',
      async () => {
        await copyFile(file(), `${file()}.copy`);
        await rename(`${file()}.copy`, file());
      },
    ],
    ['removes the segment', () => rm(file())],
    ['begins the next segment', () => writeFile(file(1), '')],
  ];
  for (const [what, meddle] of foreign)
    it(`stops the writer when another program ${what}`, async () => {
      const { journal } = await Journal.open(dir);
      await Promise.all([journal.append({ n: 0 }), journal.append({ n: 1 })]);
      await meddle();
      const before = await readFile(file()).catch(() => undefined);
      const both = await Promise.allSettled([journal.append({ n: 2 }), journal.append({ n: 3 })]);
      for (const b of both) expect(b).toMatchObject({ status: 'rejected', reason: { kind: 'run.lost' } });
      expect(journal.lost).toBe(true);
      await expect(journal.append({ n: 4 })).rejects.toMatchObject({ kind: 'run.lost' });
      await journal.close();
      expect(await readFile(file()).catch(() => undefined)).toEqual(before);
    });

  it('lets only one of two writers go on, and every acknowledged record is read back', async () => {
    const first = (await Journal.open(dir)).journal,
      acknowledged: number[] = [];
    const put = async (j: Journal, n: number): Promise<boolean> =>
      j.append({ n }).then(
        () => acknowledged.push(n) > 0,
        () => false,
      );
    for (let n = 0; n < 10; n++) await put(first, n);
    const second = (await Journal.open(dir)).journal;
    for (let n = 10; n < 50; n++) await put(n % 2 ? first : second, n);
    expect([first.lost, second.lost]).toContain(true);
    await first.close();
    await second.close();
    expect((await all()).map((e) => (e.event as { n: number }).n)).toEqual(acknowledged);
    expect(acknowledged.length).toBe(10 + 20);
  });

  it('does not acknowledge a write that another one ran into', async () => {
    let meddle: () => Promise<void> = () => Promise.resolve();
    const { journal } = await Journal.open(dir, { fence: () => meddle() });
    await journal.append({ n: 0 });
    meddle = async () => {
      // Behind everything that was looked at.
      await new Promise((r) => setTimeout(r, 50));
      await appendFile(file(), encodeRecord(9, { foreign: 'x'.repeat(1000) }));
    };
    await expect(journal.append({ n: 1 })).rejects.toMatchObject({ kind: 'run.lost' });
    await journal.close();
  });

  it('asks whether this process still owns the folder, before each write', async () => {
    let mine = true,
      asked = 0;
    const fence = (): Promise<void> => {
      asked++;
      return mine ? Promise.resolve() : Promise.reject(new StudioError('run.lost', 'It is gone.', 'Resume it.'));
    };
    const { journal } = await Journal.open(dir, { fence });
    await Promise.all(Array.from({ length: 20 }, (_, n) => journal.append({ n })));
    expect(asked).toBe(1);
    mine = false;
    await expect(journal.append({ n: 20 })).rejects.toMatchObject({ kind: 'run.lost' });
    mine = true;
    await expect(journal.append({ n: 21 })).rejects.toMatchObject({ kind: 'run.lost' });
    await journal.close();
    expect((await all()).length).toBe(20);
  });
});
