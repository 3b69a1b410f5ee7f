/** Pictures in requests: kept as the bytes that are stored anyway, and written as base64 only while they are sent. */

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
  base64(): string {
    return Buffer.from(this.png.buffer, this.png.byteOffset, this.png.length).toString('base64');
  }
  toJSON(): string {
    if (!taken) return HEAD + this.base64();
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
