import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { Frame, Screenshot, Size } from '../../domain/index.js';
import { StudioError } from '../../domain/index.js';
import type { FramebufferThreads, OpenFramebuffer } from './framebufferThreads.js';

/** The pixel layout from the header of an XWD file (XWDFile.h, version 7; all fields 32 bit). */
export interface XwdLayout {
  readonly width: number;
  readonly height: number;
  /** Bytes to the first pixel. */
  readonly offset: number;
  readonly bytesPerLine: number;
}

/**
 * Parses the header of an XWD dump: ZPixmap, 32 bits a pixel, least significant byte first, as Xvfb writes on every
 * little-endian machine.
 */
export function parseXwd(head: Buffer): XwdLayout {
  if (head.length < 100) throw bad('its header is cut off');
  const order = head.readUInt32BE(4) === 7 ? 'BE' : head.readUInt32LE(4) === 7 ? 'LE' : undefined;
  if (!order) throw bad('it is not an XWD version 7 file');
  const field = (i: number): number => (order === 'BE' ? head.readUInt32BE(i * 4) : head.readUInt32LE(i * 4));
  const layout = { width: field(4), height: field(5), offset: field(0) + field(19) * 12, bytesPerLine: field(12) };
  if (field(2) !== 2 || field(11) !== 32 || field(7) !== 0)
    throw bad(`its pixels are not 32-bit BGRX (format ${field(2)}, ${field(11)} bits, byte order ${field(7)})`);
  if (
    layout.width < 1 ||
    layout.height < 1 ||
    layout.width > 16384 ||
    layout.height > 16384 ||
    layout.bytesPerLine < layout.width * 4
  )
    throw bad('its sizes make no sense');
  return layout;
}

const bad = (why: string): StudioError =>
  new StudioError(
    'desktop.lost',
    `The framebuffer file cannot be used: ${why}.`,
    'Reset the desktop; if it goes on, rebuild it with `dart-studio desktop build`.',
  );

/**
 * Reads screens from the file that `Xvfb -fbdir` keeps up to date (shared memory in effect). One reader per X server.
 */
export class FramebufferReader {
  #fd: number;
  readonly layout: XwdLayout;
  /** See ScreenReader. */
  readonly readEncoded?: () => Promise<Screenshot>;
  readonly pixelsAtHand = true;
  /** Threads that are reading. */
  #readings = 0;
  /** The descriptor to close once no thread reads. */
  #closing: number | undefined;
  #forget: (() => void) | undefined;

  /**
   * `threads` make files of it, and ask the X server at the socket `display` what of it was drawn. Throws `desktop.lost`
   * when it is not a screen of the size that was asked for.
   */
  constructor(path: string, asked: Size, threads?: FramebufferThreads, display?: string) {
    // Programs of the desktop could have put a link or a pipe there instead.
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      if (!fstatSync(this.#fd).isFile()) throw bad('it is not a file');
      const head = Buffer.alloc(160);
      this.layout = parseXwd(head.subarray(0, readSync(this.#fd, head, 0, 160, 0)));
      const { width, height } = this.layout;
      if (width !== asked.width || height !== asked.height)
        throw bad(`it is a screen of ${width}x${height}, not ${asked.width}x${asked.height}`);
    } catch (e) {
      this.close();
      throw e;
    }
    if (threads) this.readEncoded = this.#encodedBy(threads, display);
  }

  #encodedBy(threads: FramebufferThreads, display: string | undefined): () => Promise<Screenshot> {
    const { width, height, offset, bytesPerLine } = this.layout,
      screen = threads.screen();
    let last: Buffer | undefined;
    this.#forget = () => threads.forget(screen);
    return async () => {
      const from: OpenFramebuffer = {
        fd: this.#open(),
        size: { width, height },
        offset,
        bytesPerLine,
        ...(display === undefined ? {} : { display }),
      };
      this.#readings++;
      const answer = await threads.encode(screen, from).finally(() => this.#readDone());
      if (answer?.error !== undefined) throw bad(answer.error);
      if (answer?.png) last = Buffer.from(answer.png.buffer, answer.png.byteOffset, answer.png.byteLength);
      // Without a thread the pixels are returned: every caller takes them too.
      if (!answer || answer.failed || !last) return this.read();
      return { width, height, png: last, capturedAt: Date.now() };
    };
  }

  /**
   * The screen as it is now, in a buffer of its own. Synchronous on purpose: 0.2 ms at 1280x720, less than a thread
   * hop.
   */
  read(): Frame {
    const { width, height, offset, bytesPerLine } = this.layout,
      fd = this.#open();
    const row = width * 4;
    const data = takeShared(row * height);
    if (bytesPerLine === row) {
      if (readSync(fd, data, 0, data.length, offset) !== data.length) throw bad('it is too short');
    } else {
      for (let y = 0; y < height; y++)
        if (readSync(fd, data, y * row, row, offset + y * bytesPerLine) !== row) throw bad('it is too short');
    }
    return { width, height, data, capturedAt: Date.now() };
  }

  #open(): number {
    if (this.#fd < 0) throw bad('it was closed');
    return this.#fd;
  }
  close(): void {
    const fd = this.#fd;
    this.#fd = -1;
    if (fd < 0) return;
    this.#forget?.();
    // A thread may be reading: a number that is closed can be that of another file a moment later.
    if (this.#readings > 0) this.#closing = fd;
    else closeSync(fd);
  }
  #readDone(): void {
    if (--this.#readings > 0 || this.#closing === undefined) return;
    closeSync(this.#closing);
    this.#closing = undefined;
  }
}

/** Recycled buffers, by size. Fresh memory of this size costs page faults and, later, full garbage collections. */
const own = new Map<number, Buffer[]>(),
  shared = new Map<number, Buffer[]>();
const KEEP = 16;
/**
 * Bytes of memory that threads share, at most. The collector does not count them, so that what nobody gives back lies about until it
 * looks for something else: 5 GB of 600 screens that were dropped (Node 20).
 */
const MOST_SHARED = 256 << 20;
let sharing = 0;
const collected = new FinalizationRegistry<number>((bytes) => {
  sharing -= bytes;
});

export const takeBuffer = (bytes: number): Buffer => own.get(bytes)?.pop() ?? Buffer.allocUnsafeSlow(bytes);

/**
 * A buffer that threads can read without a copy (data/store/screenEncoder.ts), as far as there is room for such.
 * Reading a file fills it as fast as any other buffer, copying three times as slowly.
 */
export function takeShared(bytes: number): Buffer {
  const spare = shared.get(bytes)?.pop();
  if (spare) return spare;
  if (sharing + bytes > MOST_SHARED) return takeBuffer(bytes);
  const memory = new SharedArrayBuffer(bytes);
  sharing += bytes;
  collected.register(memory, bytes);
  return Buffer.from(memory);
}

export function recycleBuffer(b: Buffer): void {
  if (b.length < 1 << 16 || b.byteLength !== b.buffer.byteLength) return; // a part of something else
  const spare = (b.buffer as ArrayBufferLike) instanceof SharedArrayBuffer ? shared : own,
    list = spare.get(b.length);
  if (!list) {
    if (spare.size < 4) spare.set(b.length, [b]);
  } else if (list.length < KEEP && !list.includes(b)) list.push(b);
}
