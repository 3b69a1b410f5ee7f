import { deflateSync } from 'node:zlib';
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyBands, Relay } from '../../../runtime/cluster/drivers/portable.js';
import { Messages } from '../../../runtime/files/messages.js';
import { Demux } from '../../../runtime/cluster/providers/dockerContainer.js';
import { place } from '../../../runtime/cluster/providers/dockerHosts.js';

const bytes = (max: number): fc.Arbitrary<Buffer> => fc.uint8Array({ maxLength: max }).map((a) => Buffer.from(a));

/** Cut a buffer at the given places, whatever they are. */
function cut(b: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((x) => x % (b.length + 1)))].sort((p, q) => p - q);
  return [0, ...places].map((p, i) => b.subarray(p, places[i] ?? b.length));
}

describe("demultiplexing an exec's output", () => {
  it('gives back both streams whole, however the bytes were cut on the way', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(1, 2), bytes(50)), { maxLength: 20 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        (messages, cuts) => {
          const wire = Buffer.concat(
            messages.map(([to, data]) => {
              const h = Buffer.alloc(8);
              h[0] = to;
              h.writeUInt32BE(data.length, 4);
              return Buffer.concat([h, data]);
            }),
          );
          const got: Record<1 | 2, Buffer[]> = { 1: [], 2: [] };
          const d = new Demux(
            (b) => got[1].push(b),
            (b) => got[2].push(b),
          );
          for (const part of cut(wire, cuts)) d.take(part);
          for (const to of [1, 2] as const)
            expect(Buffer.concat(got[to])).toEqual(Buffer.concat(messages.filter(([t]) => t === to).map(([, b]) => b)));
        },
      ),
    );
  });
});

/** What relay.py sends for a change of picture, in bands of `rows` rows. */
function frameMessage(
  width: number,
  height: number,
  last: Buffer | undefined,
  now: Buffer,
  rows: number,
  deflate: boolean,
): Buffer {
  const line = width * 4,
    parts: Buffer[] = [];
  let n = 0;
  for (let y = 0; y < height; y += last ? rows : height) {
    const r = last ? Math.min(rows, height - y) : height;
    const part = now.subarray(y * line, (y + r) * line);
    if (last && part.equals(last.subarray(y * line, (y + r) * line))) continue;
    const h = Buffer.alloc(12);
    h.writeUInt32LE(y, 0);
    h.writeUInt32LE(r, 4);
    h.writeUInt32LE(part.length, 8);
    parts.push(h, part);
    n++;
  }
  const head = Buffer.alloc(12);
  head.writeUInt32LE(width, 0);
  head.writeUInt32LE(height, 4);
  head.writeUInt32LE(n, 8);
  const body = Buffer.concat(parts);
  return Buffer.concat([head, deflate && n > 0 ? deflateSync(body) : body]);
}

describe('pictures sent as changes', () => {
  it('are the pictures that were sent, and earlier frames stay as they were', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 5 }), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        (width, height, edits, deflate) => {
          let now = Buffer.alloc(width * height * 4),
            last: Buffer | undefined,
            kept: Buffer | undefined;
          const given: { data: Buffer; was: Buffer }[] = [];
          for (const edit of edits) {
            now = Buffer.from(now);
            for (const [at, v] of edit) now[at % now.length] = v;
            const r = applyBands({ width, height }, kept, frameMessage(width, height, last, now, 16, deflate), deflate);
            last = now;
            kept = r.data;
            expect(r.frame.data).toEqual(now);
            given.push({ data: r.frame.data, was: Buffer.from(now) });
          }
          for (const g of given) expect(g.data).toEqual(g.was);
        },
      ),
    );
  });
  it('refuses rows outside of the picture and changes without a picture', () => {
    const full = frameMessage(2, 2, undefined, Buffer.alloc(16, 1), 16, false);
    const bad = Buffer.from(full);
    bad.writeUInt32LE(1, 12);
    expect(() => applyBands({ width: 2, height: 2 }, undefined, bad, false)).toThrow(RangeError);
    const change = frameMessage(2, 20, Buffer.alloc(160), Buffer.alloc(160, 1), 16, false);
    expect(() => applyBands({ width: 2, height: 20 }, undefined, change, false)).toThrow(RangeError);
  });
});

describe('a picture in the wrong hands', () => {
  const screen = { width: 2, height: 20 },
    full = frameMessage(2, 20, undefined, Buffer.alloc(160, 1), 16, false);
  const with_ = (at: number, v: number): Buffer => {
    const b = Buffer.from(full);
    b.writeUInt32LE(v, at);
    return b;
  };
  it.each<[string, Buffer]>([
    ['wider', with_(0, 0xffffffff)],
    ['higher', with_(4, 0xffffffff)],
    ['of no size', with_(0, 0)],
    ['with more bands than rows', with_(8, 21)],
    ['with bands without rows', Buffer.concat([with_(8, 2).subarray(0, 12), Buffer.alloc(24)])],
    ['with bytes of other rows', with_(20, 8)],
  ])('is damaged: one %s', (_, message) => {
    expect(() => applyBands(screen, Buffer.alloc(160), message, false)).toThrow(RangeError);
  });
  it('does not unpack to more than the screen', () => {
    const bomb = Buffer.concat([with_(8, 1).subarray(0, 12), deflateSync(Buffer.alloc(1 << 20))]);
    expect(() => applyBands(screen, undefined, bomb, true)).toThrow(/larger than/);
  });
  it('is said to be what it is, and its desktop is lost', async () => {
    const { pipes } = fakeRelay([3]),
      r = new Relay(pipes, { deflate: false, screen }),
      asked = r.frame();
    await expect(asked).rejects.toMatchObject({
      kind: 'desktop.lost',
      message: 'A screen arrived damaged: a screen of 3x5.',
    });
  });
});

/**
 * A relay.py in miniature: answers OPEN, echoes DATA, sends one picture for FRAME; its bytes are cut at random places.
 */
function fakeRelay(sizes: readonly number[]): { pipes: ConstructorParameters<typeof Relay>[0]; die: () => void } {
  const input = new PassThrough(),
    output = new PassThrough();
  let buf = Buffer.alloc(0),
    k = 0;
  const send = (type: number, channel: number, payload: Buffer = Buffer.alloc(0)): void => {
    const h = Buffer.alloc(6);
    h[0] = type;
    h[1] = channel;
    h.writeUInt32LE(payload.length, 2);
    let b = Buffer.concat([h, payload]);
    while (b.length > 0) {
      const n = 1 + (sizes[k++ % sizes.length]! % b.length);
      output.write(b.subarray(0, n));
      b = b.subarray(n);
    }
  };
  input.on('data', (d: Buffer) => {
    buf = Buffer.concat([buf, d]);
    while (buf.length >= 6 && buf.length >= 6 + buf.readUInt32LE(2)) {
      const n = buf.readUInt32LE(2),
        type = buf[0]!,
        channel = buf[1]!,
        payload = Buffer.from(buf.subarray(6, 6 + n));
      buf = buf.subarray(6 + n);
      if (type === 1) {
        if (payload.toString() === '/none') send(3, channel, Buffer.from('No such file or directory'));
        else send(1, channel);
      } else if (type === 2) send(2, channel, payload);
      else if (type === 4) send(4, 0, frameMessage(3, 5, undefined, Buffer.alloc(60, 7), 16, false));
    }
  });
  return {
    pipes: {
      input,
      output,
      close: () => {
        input.destroy();
        output.destroy();
      },
    },
    die: () => {
      output.end();
    },
  };
}

describe('relay', () => {
  it('keeps channels apart and frames whole, however the bytes arrive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 }),
        fc.array(
          fc.tuple(
            fc.nat(1),
            bytes(40).filter((b) => b.length > 0),
          ),
          { maxLength: 10 },
        ),
        async (sizes, said) => {
          const r = new Relay(fakeRelay(sizes).pipes, { deflate: false, screen: { width: 3, height: 5 } });
          const streams = [await r.connect('/a'), await r.connect('/b')];
          const want = [0, 1].map((i) => Buffer.concat(said.filter(([s]) => s === i).map(([, b]) => b)));
          const heard = streams.map(
            (s, i) =>
              new Promise<Buffer>((resolve) => {
                let got = Buffer.alloc(0);
                if (want[i]!.length === 0) resolve(got);
                s.on('data', (d: Buffer) => {
                  got = Buffer.concat([got, d]);
                  if (got.length >= want[i]!.length) resolve(got);
                });
              }),
          );
          for (const [s, b] of said) streams[s]!.write(b);
          const [f, ...echoes] = await Promise.all([r.frame(), ...heard]);
          expect(f).toMatchObject({ width: 3, height: 5, data: Buffer.alloc(60, 7) });
          expect(echoes).toEqual(want);
          r.close();
        },
      ),
      { numRuns: 30 },
    );
  });
  it('says why a socket cannot be reached, and rejects everything once the pipes end', async () => {
    const { pipes, die } = fakeRelay([3]);
    const r = new Relay(pipes, { deflate: false, screen: { width: 3, height: 5 } });
    await expect(r.connect('/none')).rejects.toThrow('No such file or directory');
    const s = await r.connect('/a');
    const closed = new Promise((resolve) => s.once('close', resolve));
    die();
    await closed;
    await expect(r.frame()).rejects.toMatchObject({ kind: 'desktop.lost' });
    await expect(r.connect('/a')).rejects.toMatchObject({ kind: 'desktop.lost' });
  });
});

describe('a relay in the wrong hands', () => {
  it('is not collected from: a message of 4 GB ends it', async () => {
    const { pipes } = fakeRelay([3]);
    const r = new Relay(pipes, { deflate: false, screen: { width: 3, height: 5 } });
    const head = Buffer.alloc(6, 0xff);
    head[0] = 2;
    pipes.output.emit('data', head);
    await expect(r.frame()).rejects.toMatchObject({ kind: 'desktop.lost' });
  });
});

describe('a screen in tiny pieces', () => {
  it('takes no more than its bytes, and memory that others lent it holds none of theirs', () => {
    const screen = { width: 100, height: 100 };
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 8 }), (sizes) => {
        const format = {
            head: 6,
            size: (head: Buffer) => 6 + head.readUInt32LE(2),
            most: () => 1 << 20,
            readAtOnce: (head: Buffer) => head[0] === 4,
          },
          two = [new Messages(format), new Messages(format)],
          wires = [1, 2].map((n) =>
            Buffer.concat(
              [4, 2, 4].map((type, i) => {
                const head = Buffer.from([type, n, 0, 0, 0, 0]);
                head.writeUInt32LE(screen.width * screen.height * 4 - i, 2);
                return Buffer.concat([head, Buffer.alloc(screen.width * screen.height * 4 - i, 10 * n + i)]);
              }),
            ),
          ),
          kept: Buffer[] = [];
        for (let at = 0, i = 0; at < wires[0]!.length; i++) {
          const n = sizes[i % sizes.length]!;
          two.forEach((m, who) =>
            m.feed(wires[who]!.subarray(at, at + n), (message) => {
              if (message[0] === 2) kept.push(message);
              expect(new Set(message.subarray(6)).size).toBe(1);
              expect(message[6]! >= 10 * (who + 1) && message[6]! < 10 * (who + 1) + 3).toBe(true);
            }),
          );
          at += n;
        }
        expect(kept.map((m) => new Set(m.subarray(6)))).toEqual([new Set([11]), new Set([21])]);
      }),
    );
  });
});

describe('placing', () => {
  it('never overfills an engine, fills all of them, and keeps them even', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 5 }), (capacities) => {
        const hosts = capacities.map((capacity) => ({ capacity, used: 0, down: false }));
        for (let at = place(hosts); at !== undefined; at = place(hosts)) hosts[at]!.used++;
        expect(hosts.map((h) => h.used)).toEqual(capacities);
      }),
    );
  });
});
