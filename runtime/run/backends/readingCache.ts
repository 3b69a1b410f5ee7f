import { createHash } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { readForeign } from '../../files/foreignFile.js';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { orUndefined } from '../../domain/index.js';
import { unfinishedDir, unfinishedName } from '../../data/store/unfinished.js';
import type { ReadingScreen } from '../../trainer/types.js';

const squeeze = promisify(gzip),
  expand = promisify(gunzip);

/** Screens in one compressed part: the event loop turns between parts. */
const PER_PART = 24;
/** Bytes that one part may expand to: ten times what it has. */
const MOST = 64 << 20;
const FORMAT = 'dart-studio/reading-screens 1';

/** What the screens were drawn from; others are drawn anew. */
export interface DrawnFrom {
  readonly words: readonly { readonly text: string; readonly bucket: number }[];
  readonly count: number;
  readonly seed: number;
  readonly image: string;
  readonly width: number;
  readonly height: number;
}

/**
 * The screens of reading lessons, drawn once in the life of a run: a resumed run, which still mixes some of them into
 * its steps, reads them from its folder. A file that is missing, damaged or of other screens is drawn again; one that
 * cannot be written costs that drawing and nothing else.
 */
export async function keptScreens(
  dir: string,
  from: DrawnFrom,
  draw: () => Promise<readonly ReadingScreen[]>,
): Promise<readonly ReadingScreen[]> {
  const file = join(dir, 'reading', 'screens.bin'),
    key = createHash('sha256').update(JSON.stringify(from)).digest('hex'),
    kept = await orUndefined(readScreens(file, key, from), 'they are drawn again');
  if (kept) return kept;
  const drawn = await draw();
  await orUndefined(writeScreens(dir, file, key, drawn), 'a resumed run draws them again');
  return drawn;
}

/** Header line, then parts: u32 length, gzip of screens; a screen is a JSON line and its pixels. */
async function writeScreens(dir: string, file: string, key: string, screens: readonly ReadingScreen[]): Promise<void> {
  const tmp = join(unfinishedDir(join(dir, 'frames')), unfinishedName('reading'));
  await mkdir(dirname(tmp), { recursive: true });
  await mkdir(dirname(file), { recursive: true });
  try {
    const f = await open(tmp, 'w');
    try {
      await f.writeFile(`${FORMAT} ${key} ${screens.length}\n`);
      for (let i = 0; i < screens.length; i += PER_PART) {
        const part = await squeeze(Buffer.concat(screens.slice(i, i + PER_PART).flatMap(bytesOf)), { level: 1 }),
          length = Buffer.alloc(4);
        length.writeUInt32LE(part.length);
        await f.appendFile(Buffer.concat([length, part]));
      }
      await f.sync();
    } finally {
      await f.close();
    }
    await rename(tmp, file);
  } finally {
    await rm(tmp, { force: true });
  }
}
const bytesOf = (s: ReadingScreen): Buffer[] => [
  Buffer.from(`${JSON.stringify({ buckets: [...s.buckets], boxes: [...s.boxes] })}\n`),
  Buffer.from(s.obs.buffer, s.obs.byteOffset, s.obs.byteLength),
];

/** Bytes of the file; it is held in memory whole. */
const MOST_BYTES = 1 << 30;

async function readScreens(file: string, key: string, from: DrawnFrom): Promise<ReadingScreen[]> {
  const b = await readForeign(file, MOST_BYTES),
    eol = b.indexOf(10),
    [, , mine, count] = b.toString('utf8', 0, Math.min(eol, 200)).split(' ');
  if (eol < 0 || mine !== key) throw new Error('other screens');
  const out: ReadingScreen[] = [],
    pixels = from.width * from.height;
  for (let at = eol + 1; at < b.length;) {
    const length = b.readUInt32LE(at),
      part = await expand(b.subarray(at + 4, at + 4 + length), { maxOutputLength: MOST });
    for (let p = 0; p < part.length;) {
      const end = part.indexOf(10, p),
        { buckets, boxes } = JSON.parse(part.toString('utf8', p, end)) as { buckets: number[]; boxes: number[] };
      if (end + 1 + pixels > part.length) throw new Error('cut short');
      out.push({
        obs: Uint8Array.from(part.subarray(end + 1, end + 1 + pixels)),
        buckets: Int32Array.from(buckets),
        boxes: Int32Array.from(boxes),
      });
      p = end + 1 + pixels;
    }
    at += 4 + length;
  }
  if (out.length !== Number(count)) throw new Error('some are missing');
  return out;
}
