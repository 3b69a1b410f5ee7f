import { parentPort } from 'node:worker_threads';
import { deflateSync } from 'node:zlib';
import { messageOf } from '../../domain/index.js';
import { screenFile, type ScreenDone, type ScreenJob } from './screenEncoder.js';

/** Body of a thread that makes files of screens: one after the other. */
export function runScreenWorker(): void {
  const port = parentPort;
  if (!port) throw new Error('the screen worker runs only in a worker thread');
  let chain: Promise<void> = Promise.resolve();
  port.on('message', (j: ScreenJob) => {
    chain = chain.then(async () => {
      const { id, width, height, pixels } = j,
        data = Buffer.from(pixels.buffer, pixels.byteOffset, pixels.byteLength);
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
  });
}
