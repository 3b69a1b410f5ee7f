import type { Frame, Size } from '../domain/index.js';
import { openForeign } from '../files/foreignFile.js';
import { readSlice, readWhole } from './folder.js';
import { isJpeg, jpegHeader, jpegSize } from './jpeg.js';
import type { JpegDecoder } from './jpegDecoder.js';
import { decodePng, isPng, pngChunks, pngHeader } from '../files/png.js';
import { Unusable, limits } from './types.js';
import type { Picture } from './types.js';

/** Screenshots of strangers, by what their bytes say they are: PNG, or JPEG (what UI-TARS-desktop records). */

/** How far into a JPEG its size may lie: behind a profile or two. */
const jpegHead = 256 * 1024;

/** Reads no more than the header. Rejects with Unusable. */
export async function pictureSize(p: Picture): Promise<Size> {
  const head = async (bytes: number): Promise<Buffer> =>
    p.inline !== undefined
      ? base64(p.inline.slice(0, 2 * bytes))
      : p.slice
        ? base64((await readSlice(p.file, p.slice.offset, Math.min(p.slice.length, 2 * bytes))).toString('latin1'))
        : readSlice(p.file, 0, bytes);
  const first = await head(128),
    bytes = isJpeg(first) ? await head(jpegHead) : first;
  return named(p, () => {
    if (isJpeg(bytes)) return jpegSize(bytes);
    known(bytes);
    const { width, height } = pngHeader(bytes);
    return { width, height };
  });
}

/** The picture's own bytes, bounded. */
async function pictureBytes(p: Picture): Promise<Buffer> {
  if (p.inline !== undefined) return base64(p.inline);
  if (!p.slice)
    return readWhole(p.file, limits.picture).catch((e: unknown) => {
      throw withName(p, e);
    });
  const bytes = Math.floor(p.slice.length * 0.75);
  if (bytes > limits.picture)
    throw new Unusable(`the picture ${p.name} is ${bytes} bytes long; at most ${limits.picture} are read`);
  return base64Slice(p.file, p.slice);
}
const base64 = (text: string): Buffer => Buffer.from(plain(text, true), 'base64');
/** Base64 without JSON's escapes, which are of slashes; the first piece may begin with the head of a data URL. */
const plain = (text: string, first: boolean): string =>
  (first ? text.replace(/^data:[^,]{0,64},/, '') : text).replace(/\\/g, '');

/**
 * Characters read at a time: a text of a megabyte and more lies outside the heap, and several pictures' worth would
 * gather before it is collected.
 */
const CHUNK = 192 * 1024;
/** Bytes of a base64 text in a file, decoded piece by piece. */
async function base64Slice(
  file: string,
  { offset, length }: { readonly offset: number; readonly length: number },
): Promise<Buffer> {
  const out = Buffer.allocUnsafe(Math.ceil(length * 0.75)),
    f = await openForeign(file, { follow: false });
  try {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, length));
    let have = 0,
      rest = '';
    for (let at = 0; at < length;) {
      const { bytesRead } = await f.read(chunk, 0, Math.min(chunk.length, length - at), offset + at);
      if (bytesRead === 0) break;
      const text = rest + plain(chunk.toString('latin1', 0, bytesRead), at === 0),
        whole = text.length - (text.length % 4);
      have += out.write(text.slice(0, whole), have, 'base64');
      rest = text.slice(whole);
      at += bytesRead;
    }
    return out.subarray(0, have + out.write(rest, have, 'base64'));
  } finally {
    await f.close();
  }
}

function known(b: Buffer): void {
  if (isPng(b) || isJpeg(b)) return;
  throw new Unusable(
    b.toString('latin1', 8, 12) === 'WEBP'
      ? 'is a WebP picture; PNG and JPEG are read'
      : 'is not a PNG or JPEG picture',
    { remedy: 'Convert the pictures to PNG first, under the same names.' },
  );
}

function named<T>(p: Picture, f: () => T): T {
  try {
    return f();
  } catch (e) {
    throw withName(p, e);
  }
}
const withName = (p: Picture, e: unknown): unknown =>
  e instanceof Unusable
    ? new Unusable(`the picture ${p.name} ${e.message}`, e.remedy === undefined ? {} : { remedy: e.remedy })
    : e;

/** Whole, as far as can be told without decoding. Rejects with Unusable. */
export async function checkPicture(p: Picture): Promise<void> {
  const file = await pictureBytes(p);
  try {
    known(file);
    if (isJpeg(file)) jpegHeader(file);
    else await pngChunks(file);
  } catch (e) {
    throw withName(p, e);
  }
}

/** The picture as a screen. Rejects with Unusable. */
export async function decodePicture(p: Picture, jpeg: JpegDecoder): Promise<Frame> {
  const file = await pictureBytes(p);
  try {
    known(file);
    return { ...(await (isJpeg(file) ? jpeg.decode(file) : decodePng(file))), capturedAt: 0 };
  } catch (e) {
    throw withName(p, e);
  }
}
