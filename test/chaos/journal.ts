import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The auditor's own reading of a journal, from the description in runtime/data/README.md and nothing of the runtime:
 * what it finds must not depend on the code that it judges.
 */
const MAGIC = 0xd5a71e55,
  HEADER = 24;
/** A segment begins with a header before its first record. */
const SEGMENT_HEADER = 64;

export interface Found {
  readonly seq: number;
  readonly file: string;
  readonly from: number;
  readonly to: number;
  readonly crc: number;
  readonly event: Readonly<Record<string, unknown>> & { readonly type: string; readonly at: number };
}
/** A stretch that is no record. `tail`: at the very end, where a write may have been cut off. */
export interface Hole {
  readonly file: string;
  readonly from: number;
  readonly to: number;
  readonly tail: boolean;
}

const TABLE = Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});
export function checksum(b: Buffer): number {
  let c = 0xffffffff;
  for (const x of b) c = TABLE[(c ^ x) & 255]! ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

/** The segments of a journal, which is a folder. */
export const segmentsOf = (journal: string): string[] =>
  readdirSync(journal)
    .filter((n) => n.endsWith('.journal'))
    .sort()
    .map((n) => join(journal, n));

/** Every record of a journal, in the order of the files. */
export function readRecords(journal: string): { readonly records: Found[]; readonly holes: Hole[] } {
  const records: Found[] = [],
    holes: Hole[] = [],
    files = segmentsOf(journal);
  for (const file of files) {
    const b = readFileSync(file),
      magic = Buffer.alloc(4);
    magic.writeUInt32LE(MAGIC);
    let at = b.indexOf(magic);
    if (at < 0 || at > SEGMENT_HEADER) {
      if (b.length > SEGMENT_HEADER) holes.push({ file, from: 0, to: at < 0 ? b.length : at, tail: false });
      if (at < 0) continue;
    }
    for (let bad = -1; at < b.length;) {
      const r = recordAt(b, at);
      if (r) {
        if (bad >= 0) holes.push({ file, from: bad, to: at, tail: false });
        bad = -1;
        records.push({ ...r, file, from: at });
        at = r.to;
        continue;
      }
      if (bad < 0) bad = at;
      const next = b.indexOf(magic, at + 1);
      at = next < 0 ? b.length : next;
      if (next < 0) holes.push({ file, from: bad, to: b.length, tail: file === files.at(-1) });
    }
  }
  return { records, holes };
}

function recordAt(b: Buffer, at: number): Omit<Found, 'file' | 'from'> | undefined {
  if (b.length - at < HEADER || b.readUInt32LE(at) !== MAGIC) return undefined;
  const body = b.readUInt32LE(at + 4),
    crc = b.readUInt32LE(at + 8),
    json = b.readUInt32LE(at + 12),
    to = at + HEADER + body;
  if (to > b.length || json > body || checksum(b.subarray(at + 12, to)) !== crc) return undefined;
  return {
    seq: b.readDoubleLE(at + 16),
    to,
    crc,
    event: JSON.parse(b.toString('utf8', at + HEADER, at + HEADER + json)) as Found['event'],
  };
}
