import type { RunFile } from '../../../runtime/config/index.js';
import { SPECIAL } from './policy.js';
import type { ReferenceServer } from './server.js';

/** What a run file says to act with a server's model and to train it there. */
export const servedPolicy = (s: ReferenceServer): Required<Pick<RunFile, 'policy' | 'trainer'>> => ({
  policy: {
    kind: 'vlm',
    vlm: {
      model: s.baseModel,
      endpoints: [`${s.url}/v1`],
      coordinates: 'relative1000',
      imageToken: SPECIAL.imagePad,
      maxTokens: 8,
      images: 2,
      prompt: 'Task: {instruction}',
    },
  },
  trainer: { remote: { url: s.url, rank: 4 }, batchGroups: 1, lr: 0.05, replay: 4, minibatchStates: 0 },
});
