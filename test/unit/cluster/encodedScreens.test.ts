import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { EncodedScreen, joinAdler } from '../../../runtime/cluster/drivers/bands.js';
import { Relay } from '../../../runtime/cluster/drivers/portable.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { decodePng } from '../../../runtime/data/store/png.js';
import { isEncoded, type EncodedFrame } from '../../../runtime/domain/index.js';

const RELAY = resolve('runtime/cluster/images/desk/overlay/opt/dart/relay.py');
const width = 96,
  height = 70; // the last band has 6 rows
const SIZE = { width, height };
let dir: string;
const here: ChildProcess[] = [];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-screen-'));
  await mkdir(join(dir, 'fb'));
});
afterEach(() => {
  for (const p of here.splice(0)) p.kill('SIGKILL');
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** As Xvfb keeps its screen: an XWD header, then BGRX rows. */
async function draw(pixels: Buffer): Promise<void> {
  const head = Buffer.alloc(160);
  [160, 7, 2, 24, width, height, 0, 0, 32, 0, 32, 32, width * 4].forEach((v, i) => head.writeUInt32BE(v, i * 4));
  await writeFile(join(dir, 'fb', 'Xvfb_screen0'), Buffer.concat([head, pixels]));
}
const picture = (seed: number): Buffer => {
  const b = Buffer.alloc(width * height * 4);
  for (let i = 0; i < width * height; i++) {
    const v = ((i >> 3) * (seed + 7)) & 0xffffff;
    b.writeUIntLE(v, i * 4, 3);
  }
  return b;
};
const rgbOf = (bgrx: Buffer): Buffer =>
  Buffer.from(
    Array.from({ length: width * height }, (_, i) => [bgrx[i * 4 + 2]!, bgrx[i * 4 + 1]!, bgrx[i * 4]!]).flat(),
  );

function relay(): { readonly relay: Relay; readonly sent: () => number } {
  const p = spawn('python3', ['-S', '-E', RELAY], { env: { ...process.env, DART_RUN: dir } }),
    output = new PassThrough();
  here.push(p);
  let bytes = 0;
  p.stdout.on('data', (d: Buffer) => {
    bytes += d.length;
    output.write(d);
  });
  p.on('exit', () => output.end());
  return {
    relay: new Relay({ input: p.stdin, output, close: () => void p.kill('SIGKILL') }, { deflate: false, screen: SIZE }),
    sent: () => bytes,
  };
}
const encoded = async (r: Relay): Promise<EncodedFrame> => {
  const s = await r.screenshot();
  if (!isEncoded(s)) throw new Error('pixels');
  return s;
};

describe('screens that a desktop encodes', () => {
  it('are PNG files of what is on the screen; only bands that changed travel; the same picture is the same bytes', async () => {
    const first = picture(1);
    await draw(first);
    const { relay: r, sent } = relay();
    const a = await encoded(r);
    expect((await decodePng(a.png)).rgb.equals(rgbOf(first))).toBe(true);
    const whole = sent();

    // one pixel, in the fourth band
    const second = Buffer.from(first);
    second.writeUIntLE(0xabcdef, (50 * width + 3) * 4, 3);
    await draw(second);
    const b = await encoded(r);
    expect((await decodePng(b.png)).rgb.equals(rgbOf(second))).toBe(true);
    expect(sent() - whole).toBeLessThan(whole / 2);
    expect((await encoded(relay().relay)).png.equals(b.png)).toBe(true);

    const before = sent();
    expect((await encoded(r)).png).toBe(b.png); // nothing new: nothing sent, nothing copied
    expect(sent() - before).toBeLessThan(64);
    await draw(first);
    expect((await encoded(r)).png.equals(a.png)).toBe(true);
    // Pixels are still to be had, beside it.
    expect((await r.frame()).data.subarray(0, 3).equals(first.subarray(0, 3))).toBe(true);
    expect((await encoded(r)).png.equals(a.png)).toBe(true);
  });

  it('are stored as they came, and named by the hash of their bytes', async () => {
    await draw(picture(2));
    const shot = await encoded(relay().relay),
      frames = new PngFrameStore(join(dir, 'frames')),
      ref = await frames.put(shot);
    expect(ref.hash).toBe(createHash('sha256').update(shot.png).digest('hex'));
    const back = await frames.get(ref);
    expect(back.data.subarray(0, 3).equals(picture(2).subarray(0, 3))).toBe(true);
    expect(await new PngFrameStore(join(dir, 'frames')).put(shot)).toEqual(ref);
    // A picture that says another size than it has is no frame.
    await expect(frames.put({ ...shot, width: 97 })).rejects.toMatchObject({ kind: 'store.damaged' });
    const wrong = { ...ref, hash: 'f'.repeat(64) };
    await mkdir(join(dir, 'frames', 'ff'), { recursive: true });
    await writeFile(join(dir, 'frames', 'ff', `${wrong.hash}.png`), shot.png);
    await expect(frames.get(wrong)).rejects.toMatchObject({ kind: 'store.damaged' });
  });

  it('end the desktop when they do not fit, whatever bytes come', async () => {
    const u32 = (...v: number[]): Buffer => {
      const b = Buffer.alloc(v.length * 4);
      v.forEach((x, i) => b.writeUInt32LE(x >>> 0, i * 4));
      return b;
    };
    const bad = [
      u32(100_000, 100_000, 16, 0),
      u32(16_000, 16_000, 16, 0),
      u32(97, 70, 16, 0),
      u32(96, 70, 0, 0),
      u32(96, 70, 16, 0), // changes of nothing
      u32(96, 70, 16, 1, 9, 1, 0), // no such band
      u32(96, 70, 16, 1, 0, 1, 0xffffffff),
      u32(96, 70, 16, 0xffffffff, 0, 1, 0),
      Buffer.concat([u32(96, 70, 70, 1, 0, 1, 40_000), Buffer.alloc(40_000)]), // longer than its pixels
      Buffer.concat([u32(96, 70, 70, 1, 0, 1, 4), Buffer.alloc(5)]),
      u32(96, 70, 35, 2, 0, 1, 0, 0, 1, 0), // a band twice
    ];
    for (const payload of bad) expect(() => new EncodedScreen(SIZE).take(payload)).toThrow(RangeError);
    fc.assert(
      fc.property(fc.array(fc.nat(100)), fc.uint8Array(), (v, tail) => {
        try {
          new EncodedScreen(SIZE).take(Buffer.concat([u32(...v), tail]));
        } catch (e) {
          expect(e).toBeInstanceOf(RangeError);
        }
      }),
    );
    // Encoded where pixels were asked for.
    const output = new PassThrough(),
      r = new Relay({ input: { write: () => true }, output, close: () => undefined }, { deflate: false, screen: SIZE }),
      asked = r.frame();
    output.write(Buffer.concat([Buffer.from([6, 0]), u32(28), u32(96, 70, 70, 1, 0, 1, 0)]));
    await expect(asked).rejects.toMatchObject({ kind: 'desktop.lost' });
  });

  it('arrive whole wherever the stream is cut, beside what programs say', async () => {
    const message = (type: number, channel: number, payload: Buffer): Buffer => {
      const head = Buffer.alloc(6);
      head[0] = type;
      head[1] = channel;
      head.writeUInt32LE(payload.length, 2);
      return Buffer.concat([head, payload]);
    };
    const screen = (n: number): Buffer => {
      const words = Buffer.alloc(28);
      [width, height, height, 1, 0, n, 9000 + n].forEach((v, i) => words.writeUInt32LE(v, i * 4));
      return Buffer.concat([words, Buffer.alloc(9000 + n, n)]);
    };
    const all = Buffer.concat([
      message(2, 1, Buffer.from('one ')),
      message(6, 0, screen(1)),
      message(2, 1, Buffer.from('two ')),
      message(6, 0, screen(2)),
      message(6, 0, screen(3)),
      message(2, 1, Buffer.from('three')),
    ]);
    const right = [1, 2, 3].map((n) => new EncodedScreen(SIZE).take(screen(n)).png);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(all.length), { maxLength: 12 }), async (cuts) => {
        const output = new PassThrough(),
          r = new Relay(
            { input: { write: () => true }, output, close: () => undefined },
            { deflate: false, screen: SIZE },
          ),
          open = r.connect('/x'),
          asked = [r.screenshot(), r.screenshot(), r.screenshot()];
        output.write(message(1, 1, Buffer.alloc(0)));
        const channel = await open;
        let said = '';
        channel.on('data', (d: Buffer) => (said += d.toString()));
        const at = [0, ...cuts.sort((a, b) => a - b), all.length];
        for (let i = 1; i < at.length; i++) output.write(all.subarray(at[i - 1], at[i]));
        const got = (await Promise.all(asked)).map((f) => (f as EncodedFrame).png);
        await expect.poll(() => said, { interval: 1 }).toBe('one two three');
        got.forEach((png, i) => expect(png.equals(right[i]!)).toBe(true));
      }),
      { numRuns: 40 },
    );
  });

  it('need no pixels kept: those that somebody asked for are forgotten after a while', async () => {
    vi.useFakeTimers();
    try {
      const output = new PassThrough(),
        flags: number[] = [],
        r = new Relay(
          { input: { write: (b) => (flags.push(b[6]!), true) }, output, close: () => undefined },
          { deflate: false, screen: { width: 1, height: 1 } },
        ),
        answer = async (): Promise<void> => {
          const asked = r.frame(),
            words = Buffer.alloc(24);
          [1, 1, 1, 0, 1, 4].forEach((v, i) => words.writeUInt32LE(v, i * 4));
          output.write(Buffer.concat([Buffer.from([4, 0, 28, 0, 0, 0]), words, Buffer.alloc(4)]));
          await vi.advanceTimersByTimeAsync(1);
          await asked;
        };
      await answer();
      await answer();
      await vi.advanceTimersByTimeAsync(11_000);
      await answer();
      expect(flags.map((f) => f & 1)).toEqual([1, 0, 1]); // whole, changes, whole
    } finally {
      vi.useRealTimers();
    }
  });

  it('have the checksum of the whole, from those of the parts', () => {
    const adler = (b: Uint8Array): number => {
      let low = 1,
        high = 0;
      for (const x of b) {
        low = (low + x) % 65_521;
        high = (high + low) % 65_521;
      }
      return ((high << 16) | low) >>> 0;
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 9000 }), fc.uint8Array({ maxLength: 9000 }), (a, b) => {
        expect(joinAdler(adler(a), adler(b), b.length)).toBe(adler(Buffer.concat([a, b])));
      }),
    );
  });
});
