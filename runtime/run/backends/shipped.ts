import { SHIPPED } from '../../config/index.js';
import type { Backend } from './types.js';

/** Loaded when a policy of that kind is used: whoever only reads run files waits for none of them. */
const embedded: Backend = {
  ...SHIPPED.embedded,
  start: async (r, parts) => (await import('./embedded.js')).startEmbedded(r, parts),
  act: async (r, parts) => (await import('./embeddedActing.js')).startEmbeddedActing(r, parts),
  writeWeights: async (r) => (await import('./embeddedWeights.js')).writeEmbeddedWeights(r),
  instructionNotes: async (checkpoint, tasks, instruction) => {
    const { specOfCheckpoint } = await import('./embeddedActing.js'),
      { instructionNotes } = await import('./instructionNotes.js');
    return instructionNotes(await specOfCheckpoint(checkpoint), tasks, instruction);
  },
};
const vlm: Backend = {
  ...SHIPPED.vlm,
  start: async (r, parts) => (await import('./vlm.js')).startVlm(r, parts),
  model: (c) => c.policy.vlm!.model,
  writeWeights: async (r) => (await import('./vlmWeights.js')).writeVlmWeights(r),
};
const openai: Backend = {
  ...SHIPPED.openai,
  start: async (r, parts) => (await import('./openai.js')).startOpenAi(r, parts),
  model: (c) => c.policy.openai!.model,
};

export const SHIPPED_BACKENDS: readonly Backend[] = [embedded, vlm, openai];
