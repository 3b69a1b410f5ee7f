import type { FramePlace } from '../../data/store/frames.js';
import { PackReader } from '../../data/store/packReader.js';
import { behindMain, portOf } from '../../concurrency/workerPort.js';
import { serveModelCalls } from '../../policy/remote/modelWorker.js';

/** Body of the thread that asks model servers: pictures are read where the frame store keeps them. */
export function runModelWorker(): void {
  behindMain();
  const packs = new PackReader();
  serveModelCalls(portOf('model'), (place) => packs.read(place as FramePlace));
}
