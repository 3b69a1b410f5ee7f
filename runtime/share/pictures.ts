import { deflate as deflateCb } from 'node:zlib';
import { promisify } from 'node:util';
import { type FrameLink } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { pngFile } from '../files/pngWriter.js';
import { decodePng } from '../files/png.js';

/**
 * Screens for a page, small: a screen is drawn as what changed since the one before it, in as many colours as it has,
 * and all of them smaller when together they would be too large.
 */
const deflate = promisify(deflateCb);

/** A part of a screen, in pixels of the scaled screen. */
export interface Piece {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly data: string;
}
export interface Picture {
  readonly id: string;
  /** Picture that the pieces are drawn over. */
  readonly over?: string;
  readonly pieces: readonly Piece[];
  /** Size as drawn. `screen`: size on the desktop. */
  readonly width: number;
  readonly height: number;
  readonly screen: { readonly width: number; readonly height: number };
}
export interface Album {
  /** Pictures in the order in which they must be defined. */
  readonly pictures: readonly Picture[];
  /** Pictures by the hash of the frame; absent for one that cannot be read, or found no room. */
  readonly of: ReadonlyMap<string, Picture>;
  /** 2: half as wide and high as on the desktop. */
  readonly scale: number;
  /** Screens whose file is gone, and those for which there was no room. */
  readonly gone: number;
  readonly left: number;
}
export type ReadFrame = (f: FrameLink) => Promise<Buffer | undefined>;

/** BGRX as 32-bit numbers. */
interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly px: Uint32Array;
}

const SCALES = [1, 2, 4, 8] as const;
/** A chain of changes is at most so long: each is drawn over all of those before it. */
const MOST_OVER = 10;
/** Rows without a change that two pieces are apart. */
const APART = 12;
/** Around a change: the edge of a piece looks like what is below it, also where a browser draws it smaller. */
const EDGE = 2;
/** With a larger changed share, a picture of the whole screen is as small. */
const WHOLE = 0.6;
/** On the last scale no further screen is tried once fewer characters than this are free. */
const LEAST = 4096;

/** `budget`: characters that all pictures together may take. The same frame may be named often. */
export async function albumOf(frames: readonly FrameLink[], read: ReadFrame, budget: number): Promise<Album> {
  const once = [...new Map(frames.map((f) => [f.hash, f])).values()];
  for (const scale of SCALES) {
    const album = await drawn(once, read, { budget, scale, last: scale === SCALES.at(-1) });
    if (album) return album;
  }
  throw new Error('the last scale leaves out what does not fit');
}

/** Undefined when they do not fit; at the last scale what does not fit is left out. */
async function drawn(
  frames: readonly FrameLink[],
  read: ReadFrame,
  o: { readonly budget: number; readonly scale: number; readonly last: boolean },
): Promise<Album | undefined> {
  const pictures: Picture[] = [],
    of = new Map<string, Picture>();
  let before: (Pixels & { readonly picture: Picture; readonly over: number }) | undefined,
    room = o.budget,
    gone = 0,
    left = 0;
  for (const f of frames) {
    const file = await read(f),
      screen = file && (await orUndefined(decodePng(file), 'a screen that is damaged is shown as missing'));
    if (!screen) {
      gone++;
      continue;
    }
    if (o.last && room < LEAST) {
      left++;
      continue;
    }
    const now = scaled(screen, o.scale),
      parts = before && before.over < MOST_OVER ? changed(before, now) : undefined;
    if (parts?.length === 0) {
      of.set(f.hash, before!.picture);
      continue;
    }
    const pieces = await Promise.all(
        (parts ?? [{ x: 0, y: 0, width: now.width, height: now.height }]).map((r) => piece(now, r)),
      ),
      size = pieces.reduce((n, p) => n + p.data.length, 0);
    if (size > room) {
      if (!o.last) return undefined;
      left++;
      continue;
    }
    room -= size;
    const picture: Picture = {
      id: `p${pictures.length}`,
      ...(parts ? { over: before!.picture.id } : {}),
      pieces,
      width: now.width,
      height: now.height,
      screen: { width: screen.width, height: screen.height },
    };
    pictures.push(picture);
    of.set(f.hash, picture);
    before = { ...now, picture, over: parts ? before!.over + 1 : 0 };
  }
  return { pictures, of, scale: o.scale, gone, left };
}

/** Every pixel the mean of `by` times `by`. */
function scaled(s: { readonly width: number; readonly height: number; readonly data: Buffer }, by: number): Pixels {
  const width = Math.max(1, Math.floor(s.width / by)),
    height = Math.max(1, Math.floor(s.height / by)),
    px = new Uint32Array(width * height),
    d = s.data;
  for (let y = 0, o = 0; y < height; y++)
    for (let x = 0; x < width; x++, o++) {
      let r = 0,
        g = 0,
        b = 0,
        n = 0;
      for (let dy = 0; dy < by && y * by + dy < s.height; dy++)
        for (let dx = 0, i = ((y * by + dy) * s.width + x * by) * 4; dx < by && x * by + dx < s.width; dx++, i += 4) {
          b += d[i]!;
          g += d[i + 1]!;
          r += d[i + 2]!;
          n++;
        }
      px[o] = (Math.round(r / n) << 16) | (Math.round(g / n) << 8) | Math.round(b / n);
    }
  return { width, height, px };
}

interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
/** The changed parts, as stripes with bounds of their own; undefined where the whole screen is as small. */
function changed(a: Pixels, b: Pixels): Rect[] | undefined {
  if (a.width !== b.width || a.height !== b.height) return undefined;
  const { width, height } = b,
    rects: Rect[] = [];
  let top = -1,
    last = -1,
    from = width,
    to = -1;
  const end = (): void => {
    if (top >= 0) {
      const x = Math.max(0, from - EDGE),
        y = Math.max(0, top - EDGE);
      rects.push({
        x,
        y,
        width: Math.min(width, to + 1 + EDGE) - x,
        height: Math.min(height, last + 1 + EDGE) - y,
      });
    }
    top = -1;
    from = width;
    to = -1;
  };
  for (let y = 0; y < height; y++) {
    const at = y * width;
    let first = 0;
    while (first < width && a.px[at + first] === b.px[at + first]) first++;
    if (first === width) {
      if (top >= 0 && y - last > APART) end();
      continue;
    }
    let until = width - 1;
    while (a.px[at + until] === b.px[at + until]) until--;
    if (top < 0) top = y;
    last = y;
    from = Math.min(from, first);
    to = Math.max(to, until);
  }
  end();
  return rects.reduce((n, r) => n + r.width * r.height, 0) > WHOLE * width * height ? undefined : rects;
}

/** A part of the screen as a PNG: with a palette where it has no more than 256 colours, which a desktop rarely has. */
async function piece(s: Pixels, r: Rect): Promise<Piece> {
  const colours = new Map<number, number>();
  for (let y = r.y; y < r.y + r.height && colours.size <= 256; y++)
    for (let i = y * s.width + r.x, end = i + r.width; i < end; i++)
      if (!colours.has(s.px[i]!)) {
        colours.set(s.px[i]!, colours.size);
        if (colours.size > 256) break;
      }
  const few = colours.size <= 256,
    raw = Buffer.alloc(r.height * (r.width * (few ? 1 : 3) + 1));
  for (let y = r.y, o = 0; y < r.y + r.height; y++) {
    o++;
    for (let i = y * s.width + r.x, end = i + r.width; i < end; i++) {
      const c = s.px[i]!;
      if (few) raw[o++] = colours.get(c)!;
      else {
        raw[o++] = c >> 16;
        raw[o++] = (c >> 8) & 255;
        raw[o++] = c & 255;
      }
    }
  }
  const palette = Buffer.from([...colours.keys()].flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255])),
    png = pngFile({
      width: r.width,
      height: r.height,
      ...(few ? { palette } : {}),
      data: await deflate(raw, { level: 9 }),
    });
  return { ...r, data: png.toString('base64') };
}

/** The pictures once, for `use` to point at. */
export const definitions = (album: Album): string =>
  album.pictures.length === 0
    ? ''
    : `<svg class="store" aria-hidden="true" width="0" height="0"><defs>${album.pictures
        .map(
          (p) =>
            `<g id="${p.id}">${p.over === undefined ? '' : `<use href="#${p.over}"/>`}${p.pieces
              .map(
                (x) =>
                  `<image x="${x.x}" y="${x.y}" width="${x.width}" height="${x.height}" preserveAspectRatio="none" href="data:image/png;base64,${x.data}"/>`,
              )
              .join('')}</g>`,
        )
        .join('')}</defs></svg>`;

/** The HTML of one picture; `label` and `over`, which is drawn over it in pixels of the screen, are HTML. */
export function shown(p: Picture | undefined, label: string, over = ''): string {
  if (!p) return '<p class="gone">This screen is not in the file.</p>';
  const { width, height } = p.screen,
    scale = `scale(${(width / p.width).toFixed(5)} ${(height / p.height).toFixed(5)})`;
  return `<svg class="screen" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}"><use href="#${p.id}" transform="${scale}"/>${over}</svg>`;
}
