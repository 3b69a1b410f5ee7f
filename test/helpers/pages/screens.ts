import { decode, encode } from 'fast-png';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FrameLink } from '../../../runtime/protocol/types.js';

/**
 * Real screens of the quick start's desktop (media/desk.png holds four, 640 x 400 each), with something painted in to
 * tell them apart.
 */
export const width = 640,
  height = 400;
export type Scene = 'list' | 'form' | 'editor' | 'calculator';
const origin: Readonly<Record<Scene, readonly [number, number]>> = {
  list: [4, 4],
  form: [652, 4],
  editor: [4, 412],
  calculator: [652, 412],
};
export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
export interface Paint extends Rect {
  readonly colour: readonly [number, number, number];
  /** 0 to 1. */
  readonly alpha: number;
}

let sheet: Promise<{ readonly data: Uint8Array; readonly width: number }> | undefined;
async function screen(scene: Scene, paints: readonly Paint[]): Promise<Uint8Array> {
  const s = await (sheet ??= readFile('media/desk.png').then((b) => {
    const p = decode(b);
    return { data: p.data as Uint8Array, width: p.width };
  }));
  const [ox, oy] = origin[scene],
    out = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++)
    out.set(s.data.subarray(((oy + y) * s.width + ox) * 3, ((oy + y) * s.width + ox + width) * 3), y * width * 3);
  for (const p of paints)
    for (let y = p.y; y < p.y + p.height; y++)
      for (let x = p.x; x < p.x + p.width; x++)
        for (let c = 0; c < 3; c++) {
          const i = (y * width + x) * 3 + c;
          out[i] = Math.round(out[i]! * (1 - p.alpha) + p.colour[c]! * p.alpha);
        }
  return out;
}
function half(rgb: Uint8Array): Uint8Array {
  const w = width / 2,
    out = new Uint8Array(w * (height / 2) * 3);
  for (let y = 0; y < height / 2; y++)
    for (let x = 0; x < w; x++)
      for (let c = 0; c < 3; c++) {
        const at = (xx: number, yy: number): number => rgb[((2 * y + yy) * width + 2 * x + xx) * 3 + c]!;
        out[(y * w + x) * 3 + c] = (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) >> 2;
      }
  return out;
}

/** A folder of frames as a run has one, `thumbs` beside it. */
export class FrameFolder {
  readonly dir: string;
  constructor(dir: string) {
    this.dir = dir;
  }
  thumb(hash: string): string {
    return join(this.dir, 'thumbs', `${hash}.png`);
  }
  /** As the daemon answers `frame/thumbnails`. */
  answer(p: Readonly<Record<string, unknown>>): { readonly paths: Readonly<Record<string, string>> } {
    const file = (h: string): string => (p['width'] === 0 ? join(this.dir, h.slice(0, 2), `${h}.png`) : this.thumb(h));
    return { paths: Object.fromEntries((p['hashes'] as string[]).map((h) => [h, file(h)])) };
  }
  async add(scene: Scene, paints: readonly Paint[] = []): Promise<FrameLink> {
    const rgb = await screen(scene, paints),
      hash = createHash('sha256').update(rgb).digest('hex'),
      file = join(this.dir, hash.slice(0, 2), `${hash}.png`);
    await mkdir(join(this.dir, hash.slice(0, 2)), { recursive: true });
    await mkdir(join(this.dir, 'thumbs'), { recursive: true });
    await writeFile(file, encode({ width, height, data: rgb, channels: 3, depth: 8 }));
    await writeFile(
      this.thumb(hash),
      encode({ width: width / 2, height: height / 2, data: half(rgb), channels: 3, depth: 8 }),
    );
    return { hash, width, height };
  }
}
