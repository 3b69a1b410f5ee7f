/**
 * Bytes that come in pieces, in one buffer that doubles: a million pieces of one byte take no more than two megabytes, and
 * each is copied once or twice.
 */
export class GrowingBuffer {
  #buffer: Buffer = NONE;
  #length = 0;

  get length(): number {
    return this.#length;
  }
  /** Bytes that fit without a larger buffer. */
  get room(): number {
    return this.#buffer.length;
  }
  /** The bytes held, valid until the next piece. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** `whole`: bytes that will be held in the end, where that is known. */
  add(piece: Uint8Array, whole = Infinity): void {
    const needed = this.#length + piece.length;
    if (needed > this.#buffer.length) {
      const roomy = Math.max(LEAST, 2 * this.#buffer.length);
      this.grow(Buffer.allocUnsafeSlow(Math.max(needed, Math.min(roomy, whole))));
    }
    this.#buffer.set(piece, this.#length);
    this.#length = needed;
  }

  /** Goes on in a larger buffer of the caller's. */
  grow(larger: Buffer): void {
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }

  /** All that is held and these last bytes, which are not copied where nothing was held. */
  takeWith(end: Buffer): Buffer {
    if (this.#length === 0) return end;
    this.add(end);
    return this.take();
  }

  /** All that is held; what comes next gets a buffer of its own. */
  take(): Buffer {
    const all = this.bytes;
    this.#buffer = NONE;
    this.#length = 0;
    return all;
  }
}

const NONE = Buffer.alloc(0),
  LEAST = 1 << 10;
