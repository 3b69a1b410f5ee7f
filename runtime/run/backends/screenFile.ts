import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createDeflateRaw, createInflateRaw } from 'node:zlib';
import { ignoreFailure, orUndefined } from '../../domain/index.js';
import { unfinishedName } from '../../data/store/unfinished.js';
import { openForeign } from '../../files/foreignFile.js';
import type { ReadingScreen } from '../../trainer/types.js';

/** The fastest: screens of words are mostly one colour. */
const LEVEL = 1;
/** More than the screens of any run file; what is longer is no file of ours. */
const MOST_BYTES = 1 << 30;

interface Head {
  /** What the screens were drawn from. */
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
      await pipeline(Readable.from(parts(key, screens)), createDeflateRaw({ level: LEVEL }), createWriteStream(tmp));
      await rename(tmp, this.#path);
    } catch (e) {
      await orUndefined(rm(tmp, { force: true }), 'why they could not be kept is what counts');
      throw e;
    }
  }

  /** Undefined when there are none, they were drawn from something else (`key`), or the file is damaged. */
  load(key?: string): Promise<ReadingScreen[] | undefined> {
    return orUndefined(this.#read(key), 'then they are drawn again');
  }

  async #read(key: string | undefined): Promise<ReadingScreen[] | undefined> {
    const file = await openForeign(this.#path),
      inflated = createInflateRaw();
    ignoreFailure(pipeline(file.createReadStream(), inflated), 'whoever reads what comes out is told');
    const bytes = new Parts(inflated),
      head = JSON.parse(await bytes.line()) as Head,
      screens: ReadingScreen[] = [];
    if (key !== undefined && head.key !== key) {
      bytes.close();
      return undefined;
    }
    while (screens.length < head.screens) {
      const s = JSON.parse(await bytes.line()) as ScreenHead;
      screens.push({
        obs: Uint8Array.from(await bytes.take(s.pixels)),
        buckets: Int32Array.from(s.buckets),
        boxes: Int32Array.from(s.boxes),
        marks: Float32Array.from(s.marks),
      });
    }
    bytes.close();
    return screens;
  }
}

function* parts(key: string, screens: readonly ReadingScreen[]): Generator<Buffer> {
  const line = (o: Head | ScreenHead): Buffer => Buffer.from(`${JSON.stringify(o)}\n`);
  yield line({ key, screens: screens.length });
  for (const { obs, buckets, boxes, marks } of screens) {
    yield line({ pixels: obs.length, buckets: [...buckets], boxes: [...boxes], marks: [...marks] });
    yield Buffer.from(obs.buffer, obs.byteOffset, obs.byteLength);
  }
}

/** Lines and stretches of a stream, in order. Rejects where it ends too early. */
class Parts {
  readonly #stream: Readable;
  readonly #chunks: AsyncIterator<Buffer>;
  #have = Buffer.alloc(0);
  #taken = 0;

  constructor(stream: Readable) {
    this.#stream = stream;
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }
  async line(): Promise<string> {
    let eol = this.#have.indexOf(10);
    for (; eol < 0; eol = this.#have.indexOf(10)) await this.#more();
    const line = this.#have.toString('utf8', 0, eol);
    this.#have = this.#have.subarray(eol + 1);
    return line;
  }
  async take(n: number): Promise<Buffer> {
    while (this.#have.length < n) await this.#more();
    const taken = this.#have.subarray(0, n);
    this.#have = this.#have.subarray(n);
    return taken;
  }
  close(): void {
    this.#stream.destroy();
  }

  async #more(): Promise<void> {
    const next = await this.#chunks.next();
    if (next.done === true || (this.#taken += next.value.length) > MOST_BYTES)
      throw new Error('the file of reading screens is cut short');
    this.#have = Buffer.concat([this.#have, next.value]);
  }
}
