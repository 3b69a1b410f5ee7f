/**
 * Screen to observation: BGRX pixels of any size -> `obs.height` x `obs.width` luminance bytes by area average,
 * letterboxed in black when the aspect differs, and the same geometry backwards for clicks. Integer arithmetic only, so
 * the same screen gives the same bytes on every machine: the bytes are part of the de-duplication key of training
 * states.
 *
 * Luminance of a pixel is 77 R + 150 G + 29 B (ITU-R BT.601 in 1/256); an output byte is the area-weighted mean,
 * rounded half up.
 */
import type { EmbeddedPolicySpec, Frame, Point, Size } from '../../domain/index.js';
import { gridOf } from '../../domain/index.js';

const R = 77,
  G = 150,
  B = 29;

/** The rectangle of the screen inside the observation, in observation pixels. */
export interface View {
  readonly screen: Size;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The largest centred rectangle of the screen's aspect; sides rounded to the nearest pixel, at least 1. */
export function viewOf(spec: EmbeddedPolicySpec, screen: Size): View {
  const { width: ow, height: oh } = spec.obs;
  const wide = screen.width * oh >= screen.height * ow;
  const width = wide ? ow : Math.max(1, Math.floor((2 * screen.width * oh + screen.height) / (2 * screen.height)));
  const height = wide ? Math.max(1, Math.floor((2 * screen.height * ow + screen.width) / (2 * screen.width))) : oh;
  return {
    screen: { width: screen.width, height: screen.height },
    x: (ow - width) >> 1,
    y: (oh - height) >> 1,
    width,
    height,
  };
}

/** Luminance bytes, `obs.height` rows of `obs.width`. `into` is reused when given (it must have that length). */
export function encodeObservation(spec: EmbeddedPolicySpec, frame: Frame, into?: Uint8Array): Uint8Array {
  const { width: ow, height: oh } = spec.obs;
  const out = into ?? new Uint8Array(ow * oh);
  if (frame.data.length < frame.width * frame.height * 4)
    throw new RangeError(
      `a ${frame.width}x${frame.height} frame needs ${frame.width * frame.height * 4} bytes, got ${frame.data.length}`,
    );
  const view = viewOf(spec, frame);
  if (view.width !== ow || view.height !== oh) out.fill(0);
  const px = pixels(frame);
  const k = frame.width / view.width;
  if (k === 2 && frame.height === view.height * 2) boxTwo(px, frame.width, view, ow, out);
  else if (Number.isInteger(k) && k <= MAX_BOX && frame.height === view.height * k)
    boxAny(px, frame.width, k, view, ow, out);
  else areaAverage(px, frame, view, ow, out);
  return out;
}

/** The cell (row-major index) that contains a screen pixel; undefined outside the screen. */
export function cellAt(spec: EmbeddedPolicySpec, view: View, p: Point): number | undefined {
  const { screen } = view;
  if (!(p.x >= 0 && p.y >= 0 && p.x < screen.width && p.y < screen.height)) return undefined;
  const { cols, rows } = gridOf(spec);
  const ox = view.x + Math.floor((Math.floor(p.x) * view.width) / screen.width);
  const oy = view.y + Math.floor((Math.floor(p.y) * view.height) / screen.height);
  return Math.min(rows - 1, Math.floor(oy / spec.obs.cell)) * cols + Math.min(cols - 1, Math.floor(ox / spec.obs.cell));
}

/** Screen pixel at the centre of a cell; cells in the letterbox give the nearest screen pixel. */
export function cellCentre(spec: EmbeddedPolicySpec, view: View, cell: number): Point {
  const { cols } = gridOf(spec);
  const half = spec.obs.cell / 2;
  const cx = (cell % cols) * spec.obs.cell + half - view.x,
    cy = Math.floor(cell / cols) * spec.obs.cell + half - view.y;
  return {
    x: clamp(Math.floor((cx * view.screen.width) / view.width), view.screen.width - 1),
    y: clamp(Math.floor((cy * view.screen.height) / view.height), view.screen.height - 1),
  };
}

const clamp = (v: number, max: number): number => (v < 0 ? 0 : v > max ? max : v);

/** Pixels as 32-bit little-endian words (B lowest); copies only when the buffer is not aligned. */
function pixels(frame: Frame): Uint32Array {
  const { data } = frame;
  const n = frame.width * frame.height;
  if (data.byteOffset % 4 === 0) return new Uint32Array(data.buffer, data.byteOffset, n);
  const copy = new Uint8Array(n * 4);
  copy.set(data.subarray(0, n * 4));
  return new Uint32Array(copy.buffer);
}

/** Exactly half size: the common desktop (640x400). Red and blue are summed together in two lanes of one word. */
function boxTwo(px: Uint32Array, w: number, view: View, ow: number, out: Uint8Array): void {
  for (let y = 0; y < view.height; y++) {
    let a = y * 2 * w,
      o = (view.y + y) * ow + view.x;
    for (let x = 0; x < view.width; x++, a += 2, o++) {
      const p = px[a]!,
        q = px[a + 1]!,
        r = px[a + w]!,
        s = px[a + w + 1]!;
      const rb = (p & 0xff00ff) + (q & 0xff00ff) + (r & 0xff00ff) + (s & 0xff00ff);
      const g = ((p & 0xff00) + (q & 0xff00) + (r & 0xff00) + (s & 0xff00)) >>> 8;
      out[o] = (R * (rb >>> 16) + G * g + B * (rb & 0xffff) + 512) >> 10;
    }
  }
}

/** 16 x 16 sums of a byte still fit their 16-bit lane. */
const MAX_BOX = 16;

/**
 * A whole ratio, e.g. 1280x720 at a quarter: red and blue in two lanes as above, then the rounding of `areaAverage`.
 */
function boxAny(px: Uint32Array, w: number, k: number, view: View, ow: number, out: Uint8Array): void {
  const total = k * k * 256;
  for (let y = 0; y < view.height; y++) {
    for (let x = 0, o = (view.y + y) * ow + view.x; x < view.width; x++, o++) {
      let rb = 0,
        g = 0;
      for (let j = 0, row = y * k * w + x * k; j < k; j++, row += w) {
        for (let i = row; i < row + k; i++) {
          const p = px[i]!;
          rb += p & 0xff00ff;
          g += (p >>> 8) & 0xff;
        }
      }
      out[o] = Math.floor((2 * (R * (rb >>> 16) + G * g + B * (rb & 0xffff)) + total) / (2 * total));
    }
  }
}

/**
 * Any ratio. In units of 1/(screen side * view side) every overlap is an integer: source pixel i covers [i v, (i+1) v),
 * output pixel x covers [x s, (x+1) s). A row is summed across first (below 2^31), then rows are added in doubles
 * (exact below 2^53).
 */
function areaAverage(px: Uint32Array, size: Size, view: View, ow: number, out: Uint8Array): void {
  const { width: sw, height: sh } = size;
  const { width: vw, height: vh } = view;
  const row = new Float64Array(vw),
    acc = new Float64Array(vw);
  const total = sw * sh * 256;
  let have = -1;
  for (let y = 0; y < vh; y++) {
    acc.fill(0);
    const top = y * sh,
      bottom = top + sh;
    for (let i = Math.floor(top / vh); i * vh < bottom; i++) {
      if (have !== i) {
        sumRow(px, i * sw, sw, vw, row);
        have = i;
      }
      const weight = Math.min((i + 1) * vh, bottom) - Math.max(i * vh, top);
      for (let x = 0; x < vw; x++) acc[x] = acc[x]! + weight * row[x]!;
    }
    const o = (view.y + y) * ow + view.x;
    for (let x = 0; x < vw; x++) out[o + x] = Math.floor((2 * acc[x]! + total) / (2 * total));
  }
}

function sumRow(px: Uint32Array, start: number, sw: number, vw: number, row: Float64Array): void {
  let i = 0,
    x = 0,
    sum = 0,
    lum = luminance(px[start]!);
  // Walk both edges together: the next boundary is either the end of source pixel i or of output pixel x.
  for (let at = 0; x < vw;) {
    const endSource = (i + 1) * vw,
      endOut = (x + 1) * sw;
    const end = endSource < endOut ? endSource : endOut;
    sum += (end - at) * lum;
    at = end;
    if (end === endOut) {
      row[x++] = sum;
      sum = 0;
    }
    if (end === endSource && ++i < sw) lum = luminance(px[start + i]!);
  }
}

const luminance = (p: number): number => R * ((p >>> 16) & 0xff) + G * ((p >>> 8) & 0xff) + B * (p & 0xff);
