/**
 * Edits of one trajectory on their way to disk: a queue, oldest first, of which one is under way. Pure: saver.ts does
 * what `next` says. Nothing made here is ever dropped but by the person: a failed edit waits, one that another window
 * overtook waits to be put on top.
 */
import type { AnnotationOp, AnnotationView, StepView } from '../../runtime/protocol/types.js';
import type { HostError } from '../protocol.js';
import { applyOps, same } from './apply.js';

export type Ops = readonly AnnotationOp[];
export type Job = { readonly kind: 'edit'; readonly ops: Ops } | { readonly kind: 'undo' } | { readonly kind: 'redo' };
export interface Outbox {
  /** The newest revision the daemon sent. */
  readonly view?: AnnotationView;
  readonly jobs: readonly Job[];
  /** Revision the first job is made on. */
  readonly base: number;
  /** The first job is under way. */
  readonly busy: boolean;
  readonly failed?: HostError;
  /** Edits undone before they were sent; the last is put back first. */
  readonly popped: readonly Ops[];
}
/** The part that survives the page. */
export interface KeptEdits {
  readonly base: number;
  readonly edits: readonly Ops[];
}

export const empty: Outbox = { jobs: [], base: 0, busy: false, popped: [] };
export const restored = (k: KeptEdits): Outbox => ({
  ...empty,
  base: k.base,
  jobs: k.edits.map((ops) => ({ kind: 'edit', ops })),
});
export const kept = (b: Outbox): KeptEdits | undefined => {
  const edits = b.jobs.flatMap((j) => (j.kind === 'edit' ? [j.ops] : []));
  return edits.length ? { base: b.base, edits } : undefined;
};
/** Another window made a revision that the waiting edits do not know. */
export const conflicts = (b: Outbox): boolean =>
  b.jobs.length > 0 && !b.busy && b.view !== undefined && b.view.revision !== b.base;

export type SaveState = 'saved' | 'saving' | 'failed' | 'conflict' | 'waiting';
export const saveState = (b: Outbox): SaveState =>
  b.busy
    ? 'saving'
    : b.failed
      ? 'failed'
      : conflicts(b)
        ? 'conflict'
        : b.jobs.length
          ? b.view
            ? 'saving'
            : 'waiting'
          : 'saved';
export const next = (b: Outbox): Job | undefined => (saveState(b) === 'saving' && !b.busy ? b.jobs[0] : undefined);

/** Ops that set the same thing again: the later one wins. */
const subject = (ops: Ops): string =>
  ops
    .map((o) =>
      [o.op, 'step' in o ? o.step : '', o.op === 'action' ? o.action : '', o.op === 'mark' ? o.mark : ''].join(),
    )
    .join(';');
export function edit(b: Outbox, ops: Ops): Outbox {
  const first = b.jobs[0];
  // A refused edit never becomes right by itself: the person's correction goes out in its place.
  if (b.failed?.kind === 'params.invalid' && first?.kind === 'edit' && subject(first.ops) === subject(ops))
    return { ...b, jobs: [{ kind: 'edit', ops }, ...b.jobs.slice(1)], failed: undefined };
  return {
    ...b,
    jobs: [...b.jobs, { kind: 'edit', ops }],
    popped: [],
    ...(b.jobs.length ? {} : { base: b.view?.revision ?? b.base }),
  };
}
export const sending = (b: Outbox): Outbox => ({ ...b, busy: true });

/**
 * The daemon's view, asked for: a newer revision that holds the first waiting edit is that edit, whose answer was lost.
 */
export function seen(b: Outbox, view: AnnotationView): Outbox {
  const first = b.jobs[0],
    overtaken = b.failed?.kind === 'busy' && view.revision !== b.base;
  if (!first) return { ...b, view, base: view.revision };
  const mine =
    first.kind === 'edit' ? view.revisions.find((r) => r.revision > b.base && same(r.ops, first.ops)) : undefined;
  return mine
    ? { ...b, view, base: mine.revision, jobs: b.jobs.slice(1), failed: undefined }
    : { ...b, view, ...(overtaken ? { failed: undefined } : {}) };
}
/** The first job is done. */
export const answered = (b: Outbox, view: AnnotationView): Outbox => ({
  ...b,
  view,
  base: view.revision,
  busy: false,
  failed: undefined,
  jobs: b.jobs.slice(1),
});
/**
 * The first job failed. An undo that failed is not retried: the person presses the key again. `busy`: a newer
 * revision, asked for next, makes it a conflict.
 */
export function failed(b: Outbox, error: HostError): Outbox {
  const gone = b.jobs[0]?.kind !== 'edit';
  return {
    ...b,
    busy: false,
    jobs: gone ? b.jobs.slice(1) : b.jobs,
    failed: gone && b.jobs.length < 2 ? undefined : error,
  };
}
export const retried = (b: Outbox): Outbox => ({ ...b, failed: undefined });
/** Mine on top of what the other window made. */
export const rebased = (b: Outbox): Outbox => ({ ...b, base: b.view?.revision ?? b.base, failed: undefined });
export const discarded = (b: Outbox): Outbox => ({
  ...b,
  jobs: b.busy ? b.jobs.slice(0, 1) : [],
  failed: undefined,
  ...(b.busy ? {} : { base: b.view?.revision ?? b.base }),
});

/** An edit that is not sent yet is taken back here. */
export function undo(b: Outbox): Outbox {
  const last = b.jobs.at(-1);
  if (last?.kind === 'edit' && (b.jobs.length > 1 || !b.busy))
    return {
      ...b,
      jobs: b.jobs.slice(0, -1),
      popped: [...b.popped, last.ops],
      ...(b.jobs.length === 1 ? { failed: undefined, base: b.view?.revision ?? b.base } : {}),
    };
  return canUndo(b) ? { ...b, jobs: [...b.jobs, { kind: 'undo' }] } : b;
}
export function redo(b: Outbox): Outbox {
  const ops = b.popped.at(-1);
  if (ops) return { ...edit(b, ops), popped: b.popped.slice(0, -1) };
  return canRedo(b) ? { ...b, jobs: [...b.jobs, { kind: 'redo' }] } : b;
}
/** How many revisions are in force when all jobs are done. Their numbers have gaps: none is given twice. */
const inForce = (b: Outbox): number =>
  b.jobs.reduce(
    (n, j) => n + (j.kind === 'undo' ? -1 : 1),
    (b.view?.revisions ?? []).filter((r) => r.revision > 0 && r.revision <= b.view!.revision).length,
  );
export const canUndo = (b: Outbox): boolean => b.jobs.at(-1)?.kind === 'edit' || inForce(b) > 0;
export const canRedo = (b: Outbox): boolean =>
  b.popped.length > 0 ||
  (!b.jobs.some((j) => j.kind === 'edit') &&
    (b.view?.revisions ?? []).filter((r) => r.revision > 0).length > inForce(b));

/** The view to show: the daemon's with the edits that wait; an undo among them waits for its answer. */
export function shown(b: Outbox, recorded: readonly StepView[]): AnnotationView | undefined {
  if (!b.view) return undefined;
  const until = b.jobs.findIndex((j) => j.kind !== 'edit');
  return (until < 0 ? b.jobs : b.jobs.slice(0, until)).reduce(
    (v, j) => (j.kind === 'edit' ? applyOps(v, j.ops, recorded) : v),
    b.view,
  );
}
