import type { FrameStore } from '../../data/types.js';
import { pngOf } from '../../data/store/png.js';
import type { ChatOptions } from '../../policy/remote/chatSession.js';
import { ModelThread } from '../../policy/remote/modelThread.js';
import type { StartedParts } from './startedParts.js';
import type { BackendRequest } from './types.js';

/** How a model is shown the screens that a run keeps: the files that are stored anyway, once they are there. */
export const keptScreens = (frames: FrameStore): Pick<ChatOptions, 'encodePng' | 'kept'> => ({
  encodePng: (f) => frames.encode?.(f) ?? pngOf(f),
  kept: (sha256) => {
    const place = frames.packed?.(sha256);
    return place && { place, read: () => frames.read({ hash: sha256, width: 0, height: 0 }) };
  },
});

/** The thread that asks the model servers of a run. */
export const modelThread = (r: BackendRequest, parts: StartedParts): ModelThread => {
  const thread = new ModelThread(r.entry, {
    onFailure: (why) => r.onNote?.(`Model servers are asked from the main thread from now on: ${why}.`),
  });
  parts.add(() => Promise.resolve(thread.close()));
  return thread;
};
