import { declarePolicy } from '../../config/index.js';
import type { PolicyKind } from '../../domain/index.js';
import { SHIPPED_BACKENDS } from './shipped.js';
import type { Backend } from './types.js';

export type { Backend, BackendRequest, Learner, PolicyBackend, Replicas, Snapshot } from './types.js';

/**
 * Kinds of policy beside those of schema.ts, each its registration: what run files say of it and everything that a run
 * asks of it (CONTRIBUTING.md#add-a-policy-or-trainer-backend).
 */
const MORE: readonly Backend[] = [];

const backends = new Map<PolicyKind, Backend>(SHIPPED_BACKENDS.map((b) => [b.kind, b]));

/** Run files may have this kind of policy and runs use it from now on, until what is returned is called. */
export function registerBackend(b: Backend): () => void {
  const undeclare = declarePolicy(b);
  backends.set(b.kind, b);
  return () => {
    backends.delete(b.kind);
    undeclare();
  };
}
for (const b of MORE) registerBackend(b);

/** Everything that is asked of a kind of policy. Throws RangeError for one that is not registered. */
export function backendOf(kind: PolicyKind): Backend {
  const found = backends.get(kind);
  if (!found) throw new RangeError(`there is no policy of kind "${kind}"`);
  return found;
}
