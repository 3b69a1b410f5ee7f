import { isAssisted, isError, timesOf, type JournalEvent, type StoredEvent } from '../data/events.js';
import type { GroupView, RunEvent, RunEventType, TrajectoryRow } from '../protocol/types.js';
import { laneOfRecord } from '../queries/lanes.js';
import { evalPoint } from '../queries/overview.js';
import { stepView, type Interpreter } from '../queries/steps.js';
import { advantagesOf } from '../queries/trajectory.js';

/** Which journal records become which event; all others are not for the UI. */
export const eventTypes: Readonly<Partial<Record<JournalEvent['type'], RunEventType>>> = {
  'rollout.started': 'started',
  'trajectory.started': 'started',
  'rollout.step': 'step',
  'trajectory.recorded': 'ended',
  'rollout.retired': 'ended',
  'group.formed': 'group',
  'group.dropped': 'group',
  'batch.trained': 'trained',
  metrics: 'metrics',
  eval: 'eval',
  checkpoint: 'checkpoint',
  spans: 'spans',
  log: 'note',
  'run.closed': 'closed',
};

/** Trajectories whose rows the event needs. */
export function rowsNeeded(e: StoredEvent): readonly string[] {
  switch (e.type) {
    case 'rollout.started':
    case 'trajectory.started':
    case 'rollout.retired':
      return [e.rollout];
    case 'rollout.step':
      return e.extra?.labels ? [] : [e.rollout];
    case 'trajectory.recorded':
      return [e.head.id];
    case 'group.formed':
      return [...e.members.map((m) => m.rollout), ...e.retired.map((r) => r.rollout)];
    case 'group.dropped':
      return e.retired.map((r) => r.rollout);
    default:
      return [];
  }
}

/** Whether an event is about this trajectory: its own, and what its group and batch made of it. */
export function concerns(e: StoredEvent, rollout: string): boolean {
  if (e.type === 'batch.trained')
    return (
      (e.rollouts as readonly string[]).includes(rollout) ||
      (e.trajectories?.some((t) => t.rollout === rollout) ?? false)
    );
  if (e.type === 'group.formed')
    return e.members.some((m) => m.rollout === rollout) || e.retired.some((r) => r.rollout === rollout);
  if (e.type === 'group.dropped') return e.retired.some((r) => r.rollout === rollout);
  if (e.type === 'trajectory.recorded') return e.head.id === rollout;
  return 'rollout' in e ? e.rollout === rollout : e.type === 'run.closed';
}

/**
 * A journal record as subscribers get it. `rows` are those of `rowsNeeded` as they are now; what they were then is put
 * back. Pure.
 */
export function toRunEvent(
  e: StoredEvent,
  rows: ReadonlyMap<string, TrajectoryRow>,
  interpreter: Interpreter,
): RunEvent | undefined {
  const base = { seq: e.seq, at: e.at };
  switch (e.type) {
    case 'rollout.started':
    case 'trajectory.started': {
      const row = rows.get(e.rollout);
      return row && { ...base, type: 'started', row: startedRow(e, row), desktop: e.desktop };
    }
    case 'rollout.step':
      return {
        ...base,
        type: 'step',
        rollout: e.rollout,
        step: stepView(
          { step: e.step, at: e.at, extra: e.extra, instruction: rows.get(e.rollout)?.instruction ?? '' },
          interpreter,
        ),
      };
    case 'trajectory.recorded':
      return { ...base, type: 'ended', row: endedRow(e, rows.get(e.head.id)) };
    case 'rollout.retired': {
      const row = retiredRow(e, rows.get(e.rollout));
      return row && { ...base, type: 'ended', row };
    }
    case 'group.formed':
      return { ...base, ...formed(e, rows, interpreter) };
    case 'group.dropped':
      return { ...base, type: 'group', group: droppedGroup(e, rows), injected: 0 };
    case 'batch.trained':
      return { ...base, type: 'trained', batch: e.batch, version: e.version, rollouts: e.rollouts, path: e.checkpoint };
    case 'metrics':
      return {
        ...base,
        type: 'metrics',
        source: e.source,
        version: e.version,
        values: e.values,
        lists: e.lists,
      };
    case 'eval': {
      const point = evalPoint(e);
      return point && { ...base, type: 'eval', point };
    }
    case 'checkpoint':
      return { ...base, type: 'checkpoint', version: e.version, path: e.dir };
    case 'spans': {
      const { lane, syncs } = laneOfRecord(e);
      return { ...base, type: 'spans', lanes: [lane], syncs };
    }
    case 'log':
      return { ...base, type: 'note', level: e.level, message: e.message };
    case 'run.closed':
      return { ...base, type: 'closed', reason: e.reason };
    default:
      return undefined;
  }
}

type EventOfType<T extends StoredEvent['type']> = Extract<StoredEvent, { type: T }>;

function formed(
  e: EventOfType<'group.formed'>,
  rows: ReadonlyMap<string, TrajectoryRow>,
  interpreter: Interpreter,
): Omit<Extract<RunEvent, { type: 'group' }>, 'seq' | 'at'> {
  return {
    type: 'group',
    group: formedGroup(e, rows, interpreter),
    injected: e.members.filter((m) => m.injected).length,
    keptShare: keptShare(e.members.flatMap((m) => m.keep)),
  };
}
const keptShare = (keep: readonly boolean[]): number | undefined =>
  keep.length > 0 ? keep.filter(Boolean).length / keep.length : undefined;

function startedRow(e: EventOfType<'rollout.started' | 'trajectory.started'>, row: TrajectoryRow): TrajectoryRow {
  const { rollout, task, family, provenance, group, cap } = row;
  return {
    rollout,
    task,
    family,
    instruction: e.instruction ?? row.instruction,
    outcome: 'running',
    provenance,
    state: 'running',
    group,
    steps: 0,
    cap,
    startedAt: e.at,
  };
}
/** Undefined for an order that was never begun, which is no trajectory, and for one that had its verdict before. */
function retiredRow(e: EventOfType<'rollout.retired'>, row: TrajectoryRow | undefined): TrajectoryRow | undefined {
  if (row?.startedAt === undefined || row.outcome === 'success' || row.outcome === 'failure') return undefined;
  return { ...row, outcome: 'error', errorKind: e.reason, state: 'retired', endedAt: row.endedAt ?? e.at };
}
const droppedGroup = (e: EventOfType<'group.dropped'>, rows: ReadonlyMap<string, TrajectoryRow>): GroupView => ({
  id: e.group,
  family: e.family,
  task: e.task,
  state: `dropped: ${e.reason}`,
  members: e.retired.flatMap((r) => member(rows, r.rollout, { injected: false, retired: r.reason })),
});

type Recorded = Extract<StoredEvent, { type: 'trajectory.recorded' }>;
function endedRow({ head: h, at }: Recorded, row: TrajectoryRow | undefined): TrajectoryRow {
  const { outcome } = h,
    own = h.provenance.kind === 'rollout';
  return {
    ...row,
    rollout: h.id,
    task: h.task,
    family: h.family,
    instruction: h.instruction,
    provenance: h.provenance.kind,
    outcome: outcome.kind,
    state: row?.state ?? (own ? 'recorded' : 'kept'),
    steps: h.steps,
    cap: h.cap,
    ...(isError(outcome)
      ? { errorKind: outcome.error.kind }
      : { reward: outcome.reward, truncated: outcome.truncated ? true : undefined }),
    group: h.group,
    ...timesOf(h, at, row?.startedAt),
    assisted: isAssisted(h) ? true : undefined,
    ...(h.branch ? { branch: `${h.branch.of}@${h.branch.step}` } : {}),
    ...(h.provenance.kind === 'hindsight' ? { relabelledFrom: h.provenance.instruction } : {}),
  };
}

function formedGroup(
  e: EventOfType<'group.formed'>,
  rows: ReadonlyMap<string, TrajectoryRow>,
  interpreter: Interpreter,
): GroupView {
  const advantages = advantagesOf(e.members, interpreter);
  return {
    id: e.group,
    family: e.family,
    task: e.task,
    state: 'ready',
    threshold: e.threshold,
    members: [
      ...e.members.flatMap((m) =>
        member(rows, m.rollout, {
          injected: m.injected,
          advantage: advantages.get(m.rollout),
          retired: e.retired.find((r) => r.rollout === m.rollout)?.reason,
        }),
      ),
      ...e.retired
        .filter((r) => !e.members.some((m) => m.rollout === r.rollout))
        .flatMap((r) => member(rows, r.rollout, { injected: false, retired: r.reason })),
    ],
  };
}
function member(
  rows: ReadonlyMap<string, TrajectoryRow>,
  rollout: string,
  m: { injected: boolean; advantage?: number | undefined; retired?: string | undefined },
): GroupView['members'] {
  const row = rows.get(rollout);
  if (!row) return [];
  return [
    {
      rollout,
      outcome: row.outcome,
      reward: row.reward,
      advantage: m.advantage,
      steps: row.steps,
      injected: m.injected,
      retired: m.retired,
    },
  ];
}
