/** The nodes of the trees, which a command finds in its argument when a menu of a view called it. */
import type {
  DesktopRow,
  EvalPoint,
  PoolEntryRow,
  PoolFamily,
  PoolView,
  QueueItem,
  QueueView,
  RunPath,
  TaskRow,
  TrajectoryRow,
} from '../../runtime/protocol/types.js';
import type { TaskGroup } from '../../runtime/protocol/shared.js';
import type { ListedRun } from '../model/savedRuns.js';

export type Node =
  | { readonly kind: 'run'; readonly run: RunPath; readonly summary: ListedRun }
  | { readonly kind: 'queue'; readonly view: QueueView }
  | { readonly kind: 'queued'; readonly item: QueueItem }
  | { readonly kind: 'runGroup'; readonly group: string; readonly runs: readonly ListedRun[] }
  | { readonly kind: 'eval'; readonly run: RunPath; readonly point: EvalPoint; readonly index: number }
  | { readonly kind: 'checkpoint'; readonly run: RunPath; readonly version: number; readonly path: string }
  | { readonly kind: 'taskGroup'; readonly app: TaskGroup; readonly rows: readonly TaskRow[] }
  | { readonly kind: 'task'; readonly row: TaskRow }
  | { readonly kind: 'desktop'; readonly row: DesktopRow }
  | { readonly kind: 'trajectory'; readonly run: RunPath; readonly row: TrajectoryRow }
  | { readonly kind: 'more' }
  | { readonly kind: 'poolCoverage'; readonly run: RunPath; readonly view: PoolView }
  | { readonly kind: 'poolMissing'; readonly run: RunPath; readonly family: PoolFamily }
  | { readonly kind: 'poolFamily'; readonly run: RunPath; readonly family: PoolFamily }
  | { readonly kind: 'poolEntry'; readonly run: RunPath; readonly entry: PoolEntryRow };
export type NodeOf<K extends Node['kind']> = Extract<Node, { kind: K }>;

/** The argument as a node of this kind: menus pass what was clicked, the palette nothing, other callers anything. */
export function nodeOf<K extends Node['kind']>(arg: unknown, ...kinds: readonly K[]): NodeOf<K> | undefined {
  const kind = typeof arg === 'object' && arg !== null ? (arg as { kind?: unknown }).kind : undefined;
  return kinds.some((k) => k === kind) ? (arg as NodeOf<K>) : undefined;
}

/**
 * Runs and ids of the trajectories that a menu was called on: all that are selected when the one clicked is among them.
 */
export function trajectoriesOf(
  arg: unknown,
  selected?: unknown,
): readonly { readonly run: RunPath; readonly rollout: string }[] {
  const named = (x: unknown): { readonly run: RunPath; readonly rollout: string } | undefined => {
    const n = nodeOf(x, 'trajectory', 'poolEntry');
    return n && { run: n.run, rollout: n.kind === 'trajectory' ? n.row.rollout : n.entry.rollout };
  };
  const all = Array.isArray(selected) ? selected : [],
    one = named(arg);
  if (one && !all.includes(arg)) return [one];
  return all.map(named).filter((x) => x !== undefined);
}
