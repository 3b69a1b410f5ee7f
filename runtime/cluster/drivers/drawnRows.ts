import type { Size } from '../../domain/index.js';
import { lost } from '../agentClient.js';
import { Drawn } from './drawn.js';
import { request, X11Client, type XExtension } from './x11Client.js';

/** Rows of a screen from `from` up to but not including `to`. */
export interface Rows {
  readonly from: number;
  readonly to: number;
}

/** Longest wait for one answer; after that the screens are read whole, until the desktop is reset. */
const ANSWER_MS = 1000;
/** Every so many reads all rows are read, for what the X server does not report (a program can add a second pointer). */
const WHOLE_EVERY = 64;
/** With more rectangles than this, reading the whole screen is cheaper than reading the changed rows. */
const MOST_RECTANGLES = 1000;
/** Requests of XFIXES. */
const GET_CURSOR_IMAGE = 4,
  CREATE_REGION = 5,
  FETCH_REGION = 19;

/**
 * Which rows of a screen can have changed since it was last read, by what its X server reports over a connection of its
 * own: drawing by DAMAGE, and the mouse pointer, which the server draws into the framebuffer without reporting it, by its
 * place and size. What is drawn after `since` is reported by the next `since`.
 *
 * Programs of the desktop can deceive it (a second pointer, a pointer that leaves and returns while the screen is read): a
 * trace of a pointer then stays until something is drawn over it or everything is read again.
 */
export class DrawnRows {
  readonly #x: X11Client;
  readonly #drawn: Drawn;
  readonly #region: number;
  readonly #fetchRegion: Buffer;
  readonly #getCursorImage: Buffer;
  /** Rows of the pointer in the screen that was last read; undefined when they are not known. */
  #inLast: Rows | undefined;
  /** Rows of the pointer when `since` asked. */
  #asked: Rows | undefined;
  #reads = 0;

  private constructor(x: X11Client, drawn: Drawn, fixes: XExtension) {
    this.#x = x;
    this.#drawn = drawn;
    this.#region = x.newResource();
    this.#fetchRegion = request(fixes.opcode, FETCH_REGION, 8);
    this.#fetchRegion.writeUInt32LE(this.#region, 4);
    this.#getCursorImage = request(fixes.opcode, GET_CURSOR_IMAGE, 4);
    const create = request(fixes.opcode, CREATE_REGION, 8);
    create.writeUInt32LE(this.#region, 4);
    x.post(create);
  }

  /** `path` is the X server's socket. Rejects when the server is not there or reports nothing. */
  static async open(path: string, screen: Size): Promise<DrawnRows> {
    const x = await X11Client.open(path, screen, ANSWER_MS);
    try {
      const drawn = await Drawn.watch(x),
        fixes = await x.extension('XFIXES', { major: 4, minor: 0 });
      if (!drawn || !fixes) throw lost('The X server does not report what is drawn.');
      return new DrawnRows(x, drawn, fixes);
    } catch (e) {
      x.close();
      throw e;
    }
  }

  /** Rows that may have changed since the last read; undefined: all of them. Read the screen after it. Rejects with `desktop.lost`. */
  async since(): Promise<readonly Rows[] | undefined> {
    this.#drawn.subtract(this.#region);
    const [region, cursor] = await this.#x.askAll(this.#fetchRegion, this.#getCursorImage),
      [drawn, pointer, before] = [this.#rowsOfRegion(region!), this.#rowsOfCursor(cursor!), this.#inLast];
    this.#asked = pointer;
    const known = drawn && pointer && before && ++this.#reads % WHOLE_EVERY !== 0;
    return known ? [...drawn, before, pointer] : undefined;
  }
  /** Call it right after reading: if the pointer has moved since `since`, the next read covers all rows. Rejects with `desktop.lost`. */
  async wasRead(): Promise<void> {
    const asked = this.#asked;
    this.#inLast = undefined;
    const now = this.#rowsOfCursor(await this.#x.ask(this.#getCursorImage));
    if (asked && now && asked.from === now.from && asked.to === now.to) this.#inLast = now;
  }
  close(): void {
    this.#x.close();
  }

  #rowsOfRegion(r: Buffer): readonly Rows[] | undefined {
    if (r.length > 32 + 8 * MOST_RECTANGLES) return undefined;
    const rows: Rows[] = [];
    for (let at = 32; at + 8 <= r.length; at += 8) rows.push(this.#rows(r.readInt16LE(at + 2), r.readUInt16LE(at + 6)));
    return rows;
  }
  #rowsOfCursor(r: Buffer): Rows | undefined {
    const [width, height] = [r.readUInt16LE(12), r.readUInt16LE(14)];
    // An animated pointer has this size until its second picture, whatever is on the screen.
    if (width <= 1 && height <= 1) return undefined;
    return this.#rows(r.readInt16LE(10) - r.readUInt16LE(18), height);
  }
  #rows(top: number, height: number): Rows {
    return { from: Math.max(0, top), to: Math.min(this.#x.height, top + height) };
  }
}
