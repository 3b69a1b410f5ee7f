import type { Size } from '../domain/index.js';
import { checkSize } from '../files/png.js';
import { Unusable } from './types.js';

/** A JPEG's header (ITU T.81, Annex B), read before anything is decoded. */
export interface JpegHeader extends Size {
  /** Whether its three components are red, green and blue (Adobe's marker says so). */
  readonly rgb: boolean;
}

export const isJpeg = (b: Buffer): boolean => b[0] === 0xff && b[1] === 0xd8 && b[2] === 0xff;
export const asPng = { remedy: 'Convert the pictures to PNG first, under the same names.' };

/** The size of a JPEG, from a file's beginning. Throws Unusable. */
export function jpegSize(b: Buffer): Size {
  for (const { marker, body } of segments(b)) {
    if (isFrame(marker)) return sizeOf(marker, body);
    if (marker === 0xda) break;
  }
  throw new Unusable('is a JPEG whose size is not near its beginning');
}

/**
 * The header of a whole file. Throws Unusable for what cannot be decoded, as far as the header tells, and for files
 * that lack their end.
 */
export function jpegHeader(b: Buffer): JpegHeader {
  let size: Size | undefined,
    rgb = false;
  for (const { marker, body, end } of segments(b)) {
    if (isFrame(marker)) {
      if (size) throw new Unusable('is damaged: two frames');
      size = sizeOf(marker, body);
    } else if (marker === 0xee && body.toString('latin1', 0, 5) === 'Adobe') rgb = body[11] === 0;
    else if (marker === 0xda) {
      if (!size) throw new Unusable('is damaged: pixels without a frame');
      // Behind the header: a thumbnail in it has an end of its own.
      if (b.subarray(end).lastIndexOf(endOfImage) < 0) break;
      return { ...size, rgb };
    }
  }
  throw new Unusable('is cut short');
}
const endOfImage = Buffer.from([0xff, 0xd9]);

/** Markers and fill bytes before the pixels; a picture has some tens. */
const mostMarkers = 20_000;
function* segments(b: Buffer): Generator<{ readonly marker: number; readonly body: Buffer; readonly end: number }> {
  for (let i = 2, seen = 0; i + 4 <= b.length; seen++) {
    if (seen > mostMarkers) throw new Unusable('is a JPEG of too many parts');
    if (b[i] !== 0xff) throw new Unusable('is damaged: a marker is missing');
    const marker = b[i + 1]!;
    if (marker === 0xff) {
      i++;
      continue;
    }
    if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {
      i += 2;
      continue;
    }
    if (marker === 0xd9) return;
    const length = b.readUInt16BE(i + 2),
      end = i + 2 + length;
    if (length < 2 || end > b.length) return;
    yield { marker, body: b.subarray(i + 4, end), end };
    i = end;
  }
}

/** Start of a frame of any kind; c4, c8 and cc are something else. */
const isFrame = (marker: number): boolean => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

function sizeOf(marker: number, s: Buffer): Size {
  // Baseline, extended, progressive; 8 bits; grey or colour.
  if (marker > 0xc2 || s.length < 6 || s[0] !== 8 || (s[5] !== 1 && s[5] !== 3))
    throw new Unusable('is a rare kind of JPEG', asPng);
  return checkSize(s.readUInt16BE(3), s.readUInt16BE(1));
}
