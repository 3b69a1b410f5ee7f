import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { checksum, segmentsOf } from './journal.js';

const MAGIC = 0xd5a71e55,
  HEADER = 24;

/** Follows a journal that is being written, and remembers what was there: what was seen must never go away. */
export class Tail {
  /** Checksums of records by number. */
  readonly seen = new Map<number, number>();
  readonly #run: string;
  readonly #counts = new Map<string, number>();
  #file: string | undefined;
  #at = 0;
  versions = 0;

  constructor(run: string) {
    this.#run = run;
  }
  count(type: string): number {
    return this.#counts.get(type) ?? 0;
  }

  /** Takes in what is whole. */
  poll(): void {
    if (!existsSync(join(this.#run, 'journal'))) return;
    const files = segmentsOf(this.#run);
    let file = this.#file ?? files[0];
    while (file !== undefined) {
      this.#file = file;
      this.#read(file);
      file = files[files.indexOf(file) + 1];
      if (file !== undefined) this.#at = 0;
    }
  }

  #read(file: string): void {
    const f = openSync(file, 'r');
    try {
      const { size } = fstatSync(f);
      this.#at = Math.min(this.#at, size);
      const b = Buffer.alloc(size - this.#at);
      readSync(f, b, 0, b.length, this.#at);
      const magic = Buffer.alloc(4);
      magic.writeUInt32LE(MAGIC);
      let at = 0;
      while (at + HEADER <= b.length) {
        const end = at + HEADER + b.readUInt32LE(at + 4);
        const whole =
          b.readUInt32LE(at) === MAGIC &&
          end <= b.length &&
          checksum(b.subarray(at + 12, end)) === b.readUInt32LE(at + 8);
        if (!whole) {
          // The header of a segment, a damaged stretch, or a record that is not whole yet.
          const next = b.indexOf(magic, at + 1);
          if (next < 0) break;
          at = next;
          continue;
        }
        this.seen.set(b.readDoubleLE(at + 16), b.readUInt32LE(at + 8));
        const { type } = JSON.parse(b.toString('utf8', at + HEADER, at + HEADER + b.readUInt32LE(at + 12))) as {
          type: string;
        };
        this.#counts.set(type, this.count(type) + 1);
        if (type === 'batch.trained') this.versions++;
        at = end;
      }
      this.#at += at;
    } finally {
      closeSync(f);
    }
  }
}
