import { StudioError, id } from '../domain/index.js';
import type { BatchId, GroupId, RolloutId, Trajectory } from '../domain/index.js';
import type { EventOf, JournalEvent } from './events.js';
import { poolContent } from './experiencePool.js';
import { batchNumber, type DataState, type OpenBatch } from './state.js';
import { RunStore } from './store/runStore.js';
import type { RolloutOrder } from './types.js';

/** What resuming a run found and did, for the log. */
export interface RecoveryReport {
  readonly events: number;
  /** Events that were applied unchecked because the events they refer to are damaged. */
  readonly skipped: number;
  /** Rollouts that were queued or running when the run ended; they are handed out again. */
  readonly lost: readonly RolloutId[];
  /** The lost rollouts whose last record was damaged: their desktops had already begun another rollout. */
  readonly corrupt: readonly RolloutId[];
  /** Number of claimed batches whose groups wait again. */
  readonly released: number;
  /** Trajectories that could not be read back. */
  readonly unreadable: readonly RolloutId[];
}

/**
 * Opens a run folder and applies its journal to `state`. After a damaged stretch an event may refer to one that is
 * lost; it is applied unchecked, so that nothing is trained twice and the ledger still adds up.
 */
export async function openReplayed(
  dir: string,
  o: Parameters<typeof RunStore.open>[1],
  state: DataState,
): Promise<{ readonly store: RunStore; readonly skipped: number }> {
  let skipped = 0;
  const store = await RunStore.open(
    dir,
    o,
    (e) => {
      try {
        state.apply(e);
      } catch (err) {
        if (!(err instanceof StudioError)) throw err;
        state.applyDamaged(e);
        skipped++;
      }
    },
    // Most of a journal does not change the state.
    ['rollout.step', 'spans', 'trajectory.started', 'metrics', 'eval', 'log'],
  );
  return { store, skipped };
}

/**
 * Adjusts replayed state to a restart: nothing runs, nothing is claimed, and every trajectory that may still be needed
 * is in memory. Returns the events for that, not yet applied. The only change it makes itself is to set the content
 * hash of pool entries of an older version.
 */
export async function recover(
  store: Pick<RunStore, 'readTrajectory'>,
  state: DataState,
  replayed: {
    readonly events: number;
    readonly skipped: number;
    /** Records that the journal lacks. */
    readonly missing?: number;
  },
  deterministic = false,
): Promise<Recovered> {
  const { missing = 0, ...counts } = replayed,
    cut = [...state.ledger.rollouts('queued'), ...state.ledger.rollouts('running')],
    // Rollouts whose order is lost in a damaged journal cannot begin again.
    again = deterministic ? cut.filter((r) => state.orders.has(r)) : [],
    lost = cut.filter((r) => !again.includes(r)),
    corrupt = missing > 0 ? lost.filter((r) => state.overtaken.has(r)) : [];
  const reader = new TrajectoryReader(store),
    members = await unreadableMembers(reader, state),
    groups = [...groupsOfUnsaid(state), ...(await unreadableGroups(reader, state))],
    // A deterministic run keeps its claims, except those that lose a group.
    going = new Set(groups.map((e) => e.group)),
    claims = [...state.claimed.values()],
    released = claims.filter(
      (b) => !deterministic || trainedUnsaid(state, b) || b.groups.some((g) => going.has(g.group)),
    );
  const events: JournalEvent[] = [
    ...again.flatMap((rollout) => restarted(state, rollout)),
    ...lost.map((rollout) =>
      retiredAsLost(
        rollout,
        state.orders.get(rollout)?.group ?? id<GroupId>(''),
        corrupt.includes(rollout) ? 'corrupt' : undefined,
      ),
    ),
    ...releasedBatches(state, released),
    ...members,
    ...groups,
    ...(await unreadableEntries(reader, state)),
  ];
  for (const e of state.pool.entries()) {
    const t = reader.trajectories.get(e.id);
    if (t && e.content === undefined) state.pool.identify(e.id, poolContent(t));
  }
  return {
    report: { ...counts, lost: cut, corrupt, released: released.length, unreadable: reader.unreadable },
    events,
    trajectories: reader.trajectories,
    again: again.map((r) => state.orders.get(r)!),
    claimed: claims.filter((b) => !released.includes(b)).map((b) => b.batch),
  };
}

export interface Recovered {
  readonly report: RecoveryReport;
  readonly events: readonly JournalEvent[];
  readonly trajectories: Map<RolloutId, Trajectory>;
  /**
   * Deterministic runs only: orders that begin again, and batches that are still claimed and whole, to be trained as
   * they are.
   */
  readonly again: readonly RolloutOrder[];
  readonly claimed: readonly BatchId[];
}

/** The events that begin a running rollout again; a rollout that had not started yet still waits and needs none. */
const restarted = (state: DataState, rollout: RolloutId): JournalEvent[] =>
  state.ledger.state(rollout)?.at === 'running'
    ? [{ type: 'rollout.restarted', rollout, group: state.orders.get(rollout)!.group }]
    : [];

/** Reads each trajectory once, and remembers those that cannot be read. */
class TrajectoryReader {
  readonly trajectories = new Map<RolloutId, Trajectory>();
  readonly unreadable: RolloutId[] = [];
  readonly #store: Pick<RunStore, 'readTrajectory'>;

  constructor(store: Pick<RunStore, 'readTrajectory'>) {
    this.#store = store;
  }

  /** Whether it is in memory now. Rejects when reading fails for a reason other than damage. */
  async load(rollout: RolloutId): Promise<boolean> {
    if (this.trajectories.has(rollout)) return true;
    const t = await this.#store.readTrajectory(rollout).catch((e: unknown) => {
      if (e instanceof StudioError && e.kind === 'store.damaged') return undefined;
      throw e;
    });
    if (t) this.trajectories.set(rollout, t);
    else this.unreadable.push(rollout);
    return t !== undefined;
  }
}

const retiredAsLost = (rollout: RolloutId, group: GroupId, cause?: 'corrupt'): JournalEvent => ({
  type: 'rollout.retired',
  rollout,
  group,
  reason: 'lost',
  ...(cause ? { cause } : {}),
});

type GroupRetired = EventOf<'group.retired'>;
/**
 * Batches are trained in order: a batch that is still claimed although a later one was trained was trained, too, and
 * the record of that is damaged.
 */
const trainedUnsaid = ({ trainedBatch }: DataState, { batch }: OpenBatch): boolean => batchNumber(batch) < trainedBatch;
/** Retires the groups of such batches: they must not be trained again. */
function groupsOfUnsaid(state: DataState): GroupRetired[] {
  const { claimed, ledger } = state;
  return [...claimed.values()]
    .filter((b) => trainedUnsaid(state, b))
    .flatMap((b) =>
      b.groups.map((g): GroupRetired => ({
        type: 'group.retired',
        group: g.group,
        rollouts: g.members.flatMap((m) =>
          !m.injected && ledger.state(m.rollout)?.at === 'claimed' ? [m.rollout] : [],
        ),
        reason: 'lost',
        whole: true,
        cause: 'corrupt',
      })),
    );
}

/** Newest claim first: each is put at the front of the queue, so the oldest ends up first. */
const releasedBatches = (state: DataState, released: readonly OpenBatch[]): JournalEvent[] =>
  [...released].reverse().map((b) => releaseOf(state, b, 'the run ended before it was trained'));

/** Gives a batch back untrained. An injected rollout may be claimed too, but by the group that rolled it out. Pure. */
export function releaseOf({ ledger }: DataState, { batch, groups }: OpenBatch, reason: string): JournalEvent {
  const mine = new Set(ledger.claimedBy(batch));
  return {
    type: 'batch.released',
    batch,
    reason,
    groups: groups.map((g) => ({
      group: g.group,
      rollouts: g.members.flatMap((m) => (!m.injected && mine.has(m.rollout) ? [m.rollout] : [])),
    })),
  };
}

/** Members of open groups. */
async function unreadableMembers(reader: TrajectoryReader, state: DataState): Promise<JournalEvent[]> {
  const events: JournalEvent[] = [];
  for (const group of state.planner.state().open)
    for (const [rollout, at] of Object.entries(group.members) as [RolloutId, string][])
      if (at === 'recorded' && !(await reader.load(rollout)))
        events.push(retiredAsLost(rollout, group.group, 'corrupt'));
  return events;
}

/** A group that lost a member no longer has the baseline that it was curated with: the whole group is retired. */
async function unreadableGroups(reader: TrajectoryReader, state: DataState): Promise<GroupRetired[]> {
  const { ledger } = state,
    events: GroupRetired[] = [];
  for (const g of [
    ...state.ready.values(),
    ...[...state.claimed.values()].flatMap((b) => (trainedUnsaid(state, b) ? [] : b.groups)),
  ]) {
    const there = await Promise.all(g.members.map((m) => reader.load(m.rollout)));
    if (there.includes(false))
      events.push({
        type: 'group.retired',
        group: g.group,
        rollouts: g.members.flatMap((m) =>
          !m.injected && ['grouped', 'claimed'].includes(ledger.state(m.rollout)?.at ?? '') ? [m.rollout] : [],
        ),
        reason: 'lost',
        whole: true,
        cause: 'corrupt',
      });
  }
  return events;
}

async function unreadableEntries(reader: TrajectoryReader, state: DataState): Promise<JournalEvent[]> {
  const events: JournalEvent[] = [];
  for (const e of state.pool.entries())
    if (!(await reader.load(e.id)))
      events.push({ type: 'pool.removed', entry: e.id, reason: 'it cannot be read back' });
  return events;
}
