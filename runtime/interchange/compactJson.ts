import { createHash } from 'node:crypto';
import { chunksOf } from './folder.js';
import { importedJson } from './json.js';
import { Unusable, isObject, limits } from './types.js';

/**
 * A long string of a JSON file, left where it is: bytes `offset` to `offset + length` of the file, between its quotes.
 */
export interface Slice {
  readonly offset: number;
  readonly length: number;
}
export const sliceOf = (x: unknown): Slice | undefined => {
  if (!isObject(x) || !Array.isArray(x['$slice'])) return undefined;
  const [offset, length] = x['$slice'] as unknown[];
  return Number.isSafeInteger(offset) &&
    Number.isSafeInteger(length) &&
    (offset as number) >= 0 &&
    (length as number) >= 0
    ? { offset: offset as number, length: length as number }
    : undefined;
};

/** Strings longer than this are set aside: screenshots are, thoughts are not. */
const longString = 32 * 1024;
const [quote, backslash] = [0x22, 0x5c];

/**
 * A JSON file of any size whose bulk is embedded pictures: every string over 32 kB becomes `{"$slice": [offset,
 * length]}`, the rest is parsed. Holds a few times `limits.json` bytes at most. `fingerprint` is the hash of what was
 * kept. Throws Unusable.
 */
export async function compactJson(file: string): Promise<{ readonly value: unknown; readonly fingerprint: string }> {
  const kept = new Bytes();
  // `began`: where the present string starts in `kept`; what is longer than `longString` of it is not kept.
  let inString = false,
    escaped = false,
    start = 0,
    began = 0,
    at = 0;
  for await (const chunk of chunksOf(file)) {
    let from = 0;
    const keep = (to: number): void => {
      if (!inString || kept.length - began <= longString) kept.add(chunk, from, to);
      from = to;
    };
    for (let i = 0; i < chunk.length; i++) {
      const c = chunk[i]!;
      if (!inString) {
        if (c !== quote) continue;
        keep(i + 1);
        inString = true;
        start = at + i + 1;
        began = kept.length;
      } else if (escaped) escaped = false;
      else if (c === backslash) escaped = true;
      else if (c === quote) {
        const length = at + i - start;
        if (length > longString) {
          const link = Buffer.from(`{"$slice":[${start},${length}]}`);
          kept.length = began - 1;
          kept.add(link, 0, link.length);
          from = i + 1;
        } else keep(i + 1);
        inString = false;
      }
    }
    keep(chunk.length);
    at += chunk.length;
  }
  if (inString) throw new Unusable('the file is cut short: a text is not closed');
  const text = kept.text();
  return {
    value: importedJson(text, 'the file'),
    fingerprint: createHash('sha256').update(text).digest('hex').slice(0, 12),
  };
}

/** Bytes that grow up to a bound. */
class Bytes {
  length = 0;
  #data = Buffer.allocUnsafe(64 * 1024);
  add(b: Buffer, from: number, to: number): void {
    const need = this.length + to - from;
    if (need > limits.json) throw new Unusable(`holds more than ${limits.json >> 20} MB besides its pictures`);
    if (need > this.#data.length) {
      const bigger = Buffer.allocUnsafe(Math.max(need, 2 * this.#data.length));
      this.#data.copy(bigger, 0, 0, this.length);
      this.#data = bigger;
    }
    b.copy(this.#data, this.length, from, to);
    this.length = need;
  }
  text(): string {
    return this.#data.toString('utf8', 0, this.length).replace(/^\ufeff/, '');
  }
}
