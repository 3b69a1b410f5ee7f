import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as zlibOfNode from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Journal, type Recovery } from '../../../runtime/data/store/journal.js';
import {
  decodeHeader,
  encodeHeader,
  readJournal,
  segmentHeader,
  segments,
  type Damage,
} from '../../../runtime/data/store/journalReader.js';
import { crc32 } from '../../../runtime/files/crc32.js';
import { encodeRecord } from '../../../runtime/data/store/record.js';

/** Bytes in checksums and copies since the event loop turned last. */
const worked = vi.hoisted(() => ({ bytes: 0 }));
vi.mock('node:zlib', async (original) => {
  const zlib = await original<typeof zlibOfNode>();
  // Node before 20.15 has none; there the copies alone are counted.
  if (!('crc32' in zlib)) return zlib;
  return {
    ...zlib,
    crc32: (bytes: Uint8Array, value?: number) => {
      worked.bytes += bytes.length;
      return (zlib.crc32 as typeof crc32)(bytes, value);
    },
  };
});

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'headers-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

const file = (segment: number): string => join(dir, `${String(segment).padStart(8, '0')}.journal`);
const small = { segmentBytes: 200 };
async function write(n: number): Promise<number[]> {
  const { journal } = await Journal.open(dir, small),
    out: number[] = [];
  for (let i = 0; i < n; i++) out.push((await journal.append({ type: 'x', text: 'y'.repeat(60) })).seq);
  await journal.close();
  return out;
}
async function reopen(): Promise<Recovery> {
  const { journal, recovery } = await Journal.open(dir, small);
  await journal.close();
  return recovery;
}
async function read(o: { fromSeq?: number } = {}): Promise<{ seqs: number[]; damage: Damage[] }> {
  const seqs: number[] = [],
    damage: Damage[] = [];
  for await (const b of readJournal(dir, { ...o, onDamage: (d) => damage.push(d) })) seqs.push(...b.map((e) => e.seq));
  return { seqs, damage };
}
const patch = async (path: string, f: (b: Buffer) => void): Promise<void> => {
  const b = await readFile(path);
  f(b);
  await writeFile(path, b);
};
/** As version 0.1 wrote it. */
const oldHeader = (seq: number): Buffer => {
  const b = Buffer.alloc(segmentHeader);
  b.write('DSJRNL1\n', 'latin1');
  b.writeDoubleLE(seq, 8);
  return b;
};
const last = async (): Promise<number> => (await segments(dir)).at(-1)!;

describe('headers of journal segments', () => {
  it('have a checksum: whichever bit flips, it is noticed', () => {
    const head = encodeHeader(123_456);
    expect(decodeHeader(head)).toEqual({ seq: 123_456, checked: true });
    for (let bit = 0; bit < segmentHeader * 8; bit++) {
      const b = Buffer.from(head);
      b[bit >> 3] = b[bit >> 3]! ^ (1 << (bit & 7));
      expect(decodeHeader(b), `bit ${bit}`).toBeUndefined();
    }
    for (const n of [0, 8, segmentHeader - 1]) expect(decodeHeader(head.subarray(0, n))).toBeUndefined();
    for (const seq of [NaN, -1, 0.5, 2.65e156]) expect(decodeHeader(encodeHeader(seq))).toBeUndefined();
  });

  it('whichever bit flips in the last one, every number is given once, and the damage is said', async () => {
    const given = await write(7),
      n = await last(),
      whole = await readFile(file(n));
    for (let bit = 0; bit < segmentHeader * 8; bit++) {
      await writeFile(file(n), whole);
      await patch(file(n), (b) => {
        b[bit >> 3] = b[bit >> 3]! ^ (1 << (bit & 7));
      });
      const { nextSeq, damage, records } = await reopen();
      expect({ nextSeq, records }, `bit ${bit}`).toEqual({ nextSeq: given.length, records: given.length });
      expect(damage, `bit ${bit}`).toEqual([{ segment: n, from: 0, to: segmentHeader, tail: false }]);
      expect((await read({ fromSeq: 3 })).seqs).toEqual([3, 4, 5, 6]);
    }
  });

  it('of an empty last segment too, also when the records before it are damaged', async () => {
    await write(6);
    const n = (await last()) + 1;
    // A segment was begun for record 6, and the last two records were lost with their segment.
    await writeFile(file(n), encodeHeader(6));
    const before = await readFile(file(n - 1));
    await patch(file(n - 1), (b) => b.fill(0x55, segmentHeader));
    expect((await reopen()).nextSeq).toBe(6);
    await patch(file(n), (b) => {
      b[14] = 0x7f;
    });
    // Nobody knows what was lost: what is given next is beyond all that can have been.
    const { nextSeq } = await reopen();
    expect(nextSeq).toBeGreaterThanOrEqual(6);
    expect(nextSeq).toBeLessThan(6 + before.length);
  });

  it('of version 0.1 are read; one that the records contradict is damaged', async () => {
    await write(7);
    for (const n of await segments(dir)) await patch(file(n), (b) => oldHeader(firstOf(b)).copy(b));
    expect(await read()).toEqual({ seqs: [0, 1, 2, 3, 4, 5, 6], damage: [] });
    expect((await read({ fromSeq: 4 })).seqs).toEqual([4, 5, 6]);
    expect(await reopen()).toMatchObject({ nextSeq: 7, damage: [], missing: 0 });
    const n = await last();
    // One flipped bit of the exponent, as it was seen: the next number was 2.65e156. And one that sets it back.
    for (const seq of [2.65e156, 2 ** 40, 1]) {
      await patch(file(n), (b) => oldHeader(seq).copy(b));
      expect(await reopen()).toMatchObject({
        nextSeq: 7,
        damage: [{ segment: n, from: 0, to: segmentHeader, tail: false }],
      });
      expect((await read({ fromSeq: 2 })).seqs, `header ${seq}`).toEqual([2, 3, 4, 5, 6]);
    }
    // Empty, and nothing confirms what it says.
    await writeFile(file(n + 1), oldHeader(2 ** 40));
    expect(await reopen()).toMatchObject({ nextSeq: 7 });
    expect(await write(1)).toEqual([7]);
  });

  it('numbers that occur twice or are none are said, and never make others occur twice', async () => {
    await write(2);
    const f = await open(file(0), 'a');
    await f.write(encodeRecord(0, { type: 'again' }));
    await f.write(encodeRecord(2.65e156, { type: 'no number' }));
    await f.write(encodeRecord(2, { type: 'good' }));
    await f.close();
    const { damage, nextSeq } = await reopen();
    expect(nextSeq).toBe(3);
    expect(damage).toHaveLength(2);
    expect(await write(1)).toEqual([3]);
  });
});
const firstOf = (b: Buffer): number => decodeHeader(b)!.seq;

describe('a journal that was made to cost time', () => {
  it('is given up after a bounded search, and holds nothing up meanwhile', async () => {
    // Every 24 bytes something that looks like a record of megabytes: each takes a checksum of all of them.
    const head = encodeRecord(0, {}).subarray(0, 24),
      bytes = 48 << 20,
      all = Buffer.alloc(bytes + segmentHeader);
    encodeHeader(0).copy(all);
    for (let at = segmentHeader; at + 24 <= all.length; at += 24) {
      head.copy(all, at);
      all.writeUInt32LE(Math.min(32 << 20, all.length - at - 24), at + 4);
      all.writeUInt32LE(0, at + 12);
    }
    await writeFile(file(0), all);
    let most = 0;
    const look = (): void => {
      most = Math.max(most, worked.bytes);
      worked.bytes = 0;
      turn = setImmediate(look);
    };
    let turn = setImmediate(look);
    const copy = Buffer.prototype.copy;
    vi.spyOn(Buffer.prototype, 'copy').mockImplementation(function (this: Buffer, ...to: Parameters<typeof copy>) {
      const copied = copy.apply(this, to);
      worked.bytes += copied;
      return copied;
    } as typeof copy);
    const { seqs, damage } = await read();
    vi.restoreAllMocks();
    clearImmediate(turn);
    expect(seqs).toEqual([]);
    expect(damage).toEqual([{ segment: 0, from: segmentHeader, to: all.length, tail: false }]);
    // Of some hundred MB: more than the whole search takes at once, and it would show.
    expect(most).toBeGreaterThan(1 << 20);
    expect(most).toBeLessThan(6 << 20);
  });

  it('with content that is none of ours is an error in words', async () => {
    const hostile = [
      '{"type":"x","a":{"$bin":["f32",0,1e12]}}',
      '{"type":"x","a":{"$bin":["f32",-8,4]}}',
      '{"type":"x","a":{"$bin":["f64",0,0.5]}}',
      `{"type":"x","a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      'null',
      '{',
    ];
    for (const json of hostile) {
      const made = encodeRecord(0, { a: Float32Array.of(1, 2) }),
        body = Buffer.concat([Buffer.from(json), Buffer.alloc(8)]);
      const record = reseal(made, body, Buffer.byteLength(json));
      await writeFile(file(0), Buffer.concat([encodeHeader(0), record]));
      for await (const [e] of readJournal(dir)) {
        expect(() => e!.event(), json.slice(0, 60)).toThrow(/cannot be understood/);
      }
      expect((await read()).seqs).toEqual([0]);
    }
  });
});
/** A record with another body, and a checksum that fits. */
function reseal(made: Buffer, body: Buffer, json: number): Buffer {
  const out = Buffer.concat([made.subarray(0, 24), body]);
  out.writeUInt32LE(body.length, 4);
  out.writeUInt32LE(json, 12);
  out.writeUInt32LE(crc32(out.subarray(12)), 8);
  return out;
}
