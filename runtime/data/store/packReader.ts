import { readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { orUndefined } from '../../concurrency/failures.js';
import { ForeignFileError, openForeign } from '../../files/foreignFile.js';
import { nameOf, type FramePlace } from './framePacks.js';
import { frameIn, headBytes } from './packRecord.js';

/** Packs that are kept open: those that the sessions of a run are shown screens of. */
const OPEN = 16;

/**
 * Reads screens of packs again and again, each written a short while ago: files stay open, and one buffer serves. For a
 * thread of its own, since a read holds it up. What is read has the name that was asked for; its checksum is not looked at.
 */
export class PackReader {
  readonly #open = new Map<string, FileHandle>();
  #room = Buffer.alloc(0);

  /**
   * Reads a frame: synchronously when the pack is open, valid until the next call. Throws or rejects when it is not
   * there.
   */
  read(place: FramePlace): Buffer | Promise<Buffer> {
    const file = this.#open.get(place.file);
    return file ? this.#now(file, place) : this.#first(place);
  }
  #now(file: FileHandle, { hash, at = 0, bytes = 0 }: FramePlace): Buffer {
    const length = headBytes + bytes;
    if (this.#room.length < length) this.#room = Buffer.alloc(2 * length);
    const record = this.#room.subarray(0, readSync(file.fd, this.#room, 0, length, at)),
      frame = record.length === length ? frameIn(record, { name: nameOf(hash), bytes }) : undefined;
    if (!frame) throw new ForeignFileError('EDAMAGED', 'is damaged');
    return frame;
  }
  async #first(place: FramePlace): Promise<Buffer> {
    const file = await openForeign(place.file, { inside: join(place.file, '../..') }),
      meanwhile = this.#open.get(place.file);
    if (meanwhile) await file.close();
    else this.#open.set(place.file, file);
    const frame = Buffer.from(this.#now(meanwhile ?? file, place));
    for (const [name, oldest] of this.#open) {
      if (this.#open.size <= OPEN) break;
      this.#open.delete(name);
      await orUndefined(oldest.close(), 'it is not read any more');
    }
    return frame;
  }
}
