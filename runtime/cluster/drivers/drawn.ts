import { request, type X11Client, type XExtension } from './x11Client.js';

/** Level of reports: one event when the damage is no longer empty. */
const NON_EMPTY = 3;

/** Watches all drawing on a screen, by any program (the X extension DAMAGE, 1.1), without the mouse pointer. */
export class Drawn {
  readonly #x: X11Client;
  readonly #extension: XExtension;
  readonly #damage: number;

  private constructor(x: X11Client, extension: XExtension) {
    this.#x = x;
    this.#extension = extension;
    this.#damage = x.newResource();
  }

  /** Begins with the whole screen as drawn. undefined when the server cannot tell. Rejects with `desktop.lost`. */
  static async watch(x: X11Client): Promise<Drawn | undefined> {
    const extension = await x.extension('DAMAGE', { major: 1, minor: 1 });
    if (!extension) return undefined;
    const d = new Drawn(x, extension),
      create = request(extension.opcode, 1, 16);
    create.writeUInt32LE(d.#damage, 4);
    create.writeUInt32LE(x.root, 8);
    create[12] = NON_EMPTY;
    x.post(create);
    return d;
  }

  /** Forgets what was drawn so far, so that the next drawing is reported again. `into`: a region of XFIXES that gets it. */
  subtract(into = 0): void {
    const b = request(this.#extension.opcode, 3, 16);
    b.writeUInt32LE(this.#damage, 4);
    b.writeUInt32LE(into, 12);
    this.#x.post(b);
  }
  /** Once after each `subtract`. */
  onDrawn(l: () => void): () => void {
    return this.#x.onEvent((e) => {
      if (e.type === 'extension' && e.code === this.#extension.firstEvent) l();
    });
  }
}
