/**
 * Which replica takes a call and which gets new weights next: the model pool's decisions as pure functions.
 *
 * Per-worker sync (runtime/rollout/README.md#per-worker-sync): at most one replica is out of service because of a sync,
 * and none is taken out while another is down, so a sync alone never reduces capacity below (G-1)/G. The global mode,
 * for comparison, takes all of them out together.
 */
import type { PolicyVersion, ReplicaId } from '../domain/index.js';

/**
 * - admitting: takes calls
 * - draining: takes no calls, finishes those it has, then swaps
 * - swapping: reads new weights
 * - down: crashed or starting
 * - dead: given up after too many crashes
 */
export type ReplicaPhase = 'admitting' | 'draining' | 'swapping' | 'down' | 'dead';
export interface ReplicaView {
  readonly id: ReplicaId;
  readonly phase: ReplicaPhase;
  readonly version: PolicyVersion;
  readonly inFlight: number;
  /** Sessions routed to it. */
  readonly sessions: number;
  /** Calls it can serve at the same time now, where it knows. */
  readonly limit?: number | undefined;
}
export type PublishMode = 'per-replica' | 'global';

export interface SyncStep {
  /** These take no new calls from now on. */
  readonly drain: readonly ReplicaId[];
  /** These have drained; swap their weights now. */
  readonly swap: readonly ReplicaId[];
  readonly done: boolean;
}

const WAIT: SyncStep = { drain: [], swap: [], done: false };

/** The actions to take now so that every living replica gets `target`; called again after every change. */
export function planSync(replicas: readonly ReplicaView[], target: PolicyVersion, mode: PublishMode): SyncStep {
  const living = replicas.filter((r) => r.phase !== 'dead');
  const stale = living.filter((r) => r.version !== target);
  if (stale.length === 0) return { ...WAIT, done: true };
  if (mode === 'global') {
    const admitting = stale.filter((r) => r.phase === 'admitting');
    if (admitting.length > 0) return { ...WAIT, drain: admitting.map((r) => r.id) };
    const out = stale.filter((r) => r.phase === 'draining');
    return out.length > 0 && out.every((r) => r.inFlight === 0) ? { ...WAIT, swap: out.map((r) => r.id) } : WAIT;
  }
  const drained = stale.find((r) => r.phase === 'draining' && r.inFlight === 0);
  if (drained) return { ...WAIT, swap: [drained.id] };
  if (living.some((r) => r.phase !== 'admitting')) return WAIT;
  // The one that drains soonest first.
  const next = stale.reduce((a, b) => (b.inFlight < a.inFlight ? b : a));
  return { ...WAIT, drain: [next.id] };
}

/**
 * The replica for a call: the session's own while it has at most `slack` more calls in flight than the idlest, else the
 * one with the fewest in flight (ties: fewest sessions, then order). Undefined means wait.
 */
export function route(
  replicas: readonly ReplicaView[],
  preferred: ReplicaId | undefined,
  o: { readonly depth: number; readonly slack: number },
): ReplicaId | undefined {
  const open = replicas.filter((r) => r.phase === 'admitting' && r.inFlight < Math.min(o.depth, r.limit ?? o.depth));
  if (open.length === 0) return undefined;
  const least = open.reduce((a, b) =>
    b.inFlight < a.inFlight || (b.inFlight === a.inFlight && b.sessions < a.sessions) ? b : a,
  );
  const own = open.find((r) => r.id === preferred);
  return own && own.inFlight <= least.inFlight + o.slack ? own.id : least.id;
}
