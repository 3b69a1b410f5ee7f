/**
 * Pictures in requests: kept as the bytes that are stored anyway, or not at all once they are on disk, and written as base64
 * only while they are sent.
 */

/** Bytes of a file that become one text: a multiple of 3, so that the texts joined are the base64 of the whole. */
const PIECE = 48_000;
const HEAD = 'data:image/png;base64,';
/** Stands for a picture while a request is turned into text; no text of a task or a model holds it. */
const mark = `\u0000picture ${Math.random()} ${Math.random()}\u0000`,
  quoted = JSON.stringify(mark).slice(1, -1);
let taken: Picture[] | undefined;

/** A file that somebody keeps on disk. */
export interface KeptFile {
  /** The store's description of where the file is at the moment; it can be sent to another thread. */
  readonly place: unknown;
  /** Reads the file's bytes, wherever they are by now. */
  read(): Promise<Uint8Array>;
}

/** A PNG file as a data URL, which it becomes in JSON. */
export class Picture {
  /** Bytes of the file. */
  readonly length: number;
  #file: Uint8Array | KeptFile;

  constructor(png: Uint8Array) {
    this.length = png.length;
    this.#file = png;
  }
  /** The bytes in memory, or the file on disk. */
  get file(): Uint8Array | KeptFile {
    return this.#file;
  }
  get inMemory(): boolean {
    return this.#file instanceof Uint8Array;
  }
  /** Drops the bytes: the picture is read from disk whenever it is sent. */
  leaveTo(kept: KeptFile): void {
    this.#file = kept;
  }
  read(): Uint8Array | Promise<Uint8Array> {
    return this.#file instanceof Uint8Array ? this.#file : this.#file.read();
  }
  toJSON(): string {
    if (taken) {
      taken.push(this);
      return mark;
    }
    if (!(this.#file instanceof Uint8Array)) throw new Error('a picture on disk is sent in pieces');
    return HEAD + [...base64Of(this.#file)].join('');
  }
}

/** Characters of the base64 of so many bytes. */
export const base64Length = (bytes: number): number => 4 * Math.ceil(bytes / 3);
/**
 * A file's base64, in texts short enough to be young objects of the heap: whole, a request's pictures are a megabyte of large
 * ones, and cost twice the time.
 */
export function* base64Of(png: Uint8Array): Generator<string> {
  const file = Buffer.from(png.buffer, png.byteOffset, png.length);
  for (let at = 0; at < file.length; at += PIECE) yield file.toString('base64', at, at + PIECE);
}

/** A value as JSON in pieces, which are text or stand for the base64 of a picture. */
export function jsonPieces(value: unknown): readonly (string | Picture)[] {
  const pictures: Picture[] = [];
  taken = pictures;
  let text: string;
  try {
    text = JSON.stringify(value);
  } finally {
    taken = undefined;
  }
  return text.split(quoted).flatMap((t, i) => (i < pictures.length ? [t + HEAD, pictures[i]!] : [t]));
}
