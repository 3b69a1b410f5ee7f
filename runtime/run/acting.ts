import { backendOf, type BackendRequest } from './backends/index.js';
import { StartedParts, startStopped } from './backends/startedParts.js';
import type { Policy } from '../policy/types.js';

/** A policy that acts and learns nothing: no trainer, no pool of desktops. */
export interface ActingPolicy {
  readonly policy: Policy;
  close(): Promise<void>;
}

/**
 * Starts what a policy needs to decide. Rejects with `trainer.invalid` for a checkpoint that is damaged or of another
 * policy, `policy.remote` or `config.invalid` for a model that cannot be asked, `cancelled`; nothing is left then.
 */
export async function startActing(r: BackendRequest): Promise<ActingPolicy> {
  const parts = new StartedParts(r.signal);
  try {
    const backend = backendOf(r.config.policy.kind),
      policy = backend.act ? await backend.act(r, parts) : (await backend.start(r, parts)).policy;
    return { policy, close: () => parts.close() };
  } catch (e) {
    await parts.close();
    throw r.signal.aborted ? startStopped(e) : e;
  }
}
