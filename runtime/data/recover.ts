import { StudioError } from '../domain/index.js';
import type { GroupId, RolloutId, Trajectory } from '../domain/index.js';
import type { JournalEvent } from './events.js';
import { poolContent } from './experiencePool.js';
import type { DataState } from './state.js';
import type { RunStore } from './store/runStore.js';

/** What resuming a run found and did, for the log. */
export interface RecoveryReport {
  readonly events: number;
  /** Events that no longer fit because damage swallowed what they refer to. */
  readonly skipped: number;
  /** Rollouts that were queued or running when the run ended; they are handed out again. */
  readonly lost: readonly RolloutId[];
  /** Claimed batches whose groups wait again. */
  readonly released: number;
  /** Trajectories that could not be read back. */
  readonly unreadable: readonly RolloutId[];
}

/**
 * Brings replayed state to what is true after a restart: nothing runs, nothing is claimed, and every trajectory that
 * may still be needed is in memory. Returns the events that say so (not yet applied) and changes nothing itself, but
 * that pool entries then say what they do.
 */
export async function recover(
  store: Pick<RunStore, 'readTrajectory'>,
  state: DataState,
  replayed: { readonly events: number; readonly skipped: number },
): Promise<{ report: RecoveryReport; events: JournalEvent[]; trajectories: Map<RolloutId, Trajectory> }> {
  const { ledger } = state,
    events: JournalEvent[] = [],
    trajectories = new Map<RolloutId, Trajectory>();
  const lost = [...ledger.rollouts('queued'), ...ledger.rollouts('running')];
  for (const rollout of lost) {
    const group = state.orders.get(rollout)?.group ?? ('' as GroupId);
    events.push({ type: 'rollout.retired', rollout, group, reason: 'lost' });
  }
  // Newest claim first: each goes in front, so the oldest ends foremost.
  for (const b of [...state.claimed.values()].reverse()) {
    const mine = new Set(ledger.claimedBy(b.batch));
    events.push({
      type: 'batch.released',
      batch: b.batch,
      reason: 'the run ended before it was trained',
      groups: b.groups.map((g) => ({
        group: g.group,
        rollouts: g.members.flatMap((m) => (!m.injected && mine.has(m.rollout) ? [m.rollout] : [])),
      })),
    });
  }

  const unreadable: RolloutId[] = [];
  const load = async (rollout: RolloutId): Promise<boolean> => {
    if (trajectories.has(rollout)) return true;
    const t = await store.readTrajectory(rollout).catch((e: unknown) => {
      if (e instanceof StudioError && e.kind === 'store.damaged') return undefined;
      throw e;
    });
    if (t) trajectories.set(rollout, t);
    else unreadable.push(rollout);
    return t !== undefined;
  };
  for (const group of state.planner.state().open) {
    for (const [rollout, at] of Object.entries(group.members) as [RolloutId, string][]) {
      if (at === 'recorded' && !(await load(rollout)))
        events.push({ type: 'rollout.retired', rollout, group: group.group, reason: 'lost' });
    }
  }
  for (const g of [...state.ready.values(), ...[...state.claimed.values()].flatMap((b) => b.groups)]) {
    const there = await Promise.all(g.members.map((m) => load(m.rollout)));
    // A group that lost a member has another baseline than the one it was curated with: it goes whole.
    if (there.includes(false))
      events.push({
        type: 'group.retired',
        group: g.group,
        rollouts: g.members.flatMap((m) =>
          !m.injected && ['grouped', 'claimed'].includes(ledger.state(m.rollout)?.at ?? '') ? [m.rollout] : [],
        ),
        reason: 'lost',
        whole: true,
      });
  }
  for (const e of state.pool.entries())
    if (!(await load(e.id))) events.push({ type: 'pool.removed', entry: e.id, reason: 'it cannot be read back' });
  for (const e of state.pool.entries()) {
    const t = trajectories.get(e.id);
    if (t && e.content === undefined) state.pool.identify(e.id, poolContent(t));
  }
  return { report: { ...replayed, lost, released: state.claimed.size, unreadable }, events, trajectories };
}
