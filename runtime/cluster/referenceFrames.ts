import { createHash } from 'node:crypto';
import { isEncoded, type Screenshot } from '../domain/index.js';

/**
 * Decides by vote which first frame is right: the first frame seen counts as right until another has been seen more
 * often. So one bad start costs a replacement or two, and never makes every later desktop look wrong.
 */
export class ReferenceFrames {
  readonly #votes = new Map<string, number>();
  #usual: { readonly hash: string; readonly data: Buffer } | undefined;

  /** Whether this is the usual frame; counts a vote only if it is (or is the first). Compares bytes: 0.1 ms. */
  matches(f: Screenshot): boolean {
    if (!this.#usual) return this.accept(f);
    if (!this.#usual.data.equals(bytesOf(f))) return false;
    this.#votes.set(this.#usual.hash, (this.#votes.get(this.#usual.hash) ?? 0) + 1);
    return true;
  }

  /** Counts a vote; true when this is now the usual frame. */
  accept(f: Screenshot): boolean {
    const hash = createHash('sha1').update(`${f.width}x${f.height}`).update(bytesOf(f)).digest('base64');
    const n = (this.#votes.get(hash) ?? 0) + 1;
    this.#votes.set(hash, n);
    if (!this.#usual || (hash !== this.#usual.hash && n > (this.#votes.get(this.#usual.hash) ?? 0)))
      this.#usual = { hash, data: bytesOf(f) };
    return hash === this.#usual.hash;
  }
}

/** The same picture is encoded to the same bytes. */
const bytesOf = (f: Screenshot): Buffer => (isEncoded(f) ? f.png : f.data);
