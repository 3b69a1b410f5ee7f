// A zip file's entries compressed anew, as small as deflate can be; names, times, modes and order stay. Without zip64:
// ours are far below 4 GB.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, inflateRawSync } from 'node:zlib';

const signature = { local: 0x04034b50, central: 0x02014b50, end: 0x06054b50 };
const stored = 0,
  deflated = 8;
/**
 * Entries above this are kept compressed in the cache folder, by content: a native library is the same from one build
 * to the next.
 */
const worthKeeping = 1e6;

/** `deflate(bytes)` gives raw deflate data; what it gives is read back before it is used. */
export function repack(file, deflate, cacheDir) {
  const zip = readFileSync(file),
    parts = [],
    directory = [];
  let at = 0;
  const put = (b) => {
    parts.push(b);
    at += b.length;
  };
  const { entries, end } = directoryOf(zip);
  for (const e of entries) {
    const data = contents(zip, e),
      packed = data.length === 0 ? data : compressed(data, deflate, cacheDir),
      smaller = packed.length < data.length;
    const body = smaller ? packed : data,
      head = Buffer.from(e.header),
      name = head.subarray(46, 46 + head.readUInt16LE(28));
    const local = Buffer.alloc(30);
    // Sizes are in the header, not behind the data; the rest of the flags says how the name is written.
    head.writeUInt16LE(head.readUInt16LE(8) & ~8, 8);
    head.writeUInt16LE(smaller ? deflated : stored, 10);
    head.writeUInt32LE(body.length, 20);
    head.writeUInt32LE(at, 42);
    local.writeUInt32LE(signature.local, 0);
    head.copy(local, 4, 6, 28); // version to extract to uncompressed size: the same fields in the same order
    local.writeUInt16LE(name.length, 26);
    put(local);
    put(name);
    put(body);
    directory.push(head);
  }
  const from = at;
  for (const h of directory) put(h);
  const tail = Buffer.from(end);
  tail.writeUInt32LE(at - from, 12);
  tail.writeUInt32LE(from, 16);
  put(tail);
  writeFileSync(`${file}.tmp`, Buffer.concat(parts));
  renameSync(`${file}.tmp`, file);
}

function directoryOf(zip) {
  const at = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]));
  if (at < 0 || zip.readUInt32LE(at) !== signature.end) throw new Error('not a zip file');
  const end = zip.subarray(at),
    entries = [];
  for (let i = 0, p = end.readUInt32LE(16); i < end.readUInt16LE(10); i++) {
    if (zip.readUInt32LE(p) !== signature.central) throw new Error(`entry ${i} of the zip file cannot be read`);
    const length = 46 + zip.readUInt16LE(p + 28) + zip.readUInt16LE(p + 30) + zip.readUInt16LE(p + 32);
    entries.push({ header: zip.subarray(p, p + length) });
    p += length;
  }
  return { entries, end };
}

function contents(zip, { header }) {
  const p = header.readUInt32LE(42),
    from = p + 30 + zip.readUInt16LE(p + 26) + zip.readUInt16LE(p + 28),
    body = zip.subarray(from, from + header.readUInt32LE(20));
  const data = header.readUInt16LE(10) === stored ? body : inflateRawSync(body);
  if (crc32(data) !== header.readUInt32LE(16))
    throw new Error(`${header.subarray(46, 46 + header.readUInt16LE(28))}: its checksum differs`);
  return data;
}

function compressed(data, deflate, cacheDir) {
  const kept = data.length > worthKeeping ? join(cacheDir, createHash('sha256').update(data).digest('hex')) : undefined;
  const good = (b) => {
    try {
      return inflateRawSync(b).equals(data);
    } catch {
      return false;
    }
  };
  if (kept && existsSync(kept)) {
    const b = readFileSync(kept);
    if (good(b)) return b;
  }
  const packed = Buffer.from(deflate(data));
  if (!good(packed)) throw new Error('what was compressed does not read back as it was');
  if (kept) {
    mkdirSync(cacheDir, { recursive: true });
    writeFileSync(`${kept}.${process.pid}`, packed);
    renameSync(`${kept}.${process.pid}`, kept);
  }
  return packed;
}
