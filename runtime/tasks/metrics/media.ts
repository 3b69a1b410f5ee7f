import type { Size } from '../../domain/index.js';
import { Unusable } from '../../foreign/unusable.js';
import { MOST_PIXELS, isPng } from '../../files/png.js';
import type { Dict } from '../values.js';
import { isFile, str, truthy } from '../values.js';
import { hasAlpha, hasColourKey, visibleSize } from './visibleSize.js';
import { trimEndOf } from './scan.js';
import { MAX_MEDIA_BYTES, fileText, nothing, pass, rule, rules } from './types.js';
import type { Metric } from './types.js';
import { meetsRule } from './valueRule.js';
import { elementText, elements } from './xml.js';

/** Metrics on properties of media files. */

/** Paths in status.xml to the medium that is played, in the order of OSWorld: the first that has a value counts. */
const PLAYED = {
  file_name: ['filename', 'title', 'uri', 'location', 'name'].map((info) => ['meta', info] as const),
  url: [
    ...['url', 'URI', 'location', 'title', 'filename'].map((info) => ['meta', info] as const),
    ...['Codec', 'Type', 'Language'].map((info) => ['Stream 0', info] as const),
  ],
};

/** VLC's status.xml: it plays the file or URL the rule names. */
export const isVlcPlaying: Metric = (i) => {
  const type = rule(i, 'type');
  if (type !== 'file_name' && type !== 'url') throw new TypeError(`is_vlc_playing has no type ${str(type)}`);
  const want = str(rule(i, type)),
    xml = fileText(i.result);
  if (xml === undefined) return nothing('no status');
  if (elementText(xml, 'state') !== 'playing') return nothing(elementText(xml, 'state') ?? 'no state');
  let playing = '';
  for (const [category, info] of PLAYED[type]) {
    playing ||= elementText(elements(xml, 'category', { name: category }).join(''), 'info', { name: info }) ?? '';
  }
  const is = type === 'url' ? playsUrl : (shown: string, file: string): boolean => shown.endsWith(file);
  return pass(playing !== '' && is(playing, want), playing, want);
};

/** VLC shows an address whole, its file name alone (HLS), or one of the same host with a path that holds the wanted. */
function playsUrl(shown: string, url: string): boolean {
  if (shown.includes(url)) return true;
  const wanted = urlParts(url);
  if (shown === wanted.path.slice(wanted.path.lastIndexOf('/') + 1)) return true;
  const found = urlParts(shown);
  return shown.includes('://') && found.host === wanted.host && found.path.includes(wanted.path);
}
/**
 * Splits an address as Python's urlparse() does: nothing is decoded or completed, and a path ends before its
 * parameters.
 */
function urlParts(url: string): { readonly host: string; readonly path: string } {
  const [, host = '', path = ''] = /^(?:[a-z][a-z\d+.-]*:)?(?:\/\/([^/?#]*))?([^?#]*)/i.exec(url) ?? [],
    parameters = path.indexOf(';', path.lastIndexOf('/') + 1);
  return { host, path: parameters < 0 ? path : path.slice(0, parameters) };
}

/** Names of mutagen's EasyID3 and their ID3v2 frames. */
const ID3: ReadonlyMap<string, string> = new Map(
  Object.entries({
    album: 'TALB',
    bpm: 'TBPM',
    compilation: 'TCMP',
    composer: 'TCOM',
    copyright: 'TCOP',
    encodedby: 'TENC',
    lyricist: 'TEXT',
    length: 'TLEN',
    media: 'TMED',
    mood: 'TMOO',
    grouping: 'TIT1',
    title: 'TIT2',
    version: 'TIT3',
    artist: 'TPE1',
    albumartist: 'TPE2',
    conductor: 'TPE3',
    arranger: 'TPE4',
    discnumber: 'TPOS',
    organization: 'TPUB',
    tracknumber: 'TRCK',
    author: 'TOLY',
    isrc: 'TSRC',
    discsubtitle: 'TSST',
    language: 'TLAN',
    genre: 'TCON',
    date: 'TDRC',
    originaldate: 'TDOR',
  }),
);

/**
 * Each tag the rule names meets its value rule; several values of a tag are joined by commas, a missing one is empty.
 */
export const checkMp3Meta: Metric = (i) => {
  const want = rules(i);
  if (!isFile(i.result)) return nothing('no file');
  const tags = id3Texts(i.result.data);
  if (tags === undefined) return nothing('no ID3 tags');
  const value = (k: string): string =>
    (tags.get(ID3.get(k) ?? '') ?? (k === 'date' ? tags.get('TYER') : undefined) ?? []).join(',');
  const wrong = Object.keys(want).filter((k) => !meetsRule(value(k), want[k]!));
  return pass(
    wrong.length === 0,
    Object.keys(want)
      .map((k) => `${k}: ${value(k)}`)
      .join('; '),
  );
};

/** Text frames of an ID3v2.3 or 2.4 tag; undefined when the file has none. */
export function id3Texts(data: Buffer): Map<string, string[]> | undefined {
  if (data.length < 10 || data.toString('latin1', 0, 3) !== 'ID3') return undefined;
  const version = data[3]!,
    flags = data[5]!;
  if (version !== 3 && version !== 4) return undefined;
  const synchsafe = (at: number): number =>
    (data[at]! << 21) | (data[at + 1]! << 14) | (data[at + 2]! << 7) | data[at + 3]!;
  const size = (at: number): number => (version === 4 ? synchsafe(at) : data.readUInt32BE(at));
  const end = Math.min(data.length, 10 + synchsafe(6));
  const frames = new Map<string, string[]>();
  let at = 10;
  if ((flags & 0x40) !== 0 && at + 4 <= end) at += version === 4 ? size(at) : size(at) + 4;
  while (at + 10 <= end) {
    const name = data.toString('latin1', at, at + 4),
      n = size(at + 4);
    if (!/^[A-Z0-9]{4}$/.test(name) || n < 1 || at + 10 + n > end) break;
    if (name.startsWith('T') && name !== 'TXXX') frames.set(name, frameTexts(data.subarray(at + 10, at + 10 + n)));
    at += 10 + n;
  }
  return frames;
}
function frameTexts(body: Buffer): string[] {
  const bytes = body.subarray(1);
  const text =
    body[0] === 0
      ? bytes.toString('latin1')
      : body[0] === 3
        ? bytes.toString('utf8')
        : new TextDecoder(body[0] === 2 || (bytes[0] === 0xfe && bytes[1] === 0xff) ? 'utf-16be' : 'utf-16le').decode(
            bytes,
          );
  return trimEndOf(text, '\0')
    .split('\0')
    .map((t) => t.replace(/^\ufeff/, ''));
}

/**
 * Width and height of a picture, either may be left out of the rule. As in OSWorld's, what is transparent at the edges
 * does not count where the rule says so, and never where a colour stands for transparency.
 */
export const checkImageSize: Metric = async (i) => {
  const want = rules(i),
    size = isFile(i.result) ? imageSize(i.result.data) : undefined;
  if (!isFile(i.result) || size === undefined)
    return nothing(i.result === null ? 'no file' : 'not a PNG, JPEG, GIF or BMP picture');
  let shown = size;
  if (cutsEdges(i.result.data, want)) {
    try {
      shown = await visibleSize(i.result.data);
    } catch (e) {
      if (!(e instanceof Unusable)) throw e;
      return nothing(`a picture that ${e.message}`);
    }
  }
  const { width, height } = shown;
  return pass(
    (
      [
        ['width', width],
        ['height', height],
      ] as const
    ).every(([k, n]) => (want[k] ?? null) === null || want[k] === n),
    `${width}x${height}`,
  );
};
const cutsEdges = (d: Buffer, want: Dict): boolean =>
  isPng(d) && (hasColourKey(d) || (truthy(want['ignore_transparent']) && hasAlpha(d)));

/**
 * Whether the size of this picture is read here as OSWorld reads it: another format, a GIF, transparency in a BMP,
 * an interlaced or very large PNG are left to OSWorld's own, where that is installed.
 */
export function readsPicture(d: Buffer, want: Dict): boolean {
  const size = imageSize(d);
  if (size === undefined) return false;
  if (isPng(d))
    return (
      !cutsEdges(d, want) || (d[28] === 0 && size.width * size.height <= MOST_PIXELS && d.length <= MAX_MEDIA_BYTES)
    );
  return d[0] === 0xff || (d[0] === 0x42 && !truthy(want['ignore_transparent']));
}

export function imageSize(d: Buffer): Size | undefined {
  if (d.length >= 24 && d.readUInt32BE(0) === 0x89504e47)
    return { width: d.readUInt32BE(16), height: d.readUInt32BE(20) };
  if (d.length >= 10 && /^GIF8[79]a$/.test(d.toString('latin1', 0, 6)))
    return { width: d.readUInt16LE(6), height: d.readUInt16LE(8) };
  if (d.length >= 26 && d.toString('latin1', 0, 2) === 'BM')
    return { width: d.readInt32LE(18), height: Math.abs(d.readInt32LE(22)) };
  if (d.length < 4 || d.readUInt16BE(0) !== 0xffd8) return undefined;
  for (let at = 2; at + 9 < d.length && d[at] === 0xff;) {
    const marker = d[at + 1]!;
    if (marker === 0xff) {
      at++;
      continue;
    }
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return { width: d.readUInt16BE(at + 7), height: d.readUInt16BE(at + 5) };
    at += 2 + d.readUInt16BE(at + 2);
  }
  return undefined;
}

/** The file is smaller than `max_size` bytes. */
export const checkImageFileSize: Metric = (i) => {
  const max = rule(i, 'max_size');
  if (typeof max !== 'number') throw new TypeError('"max_size" of the rule must be a number');
  return isFile(i.result)
    ? pass(i.result.size < max, `${i.result.size} bytes`, `under ${max} bytes`)
    : nothing('no file');
};
