import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import type * as Fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { csvCell, csvText } from '../../../runtime/service/exportTable.js';
import { Listeners } from '../../../runtime/data/listeners.js';
import type { NoteEvent } from '../../../runtime/data/events.js';
import { watchBoard } from '../../../runtime/run/tensorBoardWatch.js';
import { EventFile, crc32c, scalarEvent, scalarsOf, tfRecord, versionEvent } from '../../../runtime/run/tensorBoard.js';

/** Bytes that still fit on the disk. */
let room = Infinity;
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof Fs>(),
    full = (): Error => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  return {
    ...fs,
    open: async (...a: Parameters<typeof fs.open>): Promise<Fs.FileHandle> => {
      const file = await fs.open(...a),
        write = file.write.bind(file) as (...x: unknown[]) => Promise<{ bytesWritten: number }>;
      // As the system does: what fits is written, then nothing is.
      file.write = (async (b: Buffer, at = 0, n = b.length - at, ...more: unknown[]) => {
        if (room <= 0) throw full();
        const done = await write(b, at, Math.min(n, room), ...more);
        room -= done.bytesWritten;
        return done;
      }) as never;
      return file;
    },
  };
});
const dirs: string[] = [];
afterEach(async () => {
  room = Infinity;
  for (const d of dirs.splice(0)) await rm(d, { recursive: true, force: true });
});
const folder = async (): Promise<string> => {
  const d = await mkdtemp(join(tmpdir(), 'dart-board-'));
  dirs.push(d);
  return d;
};
/** Records of an event file: lengths as they are written. */
function records(b: Buffer): Buffer[] {
  const out: Buffer[] = [];
  for (let at = 0; at < b.length;) {
    const n = Number(b.readBigUInt64LE(at));
    out.push(b.subarray(at + 12, at + 12 + n));
    at += 16 + n;
  }
  return out;
}

describe('event files for TensorBoard', () => {
  it('have the checksum of iSCSI (RFC 3720, B.4)', () => {
    expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa);
    expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43);
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
  });
  it('are byte for byte what TensorBoard itself writes', () => {
    // tensorboard.compat.proto.event_pb2.Event and RecordWriter of TensorBoard 2.20, with these values.
    expect(tfRecord(versionEvent(1_700_000_000_500)).toString('hex')).toBe(
      '1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110',
    );
    expect(scalarEvent({ at: 1_700_000_000_500, step: 300, values: { 'update/loss': 0.25 } }).toString('hex')).toBe(
      '0900002040fc54d94110ac022a140a120a0b7570646174652f6c6f7373150000803e',
    );
  });
  it('step by the policy version, and figures of the run by the seconds since it began', () => {
    const metrics = { type: 'metrics' as const, version: 7, values: { loss: 0.5, bad: NaN } };
    expect(scalarsOf({ ...metrics, source: 'update' } as const, 5000, 1000)).toEqual({
      at: 5000,
      step: 7,
      values: { 'update/loss': 0.5 },
    });
    expect(scalarsOf({ ...metrics, source: 'run' } as const, 5000, 1000)!.step).toBe(4);
    expect(
      scalarsOf({ type: 'eval', version: 3, episodes: 8, successes: 2, low: 0.1, high: 0.6 }, 1, 0)!.values,
    ).toEqual({
      'evaluation/success': 0.25,
      'evaluation/low': 0.1,
      'evaluation/high': 0.6,
    });
    expect(scalarsOf({ type: 'eval', version: 3, episodes: 0, successes: 0, low: 0, high: 0 }, 1, 0)).toBeUndefined();
    expect(scalarsOf({ type: 'log' }, 1, 0)).toBeUndefined();
    expect(scalarsOf({ type: 'metrics', source: 'x', values: { a: Infinity } }, 1, 0)).toBeUndefined();
  });
  it('hold every scalar in order, whoever does not wait for the one before', async () => {
    const dir = await folder(),
      f = new EventFile(join(dir, 'x'));
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => f.write({ at: 1_700_000_000_000 + i, step: i, values: { a: i } })),
    );
    await f.close();
    const [name] = await readdir(join(dir, 'x'));
    expect(name).toMatch(/^events\.out\.tfevents\.1700000000\.dart\.\d+$/);
    const all = records(await readFile(join(dir, 'x', name!)));
    expect(all).toHaveLength(51);
    all
      .slice(1)
      .forEach((r, i) =>
        expect(r.equals(scalarEvent({ at: 1_700_000_000_000 + i, step: i, values: { a: i } }))).toBe(true),
      );
  });
  it('hold whole records alone when a disk was full in the middle of some, at the first of all too', async () => {
    const dir = join(await folder(), 'x'),
      f = new EventFile(dir),
      scalars = (step: number) => ({ at: 1_700_000_000_000, step, values: { a: step } });
    room = 10;
    await expect(f.write(scalars(0))).rejects.toThrow('ENOSPC');
    expect(await readdir(dir)).toEqual([]);
    room = Infinity;
    await f.write(scalars(1));
    for (const fits of [0, 7, 30]) {
      room = fits;
      await expect(f.write(scalars(9))).rejects.toThrow('ENOSPC');
    }
    room = Infinity;
    await f.write(scalars(2));
    await f.close();
    const [name, ...more] = await readdir(dir);
    expect(more).toEqual([]);
    expect(records(await readFile(join(dir, name!))).map((r) => r.toString('hex'))).toEqual(
      [versionEvent(1_700_000_000_000), scalarEvent(scalars(1)), scalarEvent(scalars(2))].map((r) => r.toString('hex')),
    );
  });
  it('are begun with a later scalar where the first could not', async () => {
    const dir = await folder(),
      f = new EventFile(join(dir, 'x/y'));
    await writeFile(join(dir, 'x'), 'no folder');
    await expect(f.write({ at: 1, step: 1, values: { a: 1 } })).rejects.toThrow();
    await rm(join(dir, 'x'));
    await f.write({ at: 1, step: 1, values: { a: 1 } });
    await f.close();
    expect(await readdir(join(dir, 'x/y'))).toHaveLength(1);
  });
  it('are written while a run journals, where its run file says; a disk that refuses is said once', async () => {
    const dir = await folder(),
      said: string[] = [],
      noted = new Listeners<NoteEvent>(),
      data = { noted, store: { meta: { createdAt: 0 } } };
    const begin = (tensorboard: object, at = dir): (() => Promise<void>) =>
      watchBoard(data as never, {
        config: parseRunFile({ store: { tensorboard } }),
        dir: join(at, 'runs/r1'),
        run: 'r1',
        reporter: { note: (x) => said.push(x) },
      });
    const tell = (): void => {
      noted.tell({ type: 'metrics', source: 'update', version: 1, values: { loss: 1 } });
    };
    const none = begin({});
    tell();
    await none();
    expect(await readdir(dir)).toEqual([]);
    const end = begin({ enabled: true, dir: '../boards' });
    tell();
    await end();
    expect(await readdir(join(dir, 'boards/r1'))).toHaveLength(1);
    tell();
    expect(await readdir(join(dir, 'boards/r1'))).toHaveLength(1);
    const refused = begin({ enabled: true, dir: '/dev/null/x' });
    tell();
    tell();
    await refused();
    expect(said).toEqual([expect.stringContaining('TensorBoard')]);
  });
});

describe('CSV', () => {
  it('quotes what would be read as something else', () => {
    expect(['a', 1, null, undefined, 'a,b', 'say "x"', 'two\nlines', true].map(csvCell)).toEqual([
      'a',
      '1',
      '',
      '',
      '"a,b"',
      '"say ""x"""',
      '"two\nlines"',
      'true',
    ]);
    expect(csvText([{ a: 1, b: 'x,y' }], ['a', 'b', 'c'])).toBe('a,b,c\n1,"x,y",');
  });
});
