/**
 * The sample run as it is shipped: one brotli stream of a run folder without what can be made again, its screens as
 * plain pixels, which compress against one another far better than as pictures. scripts/sample.mjs writes it.
 *
 * The stream is the length of the head (u32, big endian), the head as JSON, the files one after another, then the
 * screens: rows of RGB, each behind a zero byte, as a PNG has them before it is compressed.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress, crc32, deflate } from 'node:zlib';

interface Head {
  /** Id of the run: the name of its folder. */
  readonly run: string;
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
  readonly frames: readonly { readonly hash: string; readonly width: number; readonly height: number }[];
}
const unpacked = promisify(brotliDecompress),
  deflated = promisify(deflate);
/** Pixels of all screens; more is no sample of ours. */
const mostBytes = 256 << 20;
const safePath = /^[\w-]+(?:\.[\w-]+)*(?:\/[\w-]+(?:\.[\w-]+)*)*$/;

/** The folder that `unpackSample` makes below `into`. */
export async function openSample(
  archive: Uint8Array,
): Promise<{ readonly run: string; unpack(into: string): Promise<string> }> {
  const all = await unpacked(archive, { maxOutputLength: mostBytes }),
    length = all.readUInt32BE(0),
    head = JSON.parse(all.toString('utf8', 4, 4 + length)) as Head;
  if (!safePath.test(head.run)) throw new Error(`${head.run} is no name of a run`);
  return { run: head.run, unpack: (into) => unpack(head, all.subarray(4 + length), into) };
}

/** The folder appears when all of it is written. */
async function unpack(head: Head, content: Buffer, into: string): Promise<string> {
  const dir = join(into, head.run),
    part = `${dir}.${process.pid}.partial`;
  let at = 0;
  const next = (bytes: number): Buffer => content.subarray(at, (at += bytes));
  await rm(part, { recursive: true, force: true });
  for (const f of head.files) {
    if (!safePath.test(f.path)) throw new Error(`${f.path} is no file of a run`);
    const to = join(part, f.path);
    await mkdir(dirname(to), { recursive: true });
    await writeFile(to, next(f.bytes));
  }
  for (const f of head.frames) {
    if (!/^[0-9a-f]{64}$/.test(f.hash)) throw new Error('a screen of the sample has no hash');
    const to = join(part, 'frames', f.hash.slice(0, 2), `${f.hash}.png`);
    await mkdir(dirname(to), { recursive: true });
    await writeFile(to, await png(next((f.width * 3 + 1) * f.height), f.width, f.height));
  }
  await rename(part, dir);
  return dir;
}

async function png(rows: Buffer, width: number, height: number): Promise<Buffer> {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const chunk = (type: string, data: Buffer): Buffer => {
    const out = Buffer.alloc(12 + data.length);
    out.writeUInt32BE(data.length, 0);
    out.write(type, 4, 'latin1');
    data.copy(out, 8);
    out.writeUInt32BE(crc32(out.subarray(4, 8 + data.length)), 8 + data.length);
    return out;
  };
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('IDAT', await deflated(rows, { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
