import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, open as openFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SlowDisk } from '../../../runtime/data/slowDisk.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { packName } from '../../../runtime/data/store/framePacks.js';
import { FrameTable, type Place } from '../../../runtime/data/store/frameTable.js';
import { headBytes, mostFrames, recordHead } from '../../../runtime/data/store/packRecord.js';
import { DiskRoom } from '../../../runtime/data/store/room.js';
import type { Frame, FrameRef } from '../../../runtime/domain/index.js';
import { withDir } from '../../helpers/data/manager.js';
import { content, OpenPacks } from '../../helpers/data/packs.js';
import { screen } from '../../helpers/interchange/make.js';

const some = (n: number, from = 0): ReturnType<typeof content>[] =>
  Array.from({ length: n }, (_, i) => content(from + i + 1, 200));
const names = (dir: string): string[] => readdirSync(dir).sort();
const bytesIn = (dir: string): number =>
  names(dir).reduce((n, f) => n + (statSync(join(dir, f)).isFile() ? statSync(join(dir, f)).size : 0), 0);
/** A disk that writes when it is told to. */
class Gate extends DiskRoom {
  open: () => void = () => undefined;
  readonly #opened = new Promise<void>((r) => {
    this.open = r;
  });
  override async write<T>(write: () => Promise<T>): Promise<T> {
    await this.#opened;
    return super.write(write);
  }
}

afterEach(() => vi.restoreAllMocks());

describe('packs of frames', () => {
  it('frames that come together share a write and its sync; all are there when they are acknowledged', () =>
    withDir(async (dir) => {
      const open = new OpenPacks(dir, { packBytes: 1 << 20, sync: true }),
        all = some(300);
      await open.put(all[0]!);
      await Promise.all(
        all.slice(1).map(async (c) => {
          await open.put(c);
          expect((await new OpenPacks(dir).get(c.hash))?.equals(c.bytes)).toBe(true);
        }),
      );
      expect(open.appender.syncs).toBeLessThanOrEqual(4);
      expect(names(dir)).toEqual([packName(1)]);
    }));

  it('a full pack is closed and gets its contents, which say what a look at every record says', () =>
    withDir(async (dir) => {
      const open = new OpenPacks(dir, { packBytes: 2000 }),
        all = some(40);
      for (const c of all) await open.put(c);
      await open.appender.close();
      expect(names(dir).length).toBeGreaterThan(3);
      for (const f of names(dir)) expect(readFileSync(join(dir, f)).subarray(-4).toString()).toBe('DSFe');
      const said = new OpenPacks(dir);
      await said.packs.known();
      expect(said.packs.all.every((p) => p.sealed)).toBe(true);
      for (const f of names(dir)) {
        const bytes = readFileSync(join(dir, f));
        bytes[bytes.length - 20]! ^= 1;
        writeFileSync(join(dir, f), bytes);
      }
      const looked = new OpenPacks(dir);
      for (const c of all) {
        expect((await looked.get(c.hash))?.equals(c.bytes)).toBe(true);
        expect(looked.packs.find(c.hash)).toEqual(said.packs.find(c.hash));
      }
      expect(looked.packs.all.some((p) => p.sealed)).toBe(false);
    }));

  it('two processes write to one folder, each to packs of its own, and both are read beside them', () =>
    withDir(async (dir) => {
      const one = new OpenPacks(dir),
        two = new OpenPacks(dir),
        reader = new OpenPacks(dir),
        mine = some(30),
        theirs = some(30, 100);
      await Promise.all([...mine.map((c) => one.put(c)), ...theirs.map((c) => two.put(c))]);
      for (const c of [...mine, ...theirs])
        for (const who of [reader, one, two]) expect((await who.get(c.hash))?.equals(c.bytes)).toBe(true);
      // What the other may still add to is left alone.
      await two.remove(theirs.map((c) => c.hash));
      await one.compact({ restMs: 60_000 });
      await two.put(theirs[0]!);
      expect((await reader.get(theirs[0]!.hash))?.equals(theirs[0]!.bytes)).toBe(true);
    }));

  it('a pack that somebody removes or adds to is left, and the frames go into another', () =>
    withDir(async (dir) => {
      const open = new OpenPacks(dir, { packBytes: 1 << 20 }),
        [a, b, c] = some(3);
      await open.put(a!);
      rmSync(join(dir, packName(1)));
      await open.put(b!);
      writeFileSync(join(dir, packName(2)), 'x'.repeat(1000), { flag: 'a' });
      await open.put(c!);
      expect(names(dir)).toEqual([packName(2), packName(3)]);
      const reader = new OpenPacks(dir);
      for (const x of [b!, c!]) expect((await reader.get(x.hash))?.equals(x.bytes)).toBe(true);
      expect(await reader.get(a!.hash)).toBeUndefined();
    }));

  it('a pack is closed between writes: what is handed in meanwhile goes into the next', () =>
    withDir(async (dir) => {
      const open = new OpenPacks(dir, { packBytes: 1 << 20 }),
        all = some(200),
        doing: Promise<void>[] = [];
      for (const [i, c] of all.entries()) {
        doing.push(open.put(c));
        if (i % 9 === 4) doing.push(open.appender.close());
        if (i % 3 === 0) await new Promise((r) => setTimeout(r, i % 2));
      }
      await Promise.all(doing);
      await open.appender.close();
      const reader = new OpenPacks(dir);
      for (const c of all) expect((await reader.get(c.hash))?.equals(c.bytes)).toBe(true);
      expect(reader.packs.all.length).toBeGreaterThan(1);
      expect(reader.packs.all.every((p) => p.sealed)).toBe(true);
    }));

  it('a file system that says that files have no names is written to, too', () =>
    withDir(async (dir) => {
      await mkdir(dir, { recursive: true });
      const file = await openFile(join(dir, 'any'), 'w'),
        handles = Object.getPrototypeOf(file) as FileHandle,
        stat = handles.stat;
      await file.close();
      vi.spyOn(handles, 'stat').mockImplementation(async function (this: FileHandle) {
        return Object.assign(await stat.call(this), { nlink: 0 });
      } as never);
      const open = new OpenPacks(dir),
        [a] = some(1);
      await open.put(a!);
      expect((await open.get(a!.hash))?.equals(a!.bytes)).toBe(true);
      expect(open.appender.syncs).toBe(1);
    }));

  it('a pack of which nothing stays goes at once, and is not listed', () =>
    withDir(async (dir) => {
      const open = new OpenPacks(dir, { packBytes: 600 }),
        all = some(9);
      for (const c of all) await open.put(c);
      const first = all.filter((c) => open.packs.find(c.hash)?.pack === 1);
      expect(first.length).toBeGreaterThan(1);
      await open.packs.remove(1, [first[0]!.hash], { whole: true });
      expect(names(dir)).toContain(packName(1));
      await open.packs.remove(
        1,
        first.slice(1).map((c) => c.hash),
        { whole: true },
      );
      expect(names(dir)).not.toContain(packName(1));
      const reader = new OpenPacks(dir);
      for (const c of all) expect((await reader.get(c.hash)) !== undefined).toBe(!first.includes(c));
    }));

  it('a copy that a cut compaction left does not count again when the newer one is removed', () =>
    withDir(async (dir) => {
      const open = new OpenPacks(dir, { packBytes: 600 }),
        all = some(6);
      for (const c of all) await open.put(c);
      await open.put(all[0]!);
      await open.packs.list();
      await open.remove([all[0]!.hash]);
      const reader = new OpenPacks(dir);
      expect(await reader.get(all[0]!.hash)).toBeUndefined();
      for (const c of all.slice(1)) expect((await reader.get(c.hash))?.equals(c.bytes)).toBe(true);
    }));

  it('what was moved is found where it went, also to be read by another thread', () =>
    withDir(async (dir) => {
      const open = new OpenPacks(dir, { packBytes: 600 }),
        reader = new OpenPacks(dir),
        all = some(8);
      for (const c of all) await open.put(c);
      const before = await reader.packs.located(all[0]!.hash);
      expect(before?.pack).toBe(1);
      await open.remove(all.filter((c) => c !== all[0] && open.packs.find(c.hash)?.pack === 1).map((c) => c.hash));
      await open.compact({ share: 0.8 });
      expect(names(dir)).not.toContain(packName(1));
      const now = await reader.packs.located(all[0]!.hash);
      expect(now?.pack).toBeGreaterThan(1);
    }));

  it('what the disk does not keep up with is counted, and no rollout starts until it is written', () =>
    withDir(async (dir) => {
      const room = new Gate(),
        store = new PngFrameStore(join(dir, 'frames'), { room }),
        told = vi.fn();
      expect(store.behindMs).toBe(0);
      const put = store.put(screen(1));
      await expect.poll(() => store.behindMs).toBeGreaterThan(20);
      const disk = new SlowDisk({ behindMs: 3001, onDurable: (l) => store.onDurable(l) }, told);
      expect(disk.slow).toBe(true);
      expect(told).not.toHaveBeenCalled();
      room.open();
      await put;
      expect(told).toHaveBeenCalledTimes(1);
      expect(store.behindMs).toBe(0);
      await store.close();
    }));

  it('a file made to cost time and memory ends soon, and yields no more frames than a pack has', () =>
    withDir(async (dir) => {
      await mkdir(dir, { recursive: true });
      const heads = Buffer.alloc(48 << 20),
        one = Buffer.concat([await recordHead(randomBytes(32), Buffer.from('x')), Buffer.from('x')]);
      for (let at = 0; at + one.length < heads.length; at += one.length) one.copy(heads, at);
      writeFileSync(join(dir, packName(1)), heads);
      writeFileSync(join(dir, packName(2)), Buffer.alloc(48 << 20, 'DSFr'));
      const began = process.cpuUsage(),
        open = new OpenPacks(dir),
        c = content(1, 50);
      await open.put(c);
      expect((await open.get(c.hash))?.equals(c.bytes)).toBe(true);
      const used = process.cpuUsage(began);
      expect((used.user + used.system) / 1000).toBeLessThan(4000);
      expect(open.packs.all.reduce((n, p) => n + p.live + p.dead, 0)).toBeLessThanOrEqual(
        (mostFrames + 9) * one.length * 2,
      );
    }));
});

describe('the frame store on packs', () => {
  it('writes no screen again that is there from before, and one anew whose record was damaged', () =>
    withDir(async (base) => {
      const dir = join(base, 'frames'),
        first = new PngFrameStore(dir),
        screens = [1, 2, 3].map((n) => screen(n)),
        refs = await Promise.all(screens.map((s) => first.put(s)));
      const place = (await first.place(refs[1]!.hash))!,
        bytes = readFileSync(place.file);
      bytes[place.at! + headBytes + 60]! ^= 1;
      writeFileSync(place.file, bytes);
      await expect(first.get(refs[1]!)).rejects.toMatchObject({
        kind: 'store.damaged',
        message: expect.stringContaining('is damaged') as string,
      });
      const again = new PngFrameStore(dir);
      for (const s of screens) await again.put(s);
      expect(again.stats()).toMatchObject({ puts: 3, written: 1 });
      const right = async (s: PngFrameStore): Promise<void> => {
        for (const [i, r] of refs.entries()) expect((await s.get(r)).data).toEqual((screens[i] as Frame).data);
      };
      await right(again);
      await right(first);
      await right(new PngFrameStore(dir));
      await again.close();
    }));

  it('gives the disk back what removed screens took, and reads the others from where they went', () =>
    withDir(async (base) => {
      const dir = join(base, 'frames'),
        store = new PngFrameStore(dir, { packBytes: 4000, sync: false }),
        reader = new PngFrameStore(dir),
        screens = Array.from({ length: 60 }, (_, n) => screen(n + 1)),
        refs: FrameRef[] = [];
      // One after the other: which screens share a pack must not be a matter of time.
      for (const s of screens) refs.push(await store.put(s));
      for (const r of refs) expect((await reader.get(r)).width).toBe(160);
      const before = bytesIn(dir),
        total = await store.totalBytes(),
        kept = refs.filter((_, i) => i % 5 === 0),
        gone = refs.filter((_, i) => i % 5 !== 0);
      store.mark(
        gone.map((r) => r.hash),
        Date.now() + 3_600_000,
      );
      const { frames, bytes } = await store.removeMarked({ dry: false });
      expect(frames).toBe(gone.length);
      expect(await store.totalBytes()).toBe(total - bytes);
      await store.compact({ tight: true });
      expect(bytesIn(dir)).toBeLessThan(before * 0.5);
      for (const at of [store, reader, new PngFrameStore(dir)]) {
        for (const r of kept) expect((await at.get(r)).width).toBe(160);
        for (const r of gone) expect(await at.bytesOf(r.hash).then((n) => at === reader || n === undefined)).toBe(true);
      }
      // A screen that comes again is stored again.
      await store.put(screens[1]!);
      expect((await reader.get(refs[1]!)).width).toBe(160);
      await store.close();
    }));
});

describe('the table of places', () => {
  const name = (n: number): Buffer => {
    const b = Buffer.alloc(32);
    // Names that differ in their last looked-at bytes alone.
    b.writeUInt32LE(n, 8);
    return b;
  };
  it('gives the same answers as a Map', () => {
    const at = fc.record({ n: fc.nat(40), pack: fc.integer({ min: 0, max: 3 }), at: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(at, { maxLength: 400 }), (ops) => {
        const table = new FrameTable(),
          map = new Map<number, Place>();
        for (const o of ops)
          if (o.pack === 0) {
            table.delete(name(o.n));
            map.delete(o.n);
          } else {
            const place = { pack: o.pack, at: o.at, bytes: 1 };
            expect(table.set(name(o.n), place)).toEqual(map.get(o.n));
            map.set(o.n, place);
          }
        for (let n = 0; n <= 40; n++) expect(table.get(name(n))).toEqual(map.get(n));
        expect(table.size).toBe(map.size);
      }),
    );
  });

  it('takes 32 to 48 bytes a frame', () => {
    const table = new FrameTable(),
      n = 200_000,
      names = randomBytes(n * 32);
    for (let i = 0; i < n; i++) table.set(names.subarray(i * 32, i * 32 + 32), { pack: 1, at: i, bytes: 1 });
    expect(table.allocated / n).toBeGreaterThanOrEqual(32);
    expect(table.allocated / n).toBeLessThanOrEqual(48);
    expect(table.get(names.subarray(32 * 77, 32 * 78))).toEqual({ pack: 1, at: 77, bytes: 1 });
  });
});
