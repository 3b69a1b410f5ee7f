import { mkdtempSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { Duplex } from 'node:stream';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Input } from '../../../runtime/cluster/drivers/input.js';
import { ButtonPress, Motion, X11Client } from '../../../runtime/cluster/drivers/x11Client.js';

const SCREEN = { width: 640, height: 400 };

interface Request {
  readonly opcode: number;
  readonly body: Buffer;
  readonly seq: number;
}

/** A tiny X server: answers the handshake, then every request as the test says. */
class PaperServer {
  readonly requests: Request[] = [];
  #server: Server | undefined;
  socket: Socket | undefined;
  reply: (r: Request) => Buffer | undefined = () => undefined;

  async start(): Promise<Socket> {
    const path = join(mkdtempSync(join(tmpdir(), 'x-')), 's');
    this.#server = createServer((s) => {
      this.socket = s;
      let got = Buffer.alloc(0),
        greeted = false,
        seq = 0;
      s.on('error', () => undefined);
      s.on('data', (d) => {
        got = Buffer.concat([got, d]);
        if (!greeted && got.length >= 12) {
          got = got.subarray(12);
          greeted = true;
          s.write(setup());
        }
        while (greeted && got.length >= 4 && got.length >= got.readUInt16LE(2) * 4) {
          const n = got.readUInt16LE(2) * 4;
          const r = { opcode: got[0]!, body: got.subarray(0, n), seq: ++seq };
          got = got.subarray(n);
          this.requests.push(r);
          const out = r.opcode === 98 ? answer(r.seq, 0, Buffer.from([1, 132, 90, 0])) : this.reply(r);
          // Byte by byte, so that the client must put answers together.
          if (out) for (const b of out) s.write(Buffer.from([b]));
        }
      });
    });
    await new Promise<void>((resolve) => this.#server!.listen(path, resolve));
    return connect(path);
  }
  stop(): void {
    this.socket?.destroy();
    this.#server?.close();
  }
}

function setup(): Buffer {
  const vendor = 4,
    b = Buffer.alloc(40 + vendor + 8 + 40);
  b[0] = 1;
  b.writeUInt16LE(11, 2);
  b.writeUInt16LE((b.length - 8) / 4, 6);
  b.writeUInt32LE(0x200000, 12);
  b.writeUInt16LE(vendor, 24);
  b[28] = 1;
  b[29] = 1;
  b[34] = 8;
  b[35] = 9;
  b.writeUInt32LE(77, 52);
  b.writeUInt16LE(640, 72);
  b.writeUInt16LE(400, 74);
  return b;
}

/** A reply: 32 bytes and `extra`. */
function answer(seq: number, data: number, head: Buffer, extra = Buffer.alloc(0)): Buffer {
  const b = Buffer.alloc(32);
  b[0] = 1;
  b[1] = data;
  b.writeUInt16LE(seq, 2);
  b.writeUInt32LE(extra.length / 4, 4);
  head.copy(b, 8);
  return Buffer.concat([b, extra]);
}

/** A pointer with buttons down: bit 0 is button 1. */
const pointer = (seq: number, buttons: number): Buffer =>
  answer(seq, 1, Buffer.from([...Array<number>(16).fill(0), 0, buttons, 0, 0]));
/** Five looks at a button whose release is not told. */
const busy = (n: number): string[] => Array.from({ length: n }, () => ['?', 'idle']).flat();

describe('X11Client', () => {
  const server = new PaperServer();
  afterEach(() => {
    server.stop();
    server.requests.length = 0;
  });

  it('reads the set-up, queues input and sends it with the next question', async () => {
    server.reply = (r) => (r.opcode === 43 ? answer(r.seq, 0, Buffer.alloc(0)) : undefined);
    const x = await X11Client.over(await server.start(), SCREEN);
    expect([x.root, x.width, x.height, x.minKeycode, x.maxKeycode]).toEqual([77, 640, 400, 8, 9]);
    x.fakeInput(Motion, 0, 12, 34);
    x.fakeInput(ButtonPress, 3);
    await x.sync();
    const [move, press] = server.requests.slice(-3);
    expect([
      move!.opcode,
      move!.body[1],
      move!.body[4],
      move!.body.readInt16LE(24),
      move!.body.readInt16LE(26),
    ]).toEqual([132, 2, 6, 12, 34]);
    expect([press!.body[4], press!.body[5]]).toEqual([4, 3]);
    x.close();
  });

  it('tells answers, errors and events apart', async () => {
    server.reply = (r) => {
      if (r.opcode === 101)
        return Buffer.concat([
          event(28, 77, 5),
          answer(r.seq, 2, Buffer.alloc(0), Buffer.from(new Uint32Array([97, 65, 0, 0]).buffer)),
        ]);
      if (r.opcode === 16) return error(r.seq, 16);
      return undefined;
    };
    const x = await X11Client.over(await server.start(), SCREEN);
    const events: unknown[] = [];
    x.onEvent((e) => events.push(e));
    const asked = x.internAtom('NOPE');
    const map = x.keyboardMapping();
    await expect(asked).rejects.toThrow(/refused request 16 with error 11/);
    expect(await map).toEqual({ perCode: 2, keysyms: new Uint32Array([97, 65, 0, 0]) });
    expect(events).toEqual([{ type: 'property', window: 77, atom: 5, ms: 0 }]);
    x.close();
  });

  it.each([
    ['in time', [300], 1],
    ['late once, as its clock begins anew', [401, 100], 2],
    ['late for ever', [500, 500, 500, 500], 3],
  ])('a double click that is %s', async (_, gaps, tries) => {
    let clock = 0xffffffff,
      stamps = 0;
    server.reply = (r) => {
      if (r.opcode === 43) return answer(r.seq, 0, Buffer.alloc(0));
      if (r.opcode === 38) return pointer(r.seq, 0);
      if (r.opcode === 101) return answer(r.seq, 2, Buffer.alloc(0), Buffer.alloc(16));
      if (r.opcode !== 18) return undefined;
      if (stamps++ % 2 === 1) clock = (clock + gaps[(stamps >> 1) - 1]!) >>> 0;
      return event(28, r.body.readUInt32LE(4), 39, clock);
    };
    const x = await X11Client.over(await server.start(), SCREEN);
    let now = 0;
    const input = await Input.create(x, {
      doubleClickMs: 400,
      idle: () => Promise.resolve(),
      now: () => (now += 1000),
    });
    await input.perform({ type: 'left_double', at: { x: 5, y: 6 } });
    const buttons = server.requests.filter((r) => r.opcode === 132 && r.body[1] === 2).map((r) => r.body[4]);
    expect(buttons).toEqual(Array.from({ length: tries }, () => [6, 4, 5, 4, 5]).flat());
    x.close();
  });

  it.each([
    ['scroll', 'looks in time', 0, ['move', '+5', '-5', '?', '+5', '-5', '?', '+5', '-5']],
    ['scroll', 'is busy', 2, ['move', '+5', '-5', '?', 'idle', '?', 'idle', '?', '+5', '-5', '?', '+5', '-5']],
    ['scroll', 'never looks', Infinity, ['move', '+5', '-5', ...busy(5), '+5', '-5', '+5', '-5']],
    ['left_double', 'is busy', 1, ['move', '+1', 'idle', '-1', '?', 'idle', '?', '+1', 'idle', '-1']],
  ] as const)('a %s under a window manager that %s: no button is pressed before its release is told', async (...c) => {
    const [type, , held, expected] = c,
      said: string[] = [];
    let looks = 0;
    server.reply = (r) => {
      if (r.opcode === 132 && r.body[1] === 2)
        said.push(r.body[4] === Motion ? 'move' : `${r.body[4] === ButtonPress ? '+' : '-'}${r.body[5]}`);
      if (r.opcode === 38) {
        said.push('?');
        return pointer(r.seq, looks++ < held ? 0x1f : 0);
      }
      if (r.opcode === 43) return answer(r.seq, 0, Buffer.alloc(0));
      if (r.opcode === 101) return answer(r.seq, 2, Buffer.alloc(0), Buffer.alloc(16));
      return r.opcode === 18 ? event(28, r.body.readUInt32LE(4), 39, 0) : undefined;
    };
    const x = await X11Client.over(await server.start(), SCREEN);
    const input = await Input.create(x, {
      doubleClickMs: 400,
      idle: () => {
        said.push('idle');
        return Promise.resolve();
      },
    });
    const at = { x: 5, y: 6 };
    await input.perform(type === 'scroll' ? { type, at, direction: 'down', amount: 3 } : { type, at });
    expect(said).toEqual(expected);
    x.close();
  });

  it('a closed or silent server is a lost desktop', async () => {
    server.reply = () => undefined;
    // Only the test moves the clock: on a busy machine even a server that answers may take long.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const silent = await X11Client.over(await server.start(), SCREEN, 30);
    const unanswered = expect(silent.sync()).rejects.toMatchObject({
      kind: 'desktop.lost',
      message: expect.stringMatching(/no answer/) as string,
    });
    // The first round may have begun with the introduction, which was answered.
    vi.advanceTimersByTime(60);
    await unanswered;
    vi.useRealTimers();
    const x = await X11Client.over(await server.start(), SCREEN);
    const asked = x.sync();
    const closed = new Promise((resolve) => {
      x.onClose(resolve);
    });
    server.socket!.destroy();
    await expect(asked).rejects.toMatchObject({ kind: 'desktop.lost' });
    await closed;
    await expect(x.sync()).rejects.toMatchObject({ kind: 'desktop.lost' });
  });
});

describe('an X server in the wrong hands', () => {
  /** Says the same to whoever connects. */
  const speaker = (...says: Buffer[]): Duplex =>
    new Duplex({
      read() {
        for (const b of says.splice(0)) this.push(b);
      },
      write: (_b, _e, done) => done(),
    });

  it.each<[string, Buffer]>([
    ['whose introduction is empty', Buffer.from([1, 0, 11, 0, 0, 0, 0, 0])],
    ['whose introduction points behind its end', Object.assign(setup(), { 24: 0xff, 25: 0xff })],
    ['that refuses', Buffer.from([0, 2, 11, 0, 0, 0, 1, 0, 110, 111, 0, 0])],
  ])('is a lost desktop, and its stream ends: one %s', async (_what, hello) => {
    const stream = speaker(hello);
    await expect(X11Client.over(stream, SCREEN, 1000)).rejects.toMatchObject({ kind: 'desktop.lost' });
    expect(stream.destroyed).toBe(true);
  });

  it.each([
    { width: 65_535, height: 65_535 },
    { width: 641, height: 400 },
  ])('is a lost desktop: one with another screen than was asked for', async ({ width, height }) => {
    const hello = setup();
    hello.writeUInt16LE(width, 72);
    hello.writeUInt16LE(height, 74);
    const stream = speaker(hello);
    await expect(X11Client.over(stream, SCREEN, 1000)).rejects.toMatchObject({
      kind: 'desktop.lost',
      message: expect.stringContaining(`a screen of ${width}x${height}, not 640x400`) as string,
    });
    expect(stream.destroyed).toBe(true);
  });

  it('is not waited for: one that never introduces itself', async () => {
    const stream = speaker();
    await expect(X11Client.over(stream, SCREEN, 30)).rejects.toMatchObject({ kind: 'desktop.lost' });
    expect(stream.destroyed).toBe(true);
  });

  it('is not collected from: a message of 16 GB', async () => {
    const endless = Buffer.alloc(32);
    endless[0] = 1;
    endless.writeUInt16LE(1, 2);
    endless.writeUInt32LE(0xffffffff, 4);
    const stream = speaker(Buffer.concat([setup(), endless]));
    await expect(X11Client.over(stream, SCREEN, 10_000)).rejects.toMatchObject({
      kind: 'desktop.lost',
      message: expect.stringMatching(/a message of \d{11} bytes/) as string,
    });
    expect(stream.destroyed).toBe(true);
  });
});

function event(code: number, window: number, atom: number, ms = 0): Buffer {
  const b = Buffer.alloc(32);
  b[0] = code;
  b.writeUInt32LE(window, 4);
  b.writeUInt32LE(atom, 8);
  b.writeUInt32LE(ms, 12);
  return b;
}
function error(seq: number, opcode: number): Buffer {
  const b = Buffer.alloc(32);
  b[1] = 11;
  b.writeUInt16LE(seq, 2);
  b[10] = opcode;
  return b;
}
