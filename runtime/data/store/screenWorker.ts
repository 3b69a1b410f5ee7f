import { deflateSync } from 'node:zlib';
import { messageOf } from '../../domain/index.js';
import { oneByOne } from '../../concurrency/workerPort.js';
import { screenFile, type ScreenDone, type ScreenJob } from './screenEncoder.js';

/** Body of a thread that makes files of screens: one after the other. */
export function runScreenWorker(): void {
  oneByOne<ScreenJob>('screen', async ({ id, width, height, pixels }, port) => {
    const data = Buffer.from(pixels.buffer, pixels.byteOffset, pixels.byteLength);
    try {
      const { hash, png: made } = await screenFile({ data, width, height }, (raw) => deflateSync(raw, { level: 1 })),
        png = await made(),
        // A small file lies in memory that it shares with others.
        own = png.byteLength === png.buffer.byteLength ? png : new Uint8Array(png);
      port.postMessage({ id, hash, png: own } satisfies ScreenDone, [own.buffer as ArrayBuffer]);
    } catch (e) {
      port.postMessage({ id, error: messageOf(e) } satisfies ScreenDone);
    }
  });
}
