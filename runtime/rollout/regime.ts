/**
 * Which orders may start now: the barrier, if any, between rollouts
 * (runtime/rollout/README.md#rollout-wise-scheduling). All three regimes implement the same interface for the order
 * queue; scheduler, planner, ledger and model pool are the same code in each of them.
 *
 * - `rollout`: the unit is one rollout; a free desktop takes the next order at once
 * - `task`: the unit is one group; its rollouts start together, and its desktops are free again when the last of them
 *   has ended
 * - `batch`: the unit is one batch; when all its rollouts have ended it is trained and the weights are published, then
 *   the next one begins
 *
 * Pure: no clock, no promises. A group is open until it is curated, so a retried rollout counts toward its group's
 * barrier.
 */
import { traitsOf, type RunConfig } from '../config/index.js';
import type { GroupId } from '../domain/index.js';
import { id } from '../domain/index.js';
import type { RolloutOrder } from '../data/types.js';

export type Regime = 'rollout' | 'task' | 'batch';
/** The only parts of an order that the gate reads. */
export type GatedOrder = Pick<RolloutOrder, 'group' | 'groupSize'>;

export interface RegimeGate {
  readonly regime: Regime;
  /** Index of the first waiting order that may start now; -1 when none may. */
  next(waiting: readonly GatedOrder[]): number;
  /** How many of the waiting orders may start now. */
  admissible(waiting: readonly GatedOrder[]): number;
  /** Whether an order of a new group could start; otherwise only orders of open groups are fetched. */
  mayOpen(waiting: readonly GatedOrder[]): boolean;
  started(order: GatedOrder): void;
  /** Groups whose end the gate waits for. */
  readonly open: ReadonlySet<GroupId>;
  /**
   * The group was curated or dropped: none of its rollouts runs or will be retried. True when this lets other orders
   * start.
   */
  closed(group: GroupId): boolean;
  /** `batch`: all rollouts of the batch have ended and it waits for `synced`. Always false in the other regimes. */
  readonly training: boolean;
  /** The batch was trained (or had nothing to train) and the replicas have its weights. */
  synced(): void;
}

export interface GateOptions {
  readonly regime: Regime;
  /** Desktops. */
  readonly slots: number;
  /** `batch`: groups of one batch. */
  readonly groups: number;
}

/** Groups that an earlier part of the run has opened, and those of them that are open. */
export interface EarlierGroups {
  readonly opened: number;
  readonly open: readonly GroupId[];
}

/** `earlier`: with it, regime `batch` continues the batch that was being rolled out. */
export function regimeGate(o: GateOptions, earlier?: EarlierGroups): RegimeGate {
  switch (o.regime) {
    case 'rollout':
      return rolloutGate();
    case 'task':
      return taskGate(o.slots);
    case 'batch':
      return batchGate(Math.max(1, o.groups), earlier);
  }
}

const NO_GROUPS: ReadonlySet<GroupId> = new Set();

function rolloutGate(): RegimeGate {
  return {
    regime: 'rollout',
    open: NO_GROUPS,
    training: false,
    next: (waiting) => (waiting.length > 0 ? 0 : -1),
    admissible: (waiting) => waiting.length,
    mayOpen: () => true,
    started: () => undefined,
    closed: () => false,
    synced: () => undefined,
  };
}

interface Admissible {
  /** Indices of the waiting orders that may start now. */
  readonly indices: readonly number[];
  /** A group has to wait for free desktops. */
  readonly blocked: boolean;
}

/** The waiting orders of open groups, and of the next groups that fit into `room` desktops as a whole. */
function admissibleGroups(waiting: readonly GatedOrder[], open: ReadonlySet<GroupId>, room: number): Admissible {
  const joined = new Set<GroupId>(),
    indices: number[] = [];
  let left = room,
    blocked = false;
  for (const [i, o] of waiting.entries()) {
    if (!open.has(o.group) && !joined.has(o.group)) {
      const alone = open.size + joined.size === 0;
      // Groups start in order: if small groups could overtake the one that waits for room, it might never start.
      if (blocked || (o.groupSize > left && !alone)) {
        blocked = true;
        continue;
      }
      joined.add(o.group);
      left -= o.groupSize;
    }
    indices.push(i);
  }
  return { indices, blocked };
}

/**
 * A group holds as many desktops as it has rollouts until it closes; one larger than all desktops together starts
 * alone.
 */
function taskGate(slots: number): RegimeGate {
  const size = new Map<GroupId, number>(),
    open = new Set<GroupId>();
  let held = 0;
  const scan = (waiting: readonly GatedOrder[]): Admissible => admissibleGroups(waiting, open, slots - held);
  return {
    regime: 'task',
    open,
    training: false,
    next: (waiting) => scan(waiting).indices[0] ?? -1,
    admissible: (waiting) => scan(waiting).indices.length,
    mayOpen: (waiting) => !scan(waiting).blocked,
    started(o) {
      if (open.has(o.group)) return;
      open.add(o.group);
      size.set(o.group, o.groupSize);
      held += o.groupSize;
    },
    closed(group) {
      if (!open.delete(group)) return false;
      held -= size.get(group)!;
      size.delete(group);
      return true;
    },
    synced: () => undefined,
  };
}

function batchGate(groups: number, earlier: EarlierGroups = { opened: 0, open: [] }): RegimeGate {
  const open = new Set<GroupId>(earlier.open),
    batch = new Set<GroupId>(earlier.open);
  // A batch is a fixed number of groups, opened in order: groups of the present batch that have ended count, too.
  const begun = earlier.opened === 0 ? 0 : ((earlier.opened - 1) % groups) + 1;
  for (let n = 0; batch.size < begun; n++) batch.add(id<GroupId>(`ended ${n}`));
  let training = open.size === 0 && batch.size === groups;
  const may = (group: GroupId, joined: ReadonlySet<GroupId>): boolean =>
    !training && (batch.has(group) || joined.has(group) || batch.size + joined.size < groups);
  const scan = (
    waiting: readonly GatedOrder[],
  ): { readonly first: number; readonly n: number; readonly joined: ReadonlySet<GroupId> } => {
    const joined = new Set<GroupId>();
    let first = -1,
      n = 0;
    for (const [i, o] of waiting.entries()) {
      if (!may(o.group, joined)) continue;
      if (!batch.has(o.group)) joined.add(o.group);
      if (n++ === 0) first = i;
    }
    return { first, n, joined };
  };
  return {
    regime: 'batch',
    open,
    get training() {
      return training;
    },
    next: (waiting) => scan(waiting).first,
    admissible: (waiting) => scan(waiting).n,
    mayOpen: (waiting) => !training && batch.size + scan(waiting).joined.size < groups,
    started(o) {
      if (!batch.has(o.group)) {
        batch.add(o.group);
        open.add(o.group);
      }
    },
    closed(group) {
      if (!open.delete(group)) return false;
      if (open.size === 0 && batch.size === groups) training = true;
      return training;
    },
    synced() {
      if (!training) return;
      training = false;
      batch.clear();
    },
  };
}

/**
 * The barrier between rollouts that a run uses. Without a trainer nothing ends a batch, so regime `batch` becomes
 * `rollout`; a batch larger than the staleness bound admits would never fill, so its size is limited.
 */
export function gateOptions(c: RunConfig): GateOptions {
  const { batchGroups } = c.trainer,
    { enabled, eta } = c.curation.staleness,
    wanted = c.rollout.batchGroups || batchGroups;
  const regime = !traitsOf(c.policy.kind).trained && c.rollout.regime === 'batch' ? 'rollout' : c.rollout.regime;
  return { regime, slots: c.desktops.count, groups: enabled ? Math.min(wanted, (eta + 1) * batchGroups) : wanted };
}
