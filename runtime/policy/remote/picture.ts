/** Pictures in requests: kept as the bytes that are stored anyway, and written as base64 only while they are sent. */

/** Bytes of a file that become one text: a multiple of 3, so that the texts joined are the base64 of the whole. */
const PIECE = 48_000;
const HEAD = 'data:image/png;base64,';
/** Stands for a picture while a request is turned into text; no text of a task or a model holds it. */
const mark = `\u0000picture ${Math.random()} ${Math.random()}\u0000`,
  quoted = JSON.stringify(mark).slice(1, -1);
let taken: Picture[] | undefined;

/** A PNG file as a data URL, which it becomes in JSON. */
export class Picture {
  readonly png: Uint8Array;
  constructor(png: Uint8Array) {
    this.png = png;
  }
  /** Of its base64. */
  get bytes(): number {
    return 4 * Math.ceil(this.png.length / 3);
  }
  /**
   * Its base64, in texts short enough to be young objects of the heap: whole, a request's pictures are a megabyte of large
   * ones, and cost twice the time.
   */
  *base64(): Generator<string> {
    const file = Buffer.from(this.png.buffer, this.png.byteOffset, this.png.length);
    for (let at = 0; at < file.length; at += PIECE) yield file.toString('base64', at, at + PIECE);
  }
  toJSON(): string {
    if (!taken) return HEAD + [...this.base64()].join('');
    taken.push(this);
    return mark;
  }
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
