import { parentPort } from 'node:worker_threads';
import { readFrame, type FramePlace } from '../../data/store/frames.js';
import { serveModelCalls } from '../../policy/remote/modelWorker.js';

/** Body of the thread that asks model servers: pictures are read where the frame store keeps them. */
export function runModelWorker(): void {
  if (!parentPort) throw new Error('the model worker runs only in a worker thread');
  serveModelCalls(parentPort, (place) => readFrame(place as FramePlace));
}
