import { inflateSync } from 'node:zlib';
import { Duplex } from 'node:stream';
import { messageOf, type EncodedFrame, type Frame, type Screenshot, type Size } from '../../domain/index.js';
import { Messages, MessageTooLong } from '../../files/messages.js';
import { lost } from '../agentClient.js';
import type { ScreenReader } from './desktop.js';
import { EncodedScreen } from './bands.js';
import { takeBuffer } from './framebuffer.js';

/** Message types of images/desk/overlay/opt/dart/relay.py; it documents the protocol. */
const OPEN = 1,
  DATA = 2,
  CLOSE = 3,
  FRAME = 4,
  ERROR = 5,
  ENCODED = 6;
const WHOLE = 1,
  DEFLATE = 2,
  ENCODE = 4;
/** Pixels that nobody has asked for in so long are forgotten: a screen is megabytes, and there are many desktops. */
const FORGET_MS = 10_000;
/** Bytes of the longest message but for a screen. Socket data comes in pieces of 256 KB. */
const MAX_MESSAGE = 1 << 20;
/** Four bytes a pixel, and for each row what a band of its own would need. */
const screenBytes = ({ width, height }: Size): number => height * (4 * width + 128);
/** Characters of a reason that a desktop gives. */
const MAX_WORDS = 300;

/** Type, channel and length of what follows. Screens are read out of their message at once. */
const MESSAGES = {
  head: 6,
  size: (head: Buffer): number => 6 + head.readUInt32LE(2),
  readAtOnce: (head: Buffer): boolean => head[0] === FRAME || head[0] === ENCODED,
};

/** The relay's two pipes: `output` carries its standard output without any of the engine's framing. */
export interface RelayPipes {
  readonly input: { write(b: Buffer): boolean; destroy?(): void };
  readonly output: NodeJS.ReadableStream;
  close(): void;
}

interface Waiting<T> {
  resolve(v: T): void;
  reject(e: Error): void;
}

/**
 * A desktop's sockets and screen over one pair of pipes, for desktops whose files this process cannot open (remote
 * engine, Docker Desktop, no privilege). Ends with the pipes; then every channel closes and every call rejects with
 * `desktop.lost`.
 */
export class Relay {
  readonly #pipes: RelayPipes;
  readonly #channels = new Map<number, { stream: ChannelStream; opening?: Waiting<Duplex> }>();
  /** Requests without an answer, in order; `encoded`: for a file instead of pixels. */
  readonly #frames: (Waiting<Screenshot> & { readonly encoded: boolean })[] = [];
  #nextChannel = 1;
  readonly #messages: Messages;
  #last: Buffer | undefined;
  #forget: NodeJS.Timeout | undefined;
  readonly #asked: Size;
  readonly #screen: EncodedScreen;
  #ended: Error | undefined;
  readonly #deflate: boolean;

  /** `deflate` pays over a network, not on one machine. A screen of another size than `screen` is damaged. */
  constructor(pipes: RelayPipes, o: { deflate: boolean; screen: Size }) {
    this.#pipes = pipes;
    this.#deflate = o.deflate;
    this.#asked = o.screen;
    this.#screen = new EncodedScreen(o.screen);
    this.#messages = new Messages({ ...MESSAGES, most: () => MAX_MESSAGE + screenBytes(o.screen) });
    pipes.output.on('data', (d: Buffer) => this.#receive(d));
    pipes.output.on('error', (e: Error) => this.#end(e));
    pipes.output.on('end', () => this.#end());
    pipes.output.on('close', () => this.#end());
  }

  /** Connect to a unix socket inside the desktop. Rejects with the reason when nothing listens there. */
  connect(path: string): Promise<Duplex> {
    if (this.#ended) return Promise.reject(this.#ended);
    const channel = this.#freeChannel();
    return new Promise((resolve, reject) => {
      const stream = new ChannelStream(
        (b) => this.#send(DATA, channel, b),
        () => {
          if (this.#channels.delete(channel)) this.#send(CLOSE, channel);
        },
      );
      this.#channels.set(channel, { stream, opening: { resolve, reject } });
      this.#send(OPEN, channel, Buffer.from(path));
    });
  }

  /** The current screen, in a new buffer. Rows that did not change since the last call are not sent again. */
  frame(): Promise<Frame> {
    return this.#ask(false) as Promise<Frame>;
  }

  /**
   * The current screen as its desktop encodes it; bands that did not change since the last call are neither encoded nor
   * sent again. A relay of an older image sends pixels.
   */
  screenshot(): Promise<Screenshot> {
    return this.#ask(true);
  }

  #ask(encoded: boolean): Promise<Screenshot> {
    if (this.#ended) return Promise.reject(this.#ended);
    // What an unanswered message will change is not known before it arrives: a request meanwhile asks for the whole
    // screen.
    const waits = this.#frames.some((f) => f.encoded === encoded),
      known = !waits && (encoded ? this.#screen.knows : this.#last !== undefined);
    return new Promise((resolve, reject) => {
      this.#frames.push({ resolve, reject, encoded });
      const flags = (known ? 0 : WHOLE) | (this.#deflate ? DEFLATE : 0) | (encoded ? ENCODE : 0);
      this.#send(FRAME, 0, Buffer.from([flags]));
    });
  }

  close(): void {
    this.#pipes.close();
    this.#end();
  }

  #freeChannel(): number {
    for (let i = 0; i < 255; i++) {
      const c = this.#nextChannel;
      this.#nextChannel = c === 255 ? 1 : c + 1;
      if (!this.#channels.has(c)) return c;
    }
    throw lost('Too many connections to one desktop.');
  }

  #send(type: number, channel: number, payload: Buffer = Buffer.alloc(0)): void {
    if (this.#ended) return;
    const head = Buffer.alloc(6);
    head[0] = type;
    head[1] = channel;
    head.writeUInt32LE(payload.length, 2);
    this.#pipes.input.write(
      payload.length < 4096 ? Buffer.concat([head, payload]) : (this.#pipes.input.write(head), payload),
    );
  }

  #receive(d: Buffer): void {
    if (this.#ended) return;
    try {
      this.#messages.feed(d, (m) => this.#handle(m[0]!, m[1]!, m.subarray(6)));
    } catch (e) {
      if (!(e instanceof MessageTooLong)) throw e;
      this.#end(e);
      this.#pipes.close();
    }
  }

  #handle(type: number, channel: number, payload: Buffer): void {
    const c = this.#channels.get(channel);
    if (type === DATA) c?.stream.push(payload);
    else if (type === OPEN && c?.opening) {
      const { resolve } = c.opening;
      delete c.opening;
      resolve(c.stream);
    } else if (type === CLOSE && c) {
      this.#channels.delete(channel);
      if (c.opening) c.opening.reject(new Error(payload.toString('utf8', 0, MAX_WORDS)));
      c.stream.push(null);
      c.stream.destroy();
    } else if (type === FRAME) this.#takeFrame(() => this.#pixels(payload));
    else if (type === ENCODED) this.#takeFrame((asked) => this.#encoded(payload, asked));
    else if (type === ERROR) {
      this.#forgetScreens();
      this.#frames
        .shift()
        ?.reject(lost(`The desktop's screen cannot be read: ${payload.toString('utf8', 0, MAX_WORDS)}.`));
    }
  }

  #takeFrame(read: (encoded: boolean) => Screenshot): void {
    const waiting = this.#frames.shift();
    if (!waiting) return; // the desktop speaks unasked
    try {
      waiting.resolve(read(waiting.encoded));
    } catch (e) {
      this.#forgetScreens();
      waiting.reject(lost(`A screen arrived damaged: ${messageOf(e)}.`, e));
    }
  }
  #pixels(p: Buffer): Frame {
    const { frame, data } = applyBands(this.#asked, this.#last, p, this.#deflate);
    this.#last = data;
    this.#forget ??= setTimeout(() => this.#forgetPixels(), FORGET_MS).unref();
    this.#forget.refresh();
    return frame;
  }
  #encoded(p: Buffer, asked: boolean): EncodedFrame {
    if (!asked) throw new RangeError('a screen encoded that should be pixels');
    return this.#screen.take(p);
  }
  #forgetPixels(): void {
    // An answer that is on its way may tell only of changes.
    if (this.#frames.length > 0) this.#forget?.refresh();
    else this.#last = undefined;
  }
  #forgetScreens(): void {
    this.#last = undefined;
    this.#screen.forget();
  }

  #end(cause?: Error): void {
    if (this.#ended) return;
    clearTimeout(this.#forget);
    this.#forgetScreens();
    this.#ended = lost("The connection into the desktop's container ended.", cause);
    for (const f of this.#frames.splice(0)) f.reject(this.#ended);
    for (const c of [...this.#channels.values()]) {
      c.opening?.reject(this.#ended);
      c.stream.destroy();
    }
    this.#channels.clear();
  }
}

/** The screen of a desktop behind a relay. */
export const screenOver = (relay: Relay): ScreenReader => ({
  read: () => relay.frame(),
  readEncoded: () => relay.screenshot(),
  close: () => undefined,
});

/**
 * Applies the changed rows of a relay's FRAME message to the last picture. `data` is kept for the next message and
 * never handed out; the frame has its own copy. Throws when the message does not fit, or tells of another screen than
 * was asked for.
 */
export function applyBands(
  asked: Size,
  last: Buffer | undefined,
  p: Buffer,
  deflated: boolean,
): { frame: Frame; data: Buffer } {
  const width = p.readUInt32LE(0),
    height = p.readUInt32LE(4),
    bands = p.readUInt32LE(8);
  if (width !== asked.width || height !== asked.height) throw new RangeError(`a screen of ${width}x${height}`);
  if (bands > height) throw new RangeError(`${bands} bands of a screen of ${height} rows`);
  const row = width * 4,
    bytes = row * height;
  const body =
    deflated && bands > 0 ? inflateSync(p.subarray(12), { maxOutputLength: bytes + bands * 12 }) : p.subarray(12);
  const whole = bands === 1 && body.readUInt32LE(4) === height;
  if (!whole && last?.length !== bytes) throw new RangeError('changes of a picture that we do not have');
  const data = whole ? Buffer.allocUnsafeSlow(bytes) : last!;
  let at = 0;
  for (let i = 0; i < bands; i++) {
    const y = body.readUInt32LE(at),
      rows = body.readUInt32LE(at + 4),
      n = body.readUInt32LE(at + 8);
    if (rows < 1 || n !== rows * row || y + rows > height || at + 12 + n > body.length)
      throw new RangeError('rows outside of the picture');
    body.copy(data, y * row, at + 12, at + 12 + n);
    at += 12 + n;
  }
  const own = takeBuffer(bytes);
  data.copy(own);
  return { frame: { width, height, data: own, capturedAt: Date.now() }, data };
}

class ChannelStream extends Duplex {
  readonly #out: (b: Buffer) => void;
  readonly #closed_: () => void;
  constructor(out: (b: Buffer) => void, onClose: () => void) {
    super({ allowHalfOpen: false });
    this.#out = out;
    this.#closed_ = onClose;
  }
  override _read(): void {
    /* pushed as it comes: a conversation of small messages */
  }
  override _write(b: Buffer, _e: BufferEncoding, done: () => void): void {
    this.#out(b);
    done();
  }
  override _destroy(e: Error | null, done: (e: Error | null) => void): void {
    this.#closed_();
    done(e);
  }
}
