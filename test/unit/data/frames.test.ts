import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { decode, encode } from 'fast-png';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { random } from '../../../runtime/domain/index.js';
import type { Frame, FrameRef } from '../../../runtime/domain/index.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { decodePng } from '../../../runtime/data/store/png.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'frames-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

function frame(width: number, height: number, seed: number): Frame {
  const r = random(seed),
    data = Buffer.alloc(width * height * 4);
  for (let i = 0; i < data.length; i++) data[i] = i % 4 === 3 ? 0 : r.int(256);
  return { width, height, data, capturedAt: 1 };
}
const fileOf = (at: string, { hash }: FrameRef): string => join(at, hash.slice(0, 2), `${hash}.png`);
const files = async (): Promise<string[]> =>
  (await readdir(dir, { recursive: true, withFileTypes: true })).filter((e) => e.isFile()).map((e) => e.name);

describe('frame store', () => {
  it('addresses a frame by the sha-256 of width, height and RGB, and gives the same pixels back', async () => {
    const f = frame(37, 21, 1),
      store = new PngFrameStore(dir);
    const ref = await store.put(f);
    const head = Buffer.alloc(8);
    head.writeUInt32LE(37, 0);
    head.writeUInt32LE(21, 4);
    const rgb = Buffer.alloc(37 * 21 * 3);
    for (let i = 0; i < 37 * 21; i++) {
      rgb[i * 3] = f.data[i * 4 + 2]!;
      rgb[i * 3 + 1] = f.data[i * 4 + 1]!;
      rgb[i * 3 + 2] = f.data[i * 4]!;
    }
    expect(ref.hash).toBe(createHash('sha256').update(head).update(rgb).digest('hex'));
    expect((await store.get(ref)).data.equals(f.data)).toBe(true);
    // Another program reads the same picture.
    const other = decode(await store.read(ref));
    expect([other.width, other.height, other.channels]).toEqual([37, 21, 3]);
    expect(Buffer.from(other.data as Uint8Array).equals(rgb)).toBe(true);
  });

  it('a file of an older version that was damaged, or is none, counts no more when its frame is stored again', async () => {
    const f = frame(37, 21, 1),
      old = join(dir, 'old'),
      ref = await new PngFrameStore(old, { files: true }).put(f),
      good = await readFile(fileOf(old, ref)),
      other = await new PngFrameStore(old, { files: true }).put(frame(37, 21, 2));
    const flipped = Buffer.from(good);
    flipped[good.length >> 1] = flipped[good.length >> 1]! ^ 1;
    for (const [n, bad] of [
      flipped,
      good.subarray(0, 50),
      Buffer.alloc(0),
      await readFile(fileOf(old, other)),
    ].entries()) {
      const at = join(dir, String(n));
      await new PngFrameStore(at, { files: true }).put(f);
      await writeFile(fileOf(at, ref), bad);
      await expect(new PngFrameStore(at).get(ref)).rejects.toMatchObject({ kind: 'store.damaged' });
      const store = new PngFrameStore(at);
      expect(await store.put(f)).toEqual(ref);
      expect(store.stats().written).toBe(1);
      expect((await store.get(ref)).data.equals(f.data)).toBe(true);
      await store.close();
    }
  });

  it('frames of an older version are found, and not written again', async () => {
    const screens = [1, 2, 3].map((s) => frame(9, 9, s)),
      before = new PngFrameStore(dir, { files: true }),
      refs = await Promise.all(screens.map((s) => before.put(s))),
      store = new PngFrameStore(dir);
    for (const s of screens) await store.put(s);
    expect(store.stats().written).toBe(0);
    await store.put(frame(9, 9, 4));
    expect((await files()).filter((f) => f.endsWith('.pack'))).toHaveLength(1);
    for (const [i, r] of refs.entries()) expect((await store.get(r)).data.equals(screens[i]!.data)).toBe(true);
    await store.close();
  });

  it('ignores the fourth byte and tells sizes apart', async () => {
    const store = new PngFrameStore(dir),
      f = frame(6, 4, 2),
      g = { ...f, data: Buffer.from(f.data) };
    for (let i = 3; i < g.data.length; i += 4) g.data[i] = 255;
    expect((await store.put(g)).hash).toBe((await store.put(f)).hash);
    expect((await store.put({ ...f, width: 4, height: 6 })).hash).not.toBe((await store.put(f)).hash);
  });

  it('writes a screen once, whoever asks at the same time, and once more never after a restart', async () => {
    const store = new PngFrameStore(dir, { concurrency: 2 }),
      screens = [1, 2, 3, 4, 5].map((s) => frame(20, 10, s));
    const refs = await Promise.all([...screens, ...screens, ...screens].map((s) => store.put(s)));
    expect(new Set(refs.map((r) => r.hash)).size).toBe(5);
    expect(store.stats()).toMatchObject({ puts: 15, written: 5, waiting: 0 });
    const again = new PngFrameStore(dir);
    await again.put(screens[0]!);
    expect(again.stats().written).toBe(0);
    expect(await files()).toEqual(['frames-000001.pack']);
  });

  it('still writes each screen once when the memory of known hashes is small', async () => {
    const store = new PngFrameStore(dir, { known: 2 });
    for (const s of [1, 2, 3, 1, 2, 3]) await store.put(frame(8, 8, s));
    expect(store.stats().written).toBe(3);
  });

  it('what is put while it is to be removed, or was put lately, stays', async () => {
    const screens = [1, 2, 3].map((n) => frame(8, 8, n)),
      other = new PngFrameStore(join(dir, 'other')),
      hashes = await Promise.all(screens.map(async (s) => (await other.put(s)).hash)),
      // The memory of known hashes is small.
      store = new PngFrameStore(join(dir, 'frames'), { known: 1 }),
      later = Date.now() + 3_600_000;
    const puts = screens.map((s) => store.put(s));
    while (!(store.behindMs > 0)) await new Promise((r) => setImmediate(r));
    store.mark(hashes, later);
    await Promise.all(puts);
    expect(await store.removeMarked({ dry: false })).toEqual({ frames: 0, bytes: 0 });
    store.mark(hashes);
    expect(await store.removeMarked({ dry: false })).toEqual({ frames: 0, bytes: 0 });
    store.mark(hashes, later);
    expect(await store.removeMarked({ dry: false })).toMatchObject({ frames: 3 });
    await store.close();
    await other.close();
  });

  it('is closed with every screen that was handed in', async () => {
    const store = new PngFrameStore(dir),
      puts = [1, 2, 3, 4, 5, 6].map((n) =>
        store.copyIn({ hash: String(n).repeat(64), width: 1, height: 1 }, {
          read: () => Promise.resolve(Buffer.alloc(99, n)),
        } as never),
      );
    await store.close();
    const there = await files();
    await Promise.all(puts);
    expect([there, await files()]).toEqual([['frames-000001.pack'], ['frames-000001.pack']]);
    expect((await readFile(join(dir, there[0]!))).subarray(-4).toString()).toBe('DSFe');
  });

  it('says store.damaged for a missing, cut, altered or swapped file of an older version', async () => {
    const store = new PngFrameStore(dir, { files: true }),
      ref = await store.put(frame(30, 20, 3)),
      other = await store.put(frame(30, 20, 4));
    const good = await readFile(fileOf(dir, ref));
    const reject = async (bytes: Buffer): Promise<void> => {
      await writeFile(fileOf(dir, ref), bytes);
      await expect(store.get(ref)).rejects.toMatchObject({ kind: 'store.damaged' });
    };
    await reject(good.subarray(0, good.length - 20));
    await reject(Buffer.alloc(0));
    const flipped = Buffer.from(good);
    flipped[60] = flipped[60]! ^ 1;
    await reject(flipped);
    await reject(await readFile(fileOf(dir, other)));
    await rm(fileOf(dir, ref));
    await expect(store.get(ref)).rejects.toMatchObject({ kind: 'store.damaged' });
    await expect(store.get({ ...ref, hash: '../../etc/passwd' })).rejects.toMatchObject({ kind: 'store.damaged' });
  });

  it('refuses a frame whose buffer does not match its size', async () => {
    await expect(
      new PngFrameStore(dir).put({ width: 3, height: 3, data: Buffer.alloc(5), capturedAt: 0 }),
    ).rejects.toMatchObject({ kind: 'internal' });
  });

  it('fails with store.io where it cannot write, and leaves no half file', async () => {
    await writeFile(join(dir, 'frames'), 'a file, not a folder');
    await expect(new PngFrameStore(join(dir, 'frames')).put(frame(4, 4, 1))).rejects.toMatchObject({
      kind: 'store.io',
    });
    expect(await files()).toEqual(['frames']);
  });

  it('keeps the event loop turning while a large screen is hashed', async () => {
    let turns = 0,
      on = true;
    const tick = (): void => {
      turns++;
      if (on) setImmediate(tick);
    };
    setImmediate(tick);
    await new PngFrameStore(dir).put(frame(1920, 1080, 5));
    on = false;
    expect(turns).toBeGreaterThanOrEqual(3);
  });
});

describe('png decoder', () => {
  it('reads every filter type of a PNG made elsewhere', async () => {
    const rgb = Buffer.from(Array.from({ length: 9 * 5 * 3 }, (_, i) => (i * 37) % 256));
    expect(
      (await decodePng(Buffer.from(encode({ width: 9, height: 5, channels: 3, data: rgb })))).rgb.equals(rgb),
    ).toBe(true);
    const stride = 27;
    for (let filter = 1; filter <= 4; filter++) {
      const raw = Buffer.alloc(28 * 5);
      for (let y = 0; y < 5; y++) {
        raw[y * 28] = filter;
        for (let x = 0; x < stride; x++) {
          const at = y * stride + x,
            a = x >= 3 ? rgb[at - 3]! : 0,
            b = y > 0 ? rgb[at - stride]! : 0,
            c = x >= 3 && y > 0 ? rgb[at - stride - 3]! : 0;
          const p = a + b - c,
            [pa, pb, pc] = [Math.abs(p - a), Math.abs(p - b), Math.abs(p - c)];
          const predicted = [0, a, b, (a + b) >> 1, pa <= pb && pa <= pc ? a : pb <= pc ? b : c][filter]!;
          raw[y * 28 + 1 + x] = rgb[at]! - predicted;
        }
      }
      const png = await rebuilt(9, 5, deflateSync(raw));
      expect((await decodePng(png)).rgb.equals(rgb), `filter ${filter}`).toBe(true);
    }
  });

  it('does not inflate more than the picture can hold', async () => {
    await expect(decodePng(await rebuilt(2, 2, deflateSync(Buffer.alloc(10_000_000))))).rejects.toMatchObject({
      kind: 'store.damaged',
    });
    await expect(decodePng(await rebuilt(0, 2, deflateSync(Buffer.alloc(2))))).rejects.toMatchObject({
      kind: 'store.damaged',
    });
  });
});

/** A PNG with a given IDAT, put together by hand. */
async function rebuilt(width: number, height: number, idat: Buffer): Promise<Buffer> {
  const { crc32 } = await import('node:zlib');
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data]),
      n = Buffer.alloc(4),
      c = Buffer.alloc(4);
    n.writeUInt32BE(data.length);
    c.writeUInt32BE(crc32(body));
    return Buffer.concat([n, body, c]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  head[9] = 2;
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('IDAT', idat),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
