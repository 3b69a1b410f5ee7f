import { GrowingBuffer } from './growingBuffer.js';

export class MessageTooLong extends Error {}

export interface MessageFormat {
  /** Bytes of the head, which says how long a message is. */
  readonly head: number;
  /** Bytes of the whole message that begins with this head; at least those of the head. */
  size(head: Buffer): number;
  /** Bytes of the longest message. */
  most(): number;
  /** Whether nobody reads this message once it was taken. Then its memory serves the next one. */
  readAtOnce?(head: Buffer): boolean;
}

/** Messages out of a stream that is cut anywhere: of one that is not here yet, only its bytes are kept. */
export class Messages {
  readonly #format: MessageFormat;
  readonly #held = new GrowingBuffer();
  /** Size of the message that is held, once its head is here. */
  #size: number | undefined;
  #reuse = false;

  constructor(format: MessageFormat) {
    this.#format = format;
  }

  /**
   * Calls `take` with each message that the piece completes. Throws MessageTooLong when one is longer than it may be;
   * nothing may be fed after that.
   */
  feed(piece: Buffer, take: (message: Buffer) => void): void {
    for (let at = 0; at < piece.length;)
      at += this.#held.length > 0 ? this.#join(piece, at, take) : this.#whole(piece, at, take);
  }

  /** A message that lies whole in the piece is not copied. The number of bytes that are done with. */
  #whole(piece: Buffer, at: number, take: (message: Buffer) => void): number {
    const rest = piece.subarray(at);
    if (rest.length >= this.#format.head) this.#begin(rest);
    const size = this.#size;
    if (size === undefined || size > rest.length) {
      this.#hold(rest);
      return rest.length;
    }
    this.#size = undefined;
    take(rest.subarray(0, size));
    return size;
  }

  #join(piece: Buffer, at: number, take: (message: Buffer) => void): number {
    const held = this.#held,
      n = Math.min(piece.length - at, (this.#size ?? this.#format.head) - held.length);
    this.#hold(piece.subarray(at, at + n));
    if (this.#size === undefined && held.length === this.#format.head) this.#begin(held.bytes);
    if (held.length === this.#size) {
      this.#size = undefined;
      const message = held.take(),
        reuse = this.#reuse;
      take(message);
      if (reuse) lend(message);
    }
    return n;
  }

  #begin(head: Buffer): void {
    const size = this.#format.size(head);
    if (size > this.#format.most()) throw new MessageTooLong(`a message of ${size} bytes`);
    this.#size = size;
    this.#reuse = this.#format.readAtOnce?.(head) ?? false;
  }

  #hold(piece: Buffer): void {
    const needed = this.#held.length + piece.length;
    if (this.#reuse && this.#size !== undefined && needed > this.#held.room && spare && spare.length >= needed) {
      this.#held.grow(spare);
      spare = undefined;
    }
    this.#held.add(piece, this.#size);
  }
}

/** One buffer for all: a new one for each screen would be megabytes of garbage a second. */
let spare: Buffer | undefined;
const MOST_SPARE = 4 << 20;
function lend(message: Buffer): void {
  const bytes = message.buffer.byteLength;
  if (bytes > (spare?.length ?? 0) && bytes <= MOST_SPARE) spare = Buffer.from(message.buffer);
}
