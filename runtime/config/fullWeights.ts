import { DECODES_7B } from './gpuFigures.js';

/** The servers that can sample where all weights are trained (`trainer.remote.rank` 0). */
export const WHO_ACTS = `only the engine of DART Studio samples with all weights (${DECODES_7B} at 7 B, measured); vLLM and SGLang are given adapters`;
/** The options to set for sampling elsewhere. */
export const FOR_A_POOL =
  'To sample on a pool of vLLM or SGLang servers, set trainer.remote.rank to 16 and trainer.lr ten times as high, and name the servers in policy.vlm.endpoints; with rank 0 leave the engine alone there (its /v1).';
