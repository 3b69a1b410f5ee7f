import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { StudioError, messageOf, errorCode } from '../domain/index.js';
import { deadline } from '../concurrency/deadline.js';
import { settled } from '../concurrency/failures.js';
import type { Size } from '../domain/index.js';
import type { ProcessEntry, ProcessRole } from '../concurrency/process.js';
import { asPng, jpegHeader } from './jpeg.js';
import type { JpegDone, JpegJob } from './jpegWorker.js';
import { Unusable } from './types.js';

const ROLE: ProcessRole = '__jpeg';

/**
 * JPEG pictures of strangers, decoded by jpeg-js in a worker thread: it works in one go, for 0.1 s and more, and a file
 * made for it could hold it for hours or take all memory. The worker starts with the first picture and serves all that
 * follow, one at a time.
 */
export class JpegDecoder {
  readonly #entry: ProcessEntry;
  readonly #limitMs: number;
  #worker: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();
  /** `limitMs`: longest time for one picture; the largest takes a few seconds. */
  constructor(entry: ProcessEntry, limitMs = 60_000) {
    this.#entry = entry;
    this.#limitMs = limitMs;
  }

  /** BGRX, 4 bytes a pixel. Rejects with Unusable for the picture's faults, with StudioError for the worker's. */
  async decode(b: Buffer): Promise<Size & { readonly data: Buffer }> {
    const { width, height, rgb } = jpegHeader(b),
      reply = this.#last.then(() => this.#ask({ bytes: b, rgb, pixels: width * height }));
    this.#last = settled(reply);
    const done = await reply;
    if ('damage' in done)
      throw new Unusable(`is damaged, or a rare kind of JPEG${done.damage === '' ? '' : ` (${done.damage})`}`, asPng);
    if (done.width !== width || done.height !== height) throw new Unusable('is damaged: it names two sizes');
    return { width, height, data: Buffer.from(done.data.buffer) };
  }

  async #ask(job: JpegJob): Promise<JpegDone> {
    const worker = (this.#worker ??= this.#start()),
      exit = new AbortController(),
      time = deadline(this.#limitMs, exit.signal),
      onExit = (): void => {
        exit.abort();
      };
    worker.once('exit', onExit);
    try {
      const reply = once(worker, 'message', { signal: time.signal });
      worker.postMessage(job);
      return (await reply)[0] as JpegDone;
    } catch (e) {
      const left = exit.signal.aborted,
        late = time.signal.aborted && !left;
      await this.#end(worker);
      if (late) throw new Unusable(`takes longer than ${this.#limitMs / 1000} s to decode`, asPng);
      if (errorCode(e) === 'ERR_WORKER_OUT_OF_MEMORY') throw new Unusable('takes too much memory to decode', asPng);
      throw new StudioError(
        'internal',
        `The worker that decodes JPEG pictures ended: ${left ? 'it exited on its own' : messageOf(e)}.`,
        'Import again: it continues after what was already imported. If it happens again, please report it.',
        { cause: e },
      );
    } finally {
      time.end();
      worker.off('exit', onExit);
    }
  }
  #start(): Worker {
    // Garbage of jpeg-js dies young and is large: a small nursery is emptied often (measured: 40 MB less).
    const worker = new Worker(this.#entry.file, {
      workerData: { role: ROLE },
      resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 4 },
    });
    // Whoever waits is told by `once`; nobody else cares.
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }
  async #end(worker: Worker): Promise<void> {
    if (this.#worker === worker) this.#worker = undefined;
    await worker.terminate();
  }

  /** Ends the thread: no more pictures. */
  async close(): Promise<void> {
    if (this.#worker) await this.#end(this.#worker);
  }
}
