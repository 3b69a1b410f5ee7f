import { request, type X11Client } from '../../../runtime/cluster/drivers/x11Client.js';

const Z_PIXMAP = 2,
  DEPTH = 24,
  /** Values of a drawing context: its colour, and that it draws over windows. */
  FOREGROUND = 1 << 2,
  SUBWINDOW_MODE = 1 << 15,
  INCLUDE_INFERIORS = 1,
  /** A request is at most so long. */
  MOST_BYTES = 4 * 0xffff - 24;

/** A program that draws on a screen, over whatever is there. */
export class XPainter {
  readonly #x: X11Client;
  readonly #context: number;

  constructor(x: X11Client) {
    this.#x = x;
    this.#context = x.newResource();
    const b = request(55, 0, 24);
    b.writeUInt32LE(this.#context, 4);
    b.writeUInt32LE(x.root, 8);
    b.writeUInt32LE(FOREGROUND | SUBWINDOW_MODE, 12);
    b.writeUInt32LE(INCLUDE_INFERIORS, 20);
    x.post(b);
  }

  fill(
    colour: number,
    at: { readonly x: number; readonly y: number; readonly width: number; readonly height: number },
  ): void {
    const change = request(56, 0, 16);
    change.writeUInt32LE(this.#context, 4);
    change.writeUInt32LE(FOREGROUND, 8);
    change.writeUInt32LE(colour, 12);
    this.#x.post(change);
    const b = request(70, 0, 20);
    b.writeUInt32LE(this.#x.root, 4);
    b.writeUInt32LE(this.#context, 8);
    [at.x, at.y, at.width, at.height].forEach((n, i) => b.writeUInt16LE(n, 12 + 2 * i));
    this.#x.post(b);
  }
  /** The whole screen, as BGRX. */
  put(pixels: Buffer): void {
    const { width, height, root } = this.#x,
      rows = Math.floor(MOST_BYTES / (4 * width));
    for (let y = 0; y < height; y += rows) {
      const part = pixels.subarray(4 * width * y, 4 * width * Math.min(height, y + rows)),
        b = request(72, Z_PIXMAP, 24 + part.length);
      b.writeUInt32LE(root, 4);
      b.writeUInt32LE(this.#context, 8);
      b.writeUInt16LE(width, 12);
      b.writeUInt16LE(part.length / (4 * width), 14);
      b.writeInt16LE(y, 18);
      b[21] = DEPTH;
      part.copy(b, 24);
      this.#x.post(b);
    }
  }
}
