import { readFrame, type FramePlace } from '../../data/store/frames.js';
import { portOf } from '../../domain/workerPort.js';
import { serveModelCalls } from '../../policy/remote/modelWorker.js';

/** Body of the thread that asks model servers: pictures are read where the frame store keeps them. */
export function runModelWorker(): void {
  serveModelCalls(portOf('model'), (place) => readFrame(place as FramePlace));
}
