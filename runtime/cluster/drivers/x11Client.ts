import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { messageOf, type Frame, type Size } from '../../domain/index.js';
import { GrowingBuffer } from '../../files/growingBuffer.js';
import { Messages, MessageTooLong } from '../../files/messages.js';
import { lost } from '../agentClient.js';
import { activeTimeout, type Stalled } from '../../concurrency/activeTimeout.js';

/** The events that the client subscribes to. */
export type XEvent =
  /** `ms`: of the server's clock. */
  | { readonly type: 'property'; readonly window: number; readonly atom: number; readonly ms: number }
  | { readonly type: 'mapping' }
  | { readonly type: 'extension'; readonly code: number };
/** Numbers of an extension's requests and events. */
export interface XExtension {
  readonly opcode: number;
  readonly firstEvent: number;
}
/** Codes of extensions' events begin here. */
const EXTENSION_EVENTS = 64;
export const KeyPress = 2,
  KeyRelease = 3,
  ButtonPress = 4,
  ButtonRelease = 5,
  Motion = 6;
export const PropertyChangeMask = 0x400000;
const AnyPropertyType = 0;

/** A frozen X server must not block a rollout for ever, and a loaded machine must not look like one. */
const ANSWER_MS = 15_000;

/** Bytes of the longest answer other than a picture of the screen: a property or the keyboard's map. */
const MAX_ANSWER = 1 << 20;

/** Replies and generic events say how much follows their 32 bytes; errors and all other events have no more. */
const ANSWERS = {
  head: 32,
  size: (head: Buffer): number => {
    const code = head[0]! & 0x7f;
    return code === 1 || code === 35 ? 32 + head.readUInt32LE(4) * 4 : 32;
  },
};

/** The server's set-up answer, and the bytes that came behind it. */
interface Greeting {
  readonly setup: Buffer;
  readonly rest: Buffer;
}
interface Pending {
  readonly seq: number;
  resolve(reply: Buffer): void;
  reject(e: unknown): void;
}

/**
 * The part of the X11 protocol that driving a desktop needs: synthetic input (XTEST), the keyboard map, GetImage, and
 * a few queries; drawn.ts has the extensions that report drawing. Works over any duplex stream: the server's unix
 * socket, TCP, or a bridge. Little-endian, no authority data.
 */
export class X11Client {
  readonly root: number;
  readonly width: number;
  readonly height: number;
  readonly minKeycode: number;
  readonly maxKeycode: number;
  readonly #stream: Duplex;
  readonly #idBase: number;
  #nextResource = 1;
  #seq = 0;
  readonly #pending: Pending[] = [];
  readonly #messages: Messages;
  #queued: Buffer[] = [];
  #failed: Error | undefined;
  readonly #eventListeners = new Set<(e: XEvent) => void>();
  readonly #closeListeners = new Set<(e: Error) => void>();
  #xtest = 0;

  readonly #answerMs: number;
  #watch: NodeJS.Timeout | undefined;
  #answered = 0;

  readonly #stalledMs: Stalled;

  private constructor(stream: Duplex, asked: Size, { setup, rest }: Greeting, answerMs: number, stalledMs: Stalled) {
    this.#stream = stream;
    this.#answerMs = answerMs;
    this.#stalledMs = stalledMs;
    // Before the set-up is read, which is untrusted: an error on a stream without an error listener would end this
    // process.
    stream.on('data', (d: Buffer) => this.#receive(d));
    stream.on('error', (e) => this.#end(e));
    stream.on('close', () => this.#end());
    this.#idBase = setup.readUInt32LE(12);
    const screen = 40 + ((setup.readUInt16LE(24) + 3) & ~3) + setup[29]! * 8;
    this.root = setup.readUInt32LE(screen);
    this.width = setup.readUInt16LE(screen + 20);
    this.height = setup.readUInt16LE(screen + 22);
    if (this.width !== asked.width || this.height !== asked.height)
      throw new RangeError(`a screen of ${this.width}x${this.height}, not ${asked.width}x${asked.height}`);
    this.#messages = new Messages({ ...ANSWERS, most: () => MAX_ANSWER + asked.width * asked.height * 4 });
    this.minKeycode = setup[34]!;
    this.maxKeycode = setup[35]!;
    if (rest.length > 0) this.#receive(rest);
  }

  /**
   * Connects over a stream and finds XTEST. A server with another screen than `asked` counts as lost, and so does one
   * that does not answer a request for `answerMs`; time in which the stream's connection was cut does not count.
   */
  static async over(stream: Duplex, asked: Size, answerMs = ANSWER_MS, stalledMs?: Stalled): Promise<X11Client> {
    const hello = Buffer.alloc(12);
    hello[0] = 0x6c;
    hello.writeUInt16LE(11, 2);
    const greeting = await new Promise<Greeting>((resolve, reject) => {
      const held = new GrowingBuffer();
      const fail = (e?: Error): void => {
        off();
        stream.on('error', () => undefined); // already reported
        stream.destroy();
        reject(lost('The X server refused the connection.', e));
      };
      const stop = activeTimeout(answerMs, stalledMs, () => fail(new Error(`no answer for ${answerMs} ms`)));
      const onClose = (): void => fail();
      const onData = (d: Buffer): void => {
        held.add(d);
        const got = held.bytes;
        const size = got.length >= 8 ? 8 + got.readUInt16LE(6) * 4 : Infinity;
        if (got.length < size) return;
        if (got[0] !== 1) {
          fail(new Error(got.toString('latin1', 8, 8 + got[1]!)));
          return;
        }
        off();
        resolve({ setup: got.subarray(0, size), rest: got.subarray(size) });
      };
      const off = (): void => {
        stop();
        stream.off('data', onData).off('error', fail).off('close', onClose);
      };
      stream.on('data', onData).on('error', fail).on('close', onClose);
      stream.write(hello);
    });
    let c: X11Client;
    try {
      c = new X11Client(stream, asked, greeting, answerMs, stalledMs);
    } catch (e) {
      stream.destroy();
      throw lost(`The X server sent a bad set-up: ${messageOf(e)}.`, e);
    }
    const xt = await c.extension('XTEST');
    if (!xt) {
      c.close();
      throw lost('The X server has no XTEST extension.');
    }
    c.#xtest = xt.opcode;
    c.#ignoreGrabs();
    return c;
  }

  static async open(path: string, asked: Size, answerMs?: number): Promise<X11Client> {
    const s = connect(path);
    await new Promise<void>((resolve, reject) => {
      s.once('connect', resolve);
      s.once('error', reject);
    });
    return X11Client.over(s, asked, answerMs);
  }

  get isClosed(): boolean {
    return this.#failed !== undefined;
  }
  onEvent(l: (e: XEvent) => void): () => void {
    this.#eventListeners.add(l);
    return () => this.#eventListeners.delete(l);
  }
  onClose(l: (e: Error) => void): () => void {
    if (this.#failed) l(this.#failed);
    else this.#closeListeners.add(l);
    return () => this.#closeListeners.delete(l);
  }
  close(): void {
    this.#stream.destroy();
    this.#end();
  }

  /** Resolves when the server has processed everything sent before. */
  async sync(): Promise<void> {
    await this.ask(request(43, 0, 4));
  }

  /**
   * Queues synthetic input without waiting; follow it with sync(). x and y apply to Motion only. With `delayMs` the server
   * waits so long before it, and with all that this client asks afterwards.
   */
  fakeInput(type: number, detail: number, x = 0, y = 0, delayMs = 0): void {
    const b = request(this.#xtest, 2, 36);
    b.set([type, detail], 4);
    b.writeUInt32LE(delayMs, 8);
    b.writeInt16LE(x, 24);
    b.writeInt16LE(y, 26);
    this.post(b);
  }

  /** A program that grabs the whole server for itself (XGrabServer) does not keep this client waiting. */
  #ignoreGrabs(): void {
    const b = request(this.#xtest, 3, 8);
    b[4] = 1;
    this.post(b);
  }

  async internAtom(name: string): Promise<number> {
    const b = request(16, 0, 8 + pad4(name.length));
    b.writeUInt16LE(name.length, 4);
    b.write(name, 8, 'latin1');
    return (await this.ask(b)).readUInt32LE(8);
  }

  /** Value bytes of a window property, or undefined when it is not set. */
  async getProperty(window: number, atom: number): Promise<Buffer | undefined> {
    const b = request(20, 0, 24);
    b.writeUInt32LE(window, 4);
    b.writeUInt32LE(atom, 8);
    b.writeUInt32LE(AnyPropertyType, 12);
    b.writeUInt32LE(65536, 20);
    const r = await this.ask(b);
    return r.readUInt32LE(8) === 0 ? undefined : r.subarray(32, 32 + (r.readUInt32LE(16) * r[1]!) / 8);
  }

  /** Subscribes to 'property' events of the root window. */
  watchRoot(): void {
    const b = request(2, 0, 16);
    b.writeUInt32LE(this.root, 4);
    b.writeUInt32LE(0x800, 8);
    b.writeUInt32LE(PropertyChangeMask, 12);
    this.post(b);
  }

  /** Resolves once the root window has the property (say, the window manager's announcement of itself). */
  async rootProperty(name: string, timeoutMs: number): Promise<void> {
    const atom = await this.internAtom(name);
    this.watchRoot();
    await new Promise<void>((resolve, reject) => {
      const done = (e?: Error): void => {
        stop();
        offEvent();
        offClose();
        if (e) reject(e);
        else resolve();
      };
      const stop = activeTimeout(timeoutMs, this.#stalledMs, () =>
        done(lost(`The window manager did not come up within ${timeoutMs} ms.`)),
      );
      const offEvent = this.onEvent((e) => {
        if (e.type === 'property' && e.atom === atom) done();
      });
      const offClose = this.onClose(done);
      this.getProperty(this.root, atom).then((v) => {
        if (v) done();
      }, done);
    });
  }

  /** Keysyms of every keycode: `perCode` entries for each, from minKeycode on; 0 = none. */
  async keyboardMapping(): Promise<{ perCode: number; keysyms: Uint32Array }> {
    const b = request(101, 0, 8);
    b[4] = this.minKeycode;
    b[5] = this.maxKeycode - this.minKeycode + 1;
    const r = await this.ask(b);
    const keysyms = new Uint32Array((r.length - 32) / 4);
    for (let i = 0; i < keysyms.length; i++) keysyms[i] = r.readUInt32LE(32 + i * 4);
    return { perCode: r[1]!, keysyms };
  }

  /** Gives consecutive keycodes from `first` one keysym each, in both shift levels. */
  changeKeyboardMapping(first: number, keysyms: readonly number[]): void {
    const b = request(100, keysyms.length, 8 + keysyms.length * 8);
    b[4] = first;
    b[5] = 2;
    keysyms.forEach((k, i) => {
      b.writeUInt32LE(k, 8 + i * 8);
      b.writeUInt32LE(k, 12 + i * 8);
    });
    this.post(b);
  }

  /** Where the pointer is, and which of the first five buttons applications have been told are down (bit 0: button 1). */
  async pointer(): Promise<{ x: number; y: number; buttons: number }> {
    const b = request(38, 0, 8);
    b.writeUInt32LE(this.root, 4);
    const r = await this.ask(b);
    return { x: r.readInt16LE(16), y: r.readInt16LE(18), buttons: (r.readUInt16LE(24) >> 8) & 0x1f };
  }

  /** The screen through the protocol; slower than the framebuffer file and without the mouse pointer. */
  async getImage(): Promise<Frame> {
    const b = request(73, 2, 20);
    b.writeUInt32LE(this.root, 4);
    b.writeUInt16LE(this.width, 12);
    b.writeUInt16LE(this.height, 14);
    b.writeUInt32LE(0xffffffff, 16);
    const r = await this.ask(b);
    if (r.length < 32 + this.width * this.height * 4) throw lost('The X server sent only part of the screen.');
    return {
      width: this.width,
      height: this.height,
      data: r.subarray(32, 32 + this.width * this.height * 4),
      capturedAt: Date.now(),
    };
  }

  /** undefined when the server does not have it. With `version`, which some want to be told before all else, that is agreed upon. */
  async extension(
    name: string,
    version?: { readonly major: number; readonly minor: number },
  ): Promise<XExtension | undefined> {
    const b = request(98, 0, 8 + pad4(name.length));
    b.writeUInt16LE(name.length, 4);
    b.write(name, 8, 'latin1');
    const r = await this.ask(b);
    if (r[8] !== 1) return undefined;
    const extension = { opcode: r[9]!, firstEvent: r[10]! };
    if (version) {
      const agree = request(extension.opcode, 0, 12);
      agree.writeUInt32LE(version.major, 4);
      agree.writeUInt32LE(version.minor, 8);
      await this.ask(agree);
    }
    return extension;
  }
  /** A name for a resource that this client makes. */
  newResource(): number {
    return this.#idBase + this.#nextResource++;
  }
  /** Queues a request without an answer; all queued ones go out in one write, with the next query or at the end of this turn. */
  post(b: Buffer): number {
    if (this.#queued.push(b) === 1) queueMicrotask(() => this.#flush());
    this.#seq = (this.#seq + 1) & 0xffff;
    return this.#seq;
  }

  #flush(): void {
    if (this.#queued.length === 0) return;
    const out = this.#queued.length === 1 ? this.#queued[0]! : Buffer.concat(this.#queued);
    this.#queued = [];
    if (!this.#failed) this.#stream.write(out);
  }

  /** The answer to a request. Rejects with `desktop.lost` when it is refused, or the connection ends. */
  ask(b: Buffer): Promise<Buffer> {
    return this.askAll(b).then(([answer]) => answer!);
  }
  /** The answers to requests that go out in one write. */
  askAll(...all: readonly Buffer[]): Promise<readonly Buffer[]> {
    if (this.#failed) return Promise.reject(this.#failed);
    const answers = all.map(
      (b) =>
        new Promise<Buffer>((resolve, reject) => {
          this.#pending.push({ seq: this.post(b), resolve, reject });
        }),
    );
    this.#flush();
    this.#guard();
    return Promise.all(answers);
  }

  /** One timer for all queries: it fires only when none was answered for `answerMs`. */
  #guard(): void {
    if (this.#watch) return;
    const seen = this.#answered,
      stalled = this.#stalledMs?.() ?? 0;
    this.#watch = setTimeout(() => {
      this.#watch = undefined;
      if (this.#pending.length === 0) return;
      if (this.#answered !== seen || (this.#stalledMs?.() ?? 0) > stalled) {
        this.#guard();
        return;
      }
      this.#end(new Error(`no answer for ${this.#answerMs} ms`));
      this.#stream.destroy();
    }, this.#answerMs);
    this.#watch.unref();
  }

  #receive(d: Buffer): void {
    if (this.#failed) return;
    try {
      this.#messages.feed(d, (m) => this.#handle(m[0]! & 0x7f, m));
    } catch (e) {
      if (!(e instanceof MessageTooLong)) throw e;
      this.#end(e);
      this.#stream.destroy();
    }
  }

  #handle(code: number, m: Buffer): void {
    if (code === 1 || code === 0) {
      const seq = m.readUInt16LE(2);
      if (this.#pending[0]?.seq !== seq) return; // an error of a request without an answer
      const p = this.#pending.shift()!;
      this.#answered++;
      if (code === 1) p.resolve(m);
      else p.reject(lost(`The X server refused request ${m[10]} with error ${m[1]}.`));
    } else if (code === 28)
      this.#emit({ type: 'property', window: m.readUInt32LE(4), atom: m.readUInt32LE(8), ms: m.readUInt32LE(12) });
    else if (code === 34) this.#emit({ type: 'mapping' });
    else if (code >= EXTENSION_EVENTS) this.#emit({ type: 'extension', code });
  }

  #emit(e: XEvent): void {
    for (const l of [...this.#eventListeners]) l(e);
  }

  #end(cause?: Error): void {
    if (this.#failed) return;
    clearTimeout(this.#watch);
    this.#failed = lost(`The connection to the X server ended${cause ? `: ${cause.message}` : ''}.`, cause);
    for (const p of this.#pending.splice(0)) p.reject(this.#failed);
    for (const l of [...this.#closeListeners]) l(this.#failed);
    this.#closeListeners.clear();
  }
}

const pad4 = (n: number): number => (n + 3) & ~3;

/** A zeroed request of `bytes` bytes with its header filled in. */
export function request(opcode: number, data: number, bytes: number): Buffer {
  const b = Buffer.alloc(bytes);
  b[0] = opcode;
  b[1] = data;
  b.writeUInt16LE(bytes / 4, 2);
  return b;
}
