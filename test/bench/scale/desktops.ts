/**
 * Many synthetic desktops in one process: each connection is one desktop that speaks the relay's protocol (relay.py), with
 * the agent's JSON lines and enough of X11 behind it. Every action makes a new screen, put together from encoded bands.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { BAND, variantsOf, type Screens } from './screens.js';
import { FakeX } from './fakeX.js';
import { RESET_MS, SETTLE_MS, between, type DrawnTime } from './wire.js';

/** Messages of relay.py, and what a screen is asked for with. */
export const OPEN = 1,
  DATA = 2,
  CLOSE = 3,
  FRAME = 4,
  ENCODED = 6;
export const WHOLE = 1,
  ENCODE = 4;

export interface DesktopsOptions {
  readonly screens: Screens;
  readonly drawn: DrawnTime;
  readonly draw: () => number;
}

export function serveDesktops(o: DesktopsOptions): Server {
  const heads = o.screens.raw[0]!.map((b, i) => u32(i * BAND, b.length / (o.screens.width * 4), b.length));
  let next = 1;
  return createServer((socket) => {
    // Screens of two desktops are never the same: each counts in a range of its own.
    new SyntheticDesktop(socket, o, heads, next++ * 8192);
  });
}

export const u32 = (...values: readonly number[]): Buffer => {
  const b = Buffer.alloc(values.length * 4);
  values.forEach((v, i) => b.writeUInt32LE(v, i * 4));
  return b;
};

class SyntheticDesktop {
  readonly #socket: Socket;
  readonly #o: DesktopsOptions;
  readonly #heads: readonly Buffer[];
  readonly #first: number;
  readonly #channels = new Map<number, (b: Buffer) => void>();
  #held: Buffer = Buffer.alloc(0);
  /** Screens since the first; the one after a reset is the same on every desktop. */
  #shown = 0;
  #changed = false;
  #fresh = true;
  #sent: Uint8Array | undefined;

  constructor(socket: Socket, o: DesktopsOptions, heads: readonly Buffer[], first: number) {
    this.#socket = socket;
    this.#o = o;
    this.#heads = heads;
    this.#first = first;
    socket.on('data', (d) => this.#receive(d));
    socket.on('error', () => socket.destroy());
  }

  #receive(d: Buffer): void {
    let all = this.#held.length > 0 ? Buffer.concat([this.#held, d]) : d;
    while (all.length >= 6) {
      const size = 6 + all.readUInt32LE(2);
      if (all.length < size) break;
      this.#handle(all[0]!, all[1]!, all.subarray(6, size));
      all = all.subarray(size);
    }
    this.#held = all;
  }

  #handle(type: number, channel: number, payload: Buffer): void {
    if (type === OPEN) this.#open(channel, payload.toString());
    else if (type === DATA) this.#channels.get(channel)?.(payload);
    else if (type === CLOSE) {
      if (this.#channels.delete(channel)) this.#send(CLOSE, channel);
    } else if (type === FRAME) this.#answerFrame(payload[0]!);
  }

  #open(channel: number, path: string): void {
    const send = (b: Buffer): void => {
      if (this.#channels.has(channel)) this.#send(DATA, channel, b);
    };
    if (path.includes('agent')) this.#channels.set(channel, this.#agent(send));
    else {
      const { width, height } = this.#o.screens,
        x = new FakeX({ width, height }, send, () => {
          this.#changed = true;
        });
      this.#channels.set(channel, (b) => x.receive(b));
    }
    this.#send(OPEN, channel);
  }

  /** Answers of agent.py to what an episode asks; waits are drawn. */
  #agent(send: (b: Buffer) => void): (b: Buffer) => void {
    let held = '';
    return (b) => {
      held += b.toString('utf8');
      for (let end = held.indexOf('\n'); end >= 0; end = held.indexOf('\n')) {
        const m = JSON.parse(held.slice(0, end)) as { id: number; cmd: string };
        held = held.slice(end + 1);
        this.#command(m.cmd, (fields) => send(Buffer.from(`${JSON.stringify({ id: m.id, ok: true, ...fields })}\n`)));
      }
    };
  }
  #command(cmd: string, answer: (fields: object) => void): void {
    const { drawn, draw } = this.#o;
    if (cmd === 'reset') {
      const ms = between(draw, RESET_MS);
      this.#fresh = true;
      this.#changed = false;
      drawn.wait(ms, () => answer({ ms, xpid: 7, doubleClickMs: 400, walled: true }));
    } else if (cmd === 'settle') {
      const ms = between(draw, SETTLE_MS);
      drawn.wait(ms, () => answer({ settled: true, ms, detector: 'exact' }));
    } else if (cmd === 'exec')
      answer({ code: 0, stdout: '', stderr: '', timedOut: false, stopped: false, disturbed: false });
    else if (cmd === 'read') answer({ data: Buffer.from(draw() < 0.5 ? 'yes' : 'no').toString('base64'), more: false });
    else answer(cmd === 'state' ? { x: 'S', xCpuMs: 0 } : {});
  }

  /** The variants of the present screen; a new one after every input. */
  #screen(): Uint8Array {
    if (this.#changed) {
      this.#changed = false;
      this.#fresh = false;
      this.#shown++;
    }
    return variantsOf(this.#fresh ? 0 : this.#first + this.#shown, this.#o.screens.bands);
  }

  #answerFrame(flags: number): void {
    if (flags & ENCODE) this.#sendEncoded((flags & WHOLE) !== 0);
    else this.#sendBands((flags & WHOLE) !== 0);
  }

  #sendEncoded(whole: boolean): void {
    const { width, height, encoded } = this.#o.screens,
      v = this.#screen(),
      sent = whole ? undefined : this.#sent;
    this.#sent = v;
    const changed = Array.from(v, (variant, b) => (sent?.[b] === variant ? [] : encoded[variant]![b]!)).flat();
    this.#send(ENCODED, 0, u32(width, height, BAND, changed.length), ...changed);
  }

  #sendBands(whole: boolean): void {
    const { width, height, raw } = this.#o.screens,
      v = this.#screen();
    const rows = Array.from(v, (variant, b) => raw[variant]![b]!);
    if (whole) this.#send(FRAME, 0, u32(width, height, 1, 0, height, width * height * 4), ...rows);
    else this.#send(FRAME, 0, u32(width, height, rows.length), ...rows.flatMap((r, b) => [this.#heads[b]!, r]));
  }

  #send(type: number, channel: number, ...parts: readonly Buffer[]): void {
    const head = Buffer.alloc(6);
    head[0] = type;
    head[1] = channel;
    head.writeUInt32LE(
      parts.reduce((n, p) => n + p.length, 0),
      2,
    );
    this.#socket.cork();
    this.#socket.write(head);
    for (const p of parts) this.#socket.write(p);
    this.#socket.uncork();
  }
}
