import { mkdtempSync, openSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLocalProvider } from '../../../runtime/cluster/index.js';
import { FramebufferReader } from '../../../runtime/cluster/drivers/framebuffer.js';
import { FramebufferThreads } from '../../../runtime/cluster/drivers/framebufferThreads.js';
import { decodePng, toBgrx } from '../../../runtime/data/store/png.js';
import { isEncoded, random, type Screenshot } from '../../../runtime/domain/index.js';
import { XWD_COLOURS, xwdHeader } from '../../helpers/cluster/xwd.js';
import { SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';

const OFFSET = 160 + 256 * 12;

/** The file of an X server: a screen that can be painted on. */
class Painted {
  readonly pixels: Buffer;
  readonly path: string;
  readonly width: number;
  readonly height: number;
  readonly #fd: number;
  readonly #perLine: number;

  constructor(dir: string, width: number, height: number, padding = 0) {
    this.width = width;
    this.height = height;
    this.pixels = Buffer.alloc(4 * width * height);
    this.path = join(dir, `${Math.random()}.fb`);
    this.#perLine = 4 * width + padding;
    const head = xwdHeader({ width, height, bytesPerLine: this.#perLine });
    writeFileSync(this.path, Buffer.concat([head, XWD_COLOURS, Buffer.alloc(this.#perLine * height)]));
    this.#fd = openSync(this.path, 'r+');
  }
  paint(seed: number): void {
    const r = random(seed);
    for (let n = 0; n < 50; n++) this.pixels.writeUInt32LE(r.int(1 << 24), 4 * r.int(this.width * this.height));
    for (let y = 0; y < this.height; y++)
      writeSync(this.#fd, this.pixels, 4 * y * this.width, 4 * this.width, OFFSET + y * this.#perLine);
  }
  async shows(s: Screenshot): Promise<void> {
    const { width, height } = this,
      data = isEncoded(s) ? await toBgrx((await decodePng(s.png)).rgb, width, height) : s.data;
    expect(s).toMatchObject({ width, height });
    // The fourth byte of a pixel means nothing.
    for (const b of [data, this.pixels]) for (let i = 3; i < b.length; i += 4) b[i] = 0;
    expect(data.equals(this.pixels)).toBe(true);
  }
}

describe('threads that read framebuffers', () => {
  let dir: string, threads: FramebufferThreads | undefined;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart-framebuffers-'));
  });
  afterEach(() => threads?.close());
  afterAll(() => rmSync(dir, { recursive: true }));
  const start = (o?: { readonly threads?: number }): FramebufferThreads =>
    (threads = new FramebufferThreads({ entry: { file: resolve('dist/runtime.js') }, ...o }));
  /** Another program in a thread's place. */
  const program = (text: string): { readonly file: string } => {
    const file = join(dir, `${Math.random()}.mjs`);
    writeFileSync(file, text);
    return { file };
  };

  it.each([1, 3])('make files of many screens, each of its own (%i at once)', async (n) => {
    const t = start({ threads: n }),
      screens = [
        new Painted(dir, 64, 40),
        new Painted(dir, 37, 21, 12),
        new Painted(dir, 640, 400),
        new Painted(dir, 64, 40),
      ],
      readers = screens.map((s) => new FramebufferReader(s.path, s, t));
    for (let round = 0; round < 3; round++) {
      screens.forEach((s, i) => s.paint(10 * round + i));
      const seen = await Promise.all(readers.map((r) => r.readEncoded!()));
      for (const [i, s] of screens.entries()) {
        expect(isEncoded(seen[i]!)).toBe(true);
        await s.shows(seen[i]!);
      }
    }
    for (const r of readers) r.close();
  });

  it('give the same file as long as nothing changes', async () => {
    const s = new Painted(dir, 64, 40),
      r = new FramebufferReader(s.path, s, start());
    s.paint(1);
    const [a, b] = [await r.readEncoded!(), await r.readEncoded!()];
    expect(isEncoded(a) && isEncoded(b) && a.png === b.png).toBe(true);
    s.paint(2);
    await s.shows(await r.readEncoded!());
    r.close();
  });

  it('read no file that was closed meanwhile', async () => {
    const s = new Painted(dir, 640, 400),
      r = new FramebufferReader(s.path, s, start());
    s.paint(1);
    const reading = r.readEncoded!();
    r.close();
    await s.shows(await reading);
    await expect(r.readEncoded!()).rejects.toThrow('it was closed');
  });

  it.each([
    ['is not there', undefined],
    ['says nothing', () => undefined],
    ['hangs up', (s: Socket) => s.destroy()],
    ['refuses', (s: Socket) => s.write(Buffer.from([0, 0, 11, 0, 0, 0, 0, 0]))],
  ])('read all of a screen whose X server %s', async (_, met) => {
    const display = join(dir, `${Math.random()}.x`),
      // A thread that hangs up on unread bytes resets the connection: an error here, where nobody cares for it.
      server = met && createServer((s) => met(s.on('error', () => undefined))).listen(display),
      s = new Painted(dir, 64, 40),
      r = new FramebufferReader(s.path, s, start(), display);
    for (let n = 1; n < 4; n++) {
      s.paint(n);
      const seen = await r.readEncoded!();
      expect(isEncoded(seen)).toBe(true);
      await s.shows(seen);
    }
    r.close();
    server?.close();
  });

  it('say what is wrong with a screen, and read it when it is right again', async () => {
    const s = new Painted(dir, 64, 40),
      r = new FramebufferReader(s.path, s, start());
    s.paint(1);
    await r.readEncoded!();
    truncateSync(s.path, OFFSET + 100);
    await expect(r.readEncoded!()).rejects.toMatchObject({ kind: 'desktop.lost' });
    s.paint(2);
    await s.shows(await r.readEncoded!());
    r.close();
  });

  it.each([
    ['ends', 'process.exit(1);'],
    ['fails', "throw new Error('no');"],
    ['hangs', 'setInterval(() => undefined, 1000);'],
    [
      'ends at the first screen',
      "import('node:worker_threads').then((w) => w.parentPort.on('message', () => process.exit(0)));",
    ],
  ])('leave nothing undone: of one that %s there are pixels', async (_, text) => {
    const told: string[] = [];
    threads = new FramebufferThreads({ entry: program(text), silentMs: 300, onFailure: (why) => told.push(why) });
    const s = new Painted(dir, 20, 10),
      r = new FramebufferReader(s.path, s, threads);
    for (let n = 1; n < 6; n++) {
      s.paint(n);
      const seen = await r.readEncoded!();
      expect(isEncoded(seen)).toBe(false);
      await s.shows(seen);
    }
    expect(told).toHaveLength(1);
    r.close();
  });

  it('are not given up for failures with work between them', async () => {
    // Every second screen ends its thread.
    const told: string[] = [];
    threads = new FramebufferThreads({
      entry: program(
        "import('node:worker_threads').then(({ parentPort: p }) => { let n = 0; p.on('message', (m) => 'id' in m && (++n === 2 ? process.exit(1) : p.postMessage({ id: m.id, png: new Uint8Array([1]) }))); });",
      ),
      threads: 1,
      onFailure: (why) => told.push(why),
    });
    const s = new Painted(dir, 20, 10),
      r = new FramebufferReader(s.path, s, threads);
    s.paint(1);
    const kinds: boolean[] = [];
    for (let n = 0; n < 10; n++) kinds.push(isEncoded(await r.readEncoded!()));
    expect(kinds).toEqual(Array.from({ length: 10 }, (_, n) => n % 2 === 0));
    expect(told).toEqual([]);
    r.close();
  });

  it('give pixels of a screen that their thread has no memory for, and none from before', async () => {
    threads = new FramebufferThreads({
      entry: program(
        "import('node:worker_threads').then(({ parentPort: p }) => p.on('message', (m) => 'id' in m && p.postMessage(m.id === 1 ? { id: 1, png: new Uint8Array([1]) } : { id: m.id, failed: true })));",
      ),
    });
    const s = new Painted(dir, 20, 10),
      r = new FramebufferReader(s.path, s, threads);
    s.paint(1);
    expect(isEncoded(await r.readEncoded!())).toBe(true);
    s.paint(2);
    await s.shows(await r.readEncoded!());
    r.close();
  });
});

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

it.skipIf(why)('a local desktop is shown as a file or as pixels, whichever is asked for', async () => {
  const p = createLocalProvider({ screens: { entry: { file: resolve('dist/runtime.js') } } }),
    d = await p.create(SMALL);
  try {
    for (let round = 0; round < 2; round++) {
      const file = await d.screenshot!(),
        pixels = await d.screenshot!('cheapest'),
        { width, height, data } = await d.observe();
      if (!isEncoded(file) || isEncoded(pixels)) throw new Error('a file and pixels were asked for');
      const shown = await toBgrx((await decodePng(file.png)).rgb, width, height);
      for (const b of [shown, data, pixels.data]) for (let i = 3; i < b.length; i += 4) b[i] = 0;
      expect(shown.equals(data)).toBe(true);
      expect(pixels.data.equals(data)).toBe(true);
      // Another X server, in another file.
      if (round === 0) await p.reset(d);
    }
  } finally {
    await p.dispose();
  }
});
