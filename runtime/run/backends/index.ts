import type { PolicyKind } from '../../domain/index.js';
import { embedded } from './embedded.js';
import { openai } from './openai.js';
import { vlm } from './vlm.js';
import type { Backend } from './types.js';

export type { Backend, BackendRequest, Learner, PolicyBackend, Replicas, Snapshot } from './types.js';
export { runFileOfServer } from './openai.js';

/** Everything that is asked of a policy, by `policy.kind`. */
export const BACKENDS: Readonly<Record<PolicyKind, Backend>> = { embedded, vlm, openai };
