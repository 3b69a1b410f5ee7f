import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { recycleBuffer, takeBuffer, takeShared } from '../../../runtime/cluster/drivers/framebuffer.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { ScreenThreads, screenFile } from '../../../runtime/data/store/screenEncoder.js';
import { random, type Frame } from '../../../runtime/domain/index.js';

const entry = { file: resolve('dist/runtime.js') };

function frame(width: number, height: number, seed: number, data: Buffer = Buffer.alloc(width * height * 4)): Frame {
  const r = random(seed);
  for (let i = 0; i < data.length; i++) data[i] = i % 4 === 3 ? 0 : r.int(4) * 60;
  return { width, height, data, capturedAt: 1 };
}

describe('threads that make files of screens', () => {
  let dir: string, threads: ScreenThreads | undefined;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart-screens-'));
  });
  afterEach(() => threads?.close());
  afterAll(() => rmSync(dir, { recursive: true }));
  /** Another program in a thread's place. */
  const program = (text: string): { readonly file: string } => {
    const file = join(dir, `${Math.random()}.mjs`);
    writeFileSync(file, text);
    return { file };
  };
  const sameAsHere = async (t: ScreenThreads, screens: readonly Frame[]): Promise<void> => {
    for (const [i, made] of (await Promise.all(screens.map((f) => t.encode(f)))).entries()) {
      const here = await screenFile(screens[i]!);
      expect(made.hash).toBe(here.hash);
      expect((await made.png()).equals(await here.png())).toBe(true);
    }
  };

  it.each([1, 3])('make what this thread makes (%i at once), of memory that is shared and that is not', async (n) => {
    threads = new ScreenThreads(entry, { threads: n });
    await sameAsHere(threads, [
      frame(1, 1, 1),
      frame(37, 21, 2),
      frame(640, 400, 3, takeShared(640 * 400 * 4)),
      frame(640, 400, 4),
      frame(1921, 1080, 5, takeShared(1921 * 1080 * 4)),
      frame(64, 40, 6, Buffer.alloc(3 * 64 * 40 * 4).subarray(4, 4 + 64 * 40 * 4)),
    ]);
  });

  it('make one file of a screen that the store and the policy ask for', async () => {
    threads = new ScreenThreads(entry);
    const f = frame(64, 40, 7),
      store = new PngFrameStore(join(dir, 'frames'), { encoder: threads });
    expect(threads.encode(f)).toBe(threads.encode(f));
    const [ref, shown] = await Promise.all([store.put(f), store.encode(f)]);
    expect((await store.read(ref)).equals(shown)).toBe(true);
    expect((await store.get(ref)).data.equals(f.data)).toBe(true);
    await store.close();
  });

  it.each([
    ['ends', 'process.exit(1);'],
    ['fails', "throw new Error('no');"],
    ['hangs', 'setInterval(() => undefined, 1000);'],
    [
      'ends at the first screen',
      "import('node:worker_threads').then((w) => w.parentPort.on('message', () => process.exit(0)));",
    ],
  ])('leave nothing undone: one that %s', async (_, text) => {
    threads = new ScreenThreads(program(text), { silentMs: 300 });
    await sameAsHere(threads, [frame(20, 10, 1), frame(20, 10, 2)]);
    await sameAsHere(threads, [frame(20, 10, 3)]);
  });

  it('leave nothing undone: one that cannot be started', async () => {
    // A path that is neither absolute nor begins with a dot is refused before there is a thread.
    const said: string[] = [];
    threads = new ScreenThreads({ file: 'nowhere.mjs' }, { onFailure: (why) => said.push(why) });
    for (let n = 1; n <= 5; n++) await sameAsHere(threads, [frame(20, 10, n)]);
    expect(said).toHaveLength(1);
  });

  it('leave nothing undone: one that hangs while more is asked of it', async () => {
    threads = new ScreenThreads(program('setInterval(() => undefined, 1000);'), { silentMs: 300, threads: 1 });
    let made = false;
    const asked = [threads.encode(frame(20, 10, 0)).finally(() => (made = true))];
    for (let n = 1; !made; n++) {
      asked.push(threads.encode(frame(20, 10, n)));
      await pause(50);
    }
    expect(new Set((await Promise.all(asked)).map((f) => f.hash)).size).toBe(asked.length);
  });

  it('leave nothing undone when they are closed, and start no more', async () => {
    threads = new ScreenThreads(entry);
    const screens = [1, 2, 3].map((n) => frame(640, 400, n)),
      made = sameAsHere(threads, screens);
    threads.close();
    await made;
    await sameAsHere(threads, [frame(20, 10, 4)]);
  });

  it('are waited for by a store that closes', async () => {
    const store = new PngFrameStore(join(dir, 'closing'), { encoder: new ScreenThreads(entry) }),
      put = store.put(frame(640, 400, 9));
    await store.close();
    const ref = await put;
    expect((await new PngFrameStore(join(dir, 'closing')).read(ref)).length).toBeGreaterThan(100);
    expect(readdirSync(join(dir, 'closing'))).toEqual(['frames-000001.pack']);
  });

  it('answer an impossible size with an error, and go on', async () => {
    threads = new ScreenThreads(entry);
    await expect(threads.encode({ ...frame(8, 8, 1), height: -1 })).rejects.toThrow();
    await sameAsHere(threads, [frame(8, 8, 2)]);
  });
});

describe('memory that threads see', () => {
  it('is bounded, and used again', () => {
    const bytes = 96 << 20,
      taken = [1, 2, 3, 4].map(() => takeShared(bytes)),
      isShared = (b: Buffer): boolean => (b.buffer as ArrayBufferLike) instanceof SharedArrayBuffer;
    expect(taken.map(isShared)).toEqual([true, true, false, false]);
    expect(taken.every((b) => b.length === bytes)).toBe(true);
    for (const b of taken) recycleBuffer(b);
    expect(isShared(takeShared(bytes))).toBe(true);
    expect(isShared(takeBuffer(bytes))).toBe(false);
  });
});
