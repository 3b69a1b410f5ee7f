/** The messages between the daemon and a replica process (child_process IPC, 'advanced' serialization). Pure types. */
import type { EmbeddedPolicySpec, RunError } from '../../domain/index.js';
import type { ReplicaAnswer, ReplicaRequest, WeightsRef } from '../types.js';

export type ToReplica =
  | {
      readonly type: 'open';
      readonly spec: EmbeddedPolicySpec;
      readonly graph: string;
      readonly weights: WeightsRef;
      /** Alternatives per choice, and per position choice. */
      readonly top: number;
      readonly topPlaces: number;
    }
  | { readonly type: 'decide'; readonly call: number; readonly request: ReplicaRequest }
  | { readonly type: 'swap'; readonly call: number; readonly weights: WeightsRef }
  /** Finish what was asked, release the session, end. */
  | { readonly type: 'close' };

export type FromReplica =
  /** Every second (`runtime/concurrency/pulse.ts`). */
  | { readonly type: 'alive' }
  | { readonly type: 'ready' }
  | { readonly type: 'answer'; readonly call: number; readonly answer: ReplicaAnswer }
  | { readonly type: 'swapped'; readonly call: number }
  /** An error without `call` means that the replica could not open, and exits. */
  | { readonly type: 'error'; readonly call?: number; readonly error: RunError };
