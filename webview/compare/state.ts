/** Two trajectories, one position in both; pure. */
import type { RunEvent, TrajectoryView } from '../../runtime/protocol/types.js';
import { applyEvents } from '../inspector/state.js';
import type { DaemonState, HostError, InputOf } from '../protocol.js';
import { diverge } from './diverge.js';

export type CompareInput = InputOf<'compare'>;
export type SideName = 'left' | 'right';
export interface Side {
  readonly rollout: string;
  readonly view?: TrajectoryView;
  readonly error?: HostError;
  readonly stale: boolean;
}
export interface CompareState {
  readonly run: string;
  readonly left: Side;
  readonly right: Side;
  /** -1 before there is a step. */
  readonly selected: number;
  /** Whether the reader chose the position; until then it is the first difference. */
  readonly chosen: boolean;
  readonly shot: 'before' | 'after';
  readonly daemon: { readonly state: DaemonState; readonly error?: HostError };
}
export type CompareChange =
  | { readonly type: 'loaded'; readonly side: SideName; readonly view: TrajectoryView }
  | { readonly type: 'failed'; readonly side: SideName; readonly error: HostError }
  | { readonly type: 'choose'; readonly side: SideName; readonly rollout: string }
  | { readonly type: 'swap' }
  | { readonly type: 'events'; readonly events: readonly RunEvent[]; readonly ended?: boolean }
  | { readonly type: 'select'; readonly at: number }
  | { readonly type: 'shot'; readonly shot: 'before' | 'after' }
  | { readonly type: 'daemon'; readonly state: DaemonState; readonly error?: HostError };

export function initialCompare(i: CompareInput, daemon: DaemonState, selected?: number): CompareState {
  return {
    run: i.run,
    left: { rollout: i.left, stale: true },
    right: { rollout: i.right, stale: true },
    selected: selected ?? -1,
    chosen: selected !== undefined,
    shot: 'before',
    daemon: { state: daemon },
  };
}
export const lengthOf = (s: CompareState): number =>
  Math.max(s.left.view?.steps.length ?? 0, s.right.view?.steps.length ?? 0);

export function reduceCompare(s: CompareState, c: CompareChange): CompareState {
  switch (c.type) {
    case 'loaded':
      return s[c.side].rollout === c.view.row.rollout
        ? settle({ ...s, [c.side]: { rollout: s[c.side].rollout, view: c.view, stale: false } })
        : s;
    case 'failed':
      return { ...s, [c.side]: { ...s[c.side], error: c.error, stale: false } };
    case 'choose':
      return s[c.side].rollout === c.rollout
        ? s
        : { ...s, [c.side]: { rollout: c.rollout, stale: true }, chosen: false };
    case 'swap':
      return { ...s, left: s.right, right: s.left };
    case 'events': {
      const next = (x: Side): Side => {
        if (!x.view) return x;
        const { view, stale } = applyEvents(x.view, c.events, c.ended ?? false);
        return view === x.view && !stale ? x : { ...x, view, stale: x.stale || stale };
      };
      const left = next(s.left),
        right = next(s.right);
      return left === s.left && right === s.right ? s : settle({ ...s, left, right });
    }
    case 'select':
      return {
        ...s,
        selected: Math.max(0, Math.min(lengthOf(s) - 1, c.at)),
        chosen: true,
        ...(c.at === s.selected ? {} : { shot: 'before' as const }),
      };
    case 'shot':
      return { ...s, shot: c.shot };
    case 'daemon':
      return { ...s, daemon: { state: c.state, error: c.error } };
  }
}
function settle(s: CompareState): CompareState {
  if (!s.left.view || !s.right.view)
    // One that comes alone is shown, from its first step.
    return (s.left.view ?? s.right.view) && s.selected < 0 ? { ...s, selected: 0 } : s;
  const n = lengthOf(s);
  const selected = s.chosen ? Math.min(s.selected, n - 1) : (diverge(s.left.view.steps, s.right.view.steps)?.at ?? 0);
  return { ...s, selected: Math.min(selected, n - 1) };
}
