import { createHash } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createDeflateRaw, createInflateRaw } from 'node:zlib';
import { toRunError } from '../../domain/index.js';
import { ignoreFailure, orUndefined } from '../../concurrency/failures.js';
import { foreignJson } from '../../foreign/json.js';
import { createFresh } from '../../files/folderParts.js';
import { unfinishedName } from '../../files/replaceFile.js';
import { openForeign } from '../../files/foreignFile.js';
import type { ReadingScreen } from '../../trainer/types.js';

/** The fastest: screens of words are mostly one colour. */
const LEVEL = 1;
/** Larger than the screens of any run file; a longer file is not one of ours. */
const MOST_BYTES = 1 << 30;
/** Bounds of the line between the pixels of two screens, and of those pixels. */
const MOST_LINE = 1 << 20,
  MOST_PIXELS = 1 << 22,
  LINE = { depth: 4, values: 1 << 17 };

interface Head {
  /** Hash of the words and settings that the screens were drawn from. */
  readonly key: string;
  readonly screens: number;
}
interface ScreenHead {
  readonly pixels: number;
  readonly buckets: readonly number[];
  readonly boxes: readonly number[];
  readonly marks: readonly number[];
}

export const screensKey = (from: unknown): string =>
  createHash('sha256').update(JSON.stringify(from)).digest('hex').slice(0, 32);

/**
 * The screens of a run's reading lessons, in its folder: a run that goes on, or a trainer that is started again, does
 * not draw them a second time. One JSON line about all, then of each screen a JSON line and its pixels, deflated.
 */
export class ScreenFile {
  readonly #path: string;
  constructor(path: string) {
    this.#path = path;
  }

  async save(key: string, screens: readonly ReadingScreen[]): Promise<void> {
    const tmp = unfinishedName(this.#path);
    try {
      const to = (await createFresh(tmp)).createWriteStream();
      await pipeline(Readable.from(parts(key, screens)), createDeflateRaw({ level: LEVEL }), to);
      await rename(tmp, this.#path);
    } catch (e) {
      await orUndefined(rm(tmp, { force: true }), 'why they could not be kept is what counts');
      throw e;
    }
  }

  /** Saves them where there is room: a run goes on without, and draws them again when it is resumed. */
  async keep(key: string, screens: readonly ReadingScreen[], note: (text: string) => void): Promise<void> {
    await this.save(key, screens).catch((e: unknown) => {
      note(
        `The screens of the reading lessons could not be kept (${toRunError(e).message}). A resumed run draws them again.`,
      );
    });
  }

  /** Undefined when there are none, they were drawn from something else (`key`), or the file is damaged. */
  load(key?: string): Promise<ReadingScreen[] | undefined> {
    return orUndefined(this.#read(key), 'then they are drawn again');
  }

  async #read(key: string | undefined): Promise<ReadingScreen[] | undefined> {
    const file = await openForeign(this.#path, { inside: dirname(this.#path) }),
      inflated = createInflateRaw();
    ignoreFailure(pipeline(file.createReadStream(), inflated), 'whoever reads what comes out is told');
    const bytes = new Parts(inflated),
      screens: ReadingScreen[] = [];
    try {
      const head = lineIn(await bytes.line()) as Head;
      if (key !== undefined && head.key !== key) return undefined;
      while (screens.length < head.screens) {
        const s = lineIn(await bytes.line()) as ScreenHead,
          buckets = numbers(s.buckets),
          boxes = numbers(s.boxes);
        if (boxes.length !== 4 * buckets.length) throw new Error('a word without a place');
        screens.push({
          obs: Uint8Array.from(await bytes.take(s.pixels)),
          buckets: Int32Array.from(buckets),
          boxes: Int32Array.from(boxes),
          marks: Float32Array.from(numbers(s.marks)),
        });
      }
      return screens;
    } finally {
      bytes.close();
    }
  }
}

/** A run folder may come from a stranger. */
function numbers(of: unknown): readonly number[] {
  if (!Array.isArray(of) || !of.every((x) => Number.isFinite(x))) throw new Error('a list that is not of numbers');
  return of as number[];
}

const lineIn = (line: string): unknown =>
  foreignJson(line, LINE, (why) => new Error(`a line of reading screens that ${why}`));

function* parts(key: string, screens: readonly ReadingScreen[]): Generator<Buffer> {
  const line = (o: Head | ScreenHead): Buffer => Buffer.from(`${JSON.stringify(o)}\n`);
  yield line({ key, screens: screens.length });
  for (const { obs, buckets, boxes, marks } of screens) {
    yield line({ pixels: obs.length, buckets: [...buckets], boxes: [...boxes], marks: [...marks] });
    yield Buffer.from(obs.buffer, obs.byteOffset, obs.byteLength);
  }
}

/** Lines and stretches of a stream, in order. Rejects where it ends too early, or one is longer than any of ours. */
class Parts {
  readonly #stream: Readable;
  readonly #chunks: AsyncIterator<Buffer>;
  #have: Buffer = Buffer.alloc(0);
  #read = 0;

  constructor(stream: Readable) {
    this.#stream = stream;
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }
  async line(): Promise<string> {
    const chunks = [this.#have];
    let length = this.#have.length,
      eol = this.#have.indexOf(10);
    // Each chunk is looked through once, and all are joined once, however long the line is.
    for (; eol < 0 && length <= MOST_LINE;) {
      const next = await this.#next(),
        at = next.indexOf(10);
      if (at >= 0) eol = length + at;
      chunks.push(next);
      length += next.length;
    }
    if (eol < 0 || eol > MOST_LINE) throw new Error('a line of reading screens that is too long');
    this.#have = Buffer.concat(chunks);
    return this.#taken(eol + 1).toString('utf8', 0, eol);
  }
  async take(n: number): Promise<Buffer> {
    if (!Number.isSafeInteger(n) || n < 0 || n > MOST_PIXELS) throw new Error('a reading screen of no size');
    const chunks = [this.#have];
    for (let length = this.#have.length; length < n;) {
      const next = await this.#next();
      chunks.push(next);
      length += next.length;
    }
    this.#have = Buffer.concat(chunks);
    return this.#taken(n);
  }
  close(): void {
    this.#stream.destroy();
  }

  #taken(n: number): Buffer {
    const taken = this.#have.subarray(0, n);
    this.#have = this.#have.subarray(n);
    return taken;
  }
  async #next(): Promise<Buffer> {
    const next = await this.#chunks.next();
    if (next.done === true || (this.#read += next.value.length) > MOST_BYTES)
      throw new Error('the file of reading screens is cut short');
    return next.value;
  }
}
