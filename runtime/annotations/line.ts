import type { AnnotationOp, Replay } from '../domain/index.js';

/**
 * A record of the annotation log about one recorded trajectory. `part`: first step of the part it is about; 0 for the
 * trajectory itself.
 */
export type AnnotationRecord =
  | {
      readonly type: 'edit';
      readonly rollout: string;
      readonly part: number;
      readonly revision: number;
      /** Revision that was shown. */
      readonly base: number;
      readonly at: number;
      readonly ops: readonly AnnotationOp[];
    }
  /** Undo and redo. */
  | { readonly type: 'head'; readonly rollout: string; readonly revision: number; readonly at: number }
  /** `acted` tells which edits it acted out (facts.ts, actedKey). */
  | {
      readonly type: 'replay';
      readonly rollout: string;
      readonly part: number;
      readonly acted: string;
      readonly replay: Replay;
    };
export type EditRecord = Extract<AnnotationRecord, { type: 'edit' }>;
export type ReplayRecord = Extract<AnnotationRecord, { type: 'replay' }>;

/** The revisions of one recorded trajectory and of the parts it was split into, which share them. */
export interface Line {
  /** Oldest first; those behind `head` were undone. */
  readonly edits: readonly EditRecord[];
  /** Revision shown; 0 is the trajectory as recorded. */
  readonly head: number;
  /** Highest revision ever used: none is used twice, so `<rollout>@<revision>` keeps its meaning for ever. */
  readonly last: number;
  readonly replays: readonly ReplayRecord[];
}
export const emptyLine: Line = { edits: [], head: 0, last: 0, replays: [] };

/**
 * Applies one record. Never fails: a record that does not fit (the one it builds on was damaged) is applied as far as
 * possible.
 */
export function applyRecord(l: Line, r: AnnotationRecord): Line {
  switch (r.type) {
    case 'edit':
      return r.revision <= l.last
        ? l
        : { ...l, edits: [...l.edits.filter((e) => e.revision <= r.base), r], head: r.revision, last: r.revision };
    case 'head':
      return r.revision === 0 || l.edits.some((e) => e.revision === r.revision) ? { ...l, head: r.revision } : l;
    case 'replay':
      return { ...l, replays: [...l.replays, r] };
  }
}

/** The edits that are shown, oldest first. */
export const shown = (l: Line): readonly EditRecord[] => l.edits.filter((e) => e.revision <= l.head);
/** The revision an undo shows; undefined when there is nothing to undo. */
export const before = (l: Line): number | undefined => (l.head === 0 ? undefined : (shown(l).at(-2)?.revision ?? 0));
/** The revision a redo shows; undefined when nothing was undone. */
export const after = (l: Line): number | undefined => l.edits.find((e) => e.revision > l.head)?.revision;
