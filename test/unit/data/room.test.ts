import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { id, StudioError, type Frame, type FrameRef, type RunId } from '../../../runtime/domain/index.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { DiskRoom } from '../../../runtime/data/store/room.js';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import { isFull } from '../../../runtime/files/diskFull.js';
import { withDir } from '../../helpers/data/manager.js';

const full = (): Error => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });

describe('room on a disk', () => {
  it('is asked for until there is some; meanwhile nothing else is clear to go on', async () => {
    const room = new DiskRoom(),
      told: boolean[] = [];
    room.onChange((x) => told.push(x));
    let tries = 0,
      clear = false;
    const wrote = room.write(() => (++tries < 2 ? Promise.reject(full()) : Promise.resolve(tries)));
    await new Promise((r) => setImmediate(r));
    void room.clear().then(() => {
      clear = true;
    });
    await new Promise((r) => setImmediate(r));
    expect([room.full, clear, told]).toEqual([true, false, [true]]);
    expect(await wrote).toBe(2);
    await room.clear();
    expect([room.full, told]).toEqual([false, [true, false]]);
  });
  it('any other error is passed on at once', async () => {
    await expect(new DiskRoom().write(() => Promise.reject(new Error('EIO')))).rejects.toThrow('EIO');
  });
  it('knows a full disk by what other processes say of it, too', () => {
    expect(isFull(full())).toBe(true);
    expect(isFull(new StudioError('store.io', 'No.', 'Free some.', { cause: full() }))).toBe(true);
    expect(isFull(new StudioError('internal', "EDQUOT: quota exceeded, open 'x'", ''))).toBe(true);
    for (const said of [
      '[Errno 28] No space left on device',
      'OSError: [Errno 122] Disk quota exceeded: /run/engine',
      'Error while serializing: IoError(Os { code: 28, message: "No space left on device" })',
      'I/O error: disk write failed (os error 28)',
      'unexpected pos 64 vs 0: [enforce fail at inline_container.cc:659] . Errno 28',
    ])
      expect(
        isFull(new StudioError('trainer.remote', `The training server could not do save_weights: ${said}`, '')),
      ).toBe(true);
    expect(isFull(new Error('EIO: i/o error'))).toBe(false);
    expect(isFull(new Error('[Errno 280] of step os error 2800'))).toBe(false);
  });
  it('when the run ends, last writes are tried once more in the room of the reserve, others are not', () =>
    withDir(async (dir) => {
      const reserve = join(dir, 'reserve'),
        room = new DiskRoom(reserve);
      await room.keepReserve();
      expect((await stat(reserve)).size).toBe(4 << 20);
      const there = (): Promise<boolean> =>
        stat(reserve).then(
          () => true,
          () => false,
        );
      const fits = async (): Promise<string> => {
        if (await there()) throw full();
        return 'written';
      };
      const last = room.write(fits, { last: true }),
        other = room.write(fits).catch((e: unknown) => (e as { code: string }).code);
      await new Promise((r) => setImmediate(r));
      await room.end();
      expect([await last, await other, await there()]).toEqual(['written', 'ENOSPC', false]);
    }));
});

/** A file system of 8 MB of our own; only root may mount one. */
const mounted: string[] = [];
async function smallDisk(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-small-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', dir]);
  mounted.push(dir);
  return dir;
}
const mayMount = ((): boolean => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  try {
    const dir = execFileSync('mktemp', ['-d']).toString().trim();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir], { stdio: 'ignore' });
    execFileSync('umount', [dir]);
    return true;
  } catch {
    return false;
  }
})();
afterAll(async () => {
  for (const dir of mounted) {
    execFileSync('umount', ['-l', dir]);
    await rm(dir, { recursive: true, force: true });
  }
});
const noise = (): Frame => ({ width: 400, height: 300, data: randomBytes(400 * 300 * 4), capturedAt: 0 });

describe.skipIf(!mayMount)('a run on a disk that fills up', () => {
  const open = async (dir: string): Promise<RunStore> => {
    const store = await RunStore.open(join(dir, 'run'), {
      index: 'local',
      create: { id: id<RunId>('small'), createdAt: 1 },
    });
    await store.room.keepReserve();
    return store;
  };
  const foundFull = (store: RunStore): Promise<void> =>
    new Promise((done) =>
      store.room.onChange((full) => {
        if (full) done();
      }),
    );
  const seqs = async (dir: string): Promise<number[]> => {
    const r = await RunReader.open(join(dir, 'run'), { index: 'local' }),
      out: number[] = [];
    let damage = 0;
    for await (const e of r.events(0, () => damage++)) out.push(e.seq);
    await r.close();
    expect(damage).toBe(0);
    return out;
  };
  const note = (n: number) => ({ type: 'log' as const, level: 'info' as const, message: 'x'.repeat(n) });

  it('acknowledges no record while a screen waits, and everything once there is room', async () => {
    const dir = await smallDisk(),
      store = await open(dir);
    await store.append(note(10));
    // All that is left, but for a few records: frames fail first.
    await writeFile(join(dir, 'filler'), Buffer.alloc((4 << 20) - 100_000 - 130_000, 1)).catch(() => undefined);
    const told: boolean[] = [],
      found = foundFull(store);
    store.room.onChange((x) => told.push(x));
    const frames = [1, 2, 3].map(() => store.frames.put(noise()));
    await found;
    let acknowledged = 0;
    const records = Array.from({ length: 5 }, () => store.append(note(50)).then(() => acknowledged++));
    await new Promise((r) => setTimeout(r, 300));
    expect(acknowledged).toBe(0);
    await rm(join(dir, 'filler'));
    const refs = await Promise.all(frames);
    await Promise.all(records);
    expect([acknowledged, store.room.full, told]).toEqual([5, false, [true, false]]);
    for (const r of refs) expect((await store.frames.get(r)).width).toBe(400);
    await store.close();
    expect(await seqs(dir)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('removes screens without room for a list, which is written when there is some', async () => {
    const dir = await smallDisk(),
      frames = join(dir, 'run', 'frames'),
      first = new PngFrameStore(frames, { packBytes: 400_000 }),
      refs: FrameRef[] = [];
    for (let i = 0; i < 5; i++) refs.push(await first.put(noise()));
    await first.close();
    await writeFile(join(dir, 'filler'), Buffer.alloc(8 << 20, 1)).catch(() => undefined);
    const store = new PngFrameStore(frames, { packBytes: 400_000 }),
      remove = async (some: readonly FrameRef[]): Promise<void> => {
        store.mark(
          some.map((r) => r.hash),
          Date.now() + 3_600_000,
        );
        expect(await store.removeMarked({ dry: false })).toMatchObject({ frames: some.length });
      },
      there = (s: PngFrameStore): Promise<boolean[]> =>
        Promise.all(refs.map(async (r) => (await s.bytesOf(r.hash)) !== undefined));
    const pack = (i: number): Promise<string | undefined> => store.place(refs[i]!.hash).then((p) => p?.file);
    expect([await pack(1), await pack(3)]).toEqual([await pack(0), await pack(2)]);
    await remove([refs[0]!]);
    await store.compact({ tight: true });
    expect(await there(store)).toEqual([false, true, true, true, true]);
    expect(await there(new PngFrameStore(frames))).toEqual([true, true, true, true, true]);
    // All of the second pack: its room is there at once, and is enough for the list.
    await remove([refs[2]!, refs[3]!]);
    await store.compact();
    expect(await there(new PngFrameStore(frames))).toEqual([false, true, false, false, true]);
    await store.close();
  });

  it('closes its journal in the room of the reserve, with every record it was given', async () => {
    const dir = await smallDisk(),
      store = await open(dir);
    await store.append(note(10));
    await mkdir(join(dir, 'other'));
    await writeFile(join(dir, 'other', 'filler'), Buffer.alloc(8 << 20, 1)).catch(() => undefined);
    const found = foundFull(store),
      waiting = Array.from({ length: 40 }, () => store.append(note(20_000)));
    await found;
    await Promise.all([store.close(), ...waiting]);
    expect(await seqs(dir)).toHaveLength(41);
  });
});

describe('a run folder of another version', () => {
  it('is refused in words when it is newer, and nothing in it is changed', () =>
    withDir(async (dir) => {
      const text = JSON.stringify({ format: 7, id: 'x', createdAt: 1 });
      await writeFile(join(dir, 'run.json'), text);
      await expect(RunStore.open(dir, { index: 'local' })).rejects.toMatchObject({
        kind: 'store.newer',
        message: expect.stringMatching(/made by a newer DART Studio \(format 7; this one reads up to 1\)/) as string,
      });
      expect(await readFile(join(dir, 'run.json'), 'utf8')).toBe(text);
    }));
});
