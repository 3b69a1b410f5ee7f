import { isDeepStrictEqual } from 'node:util';
import {
  id,
  type Action,
  type Outcome,
  type RolloutId,
  type RunError,
  type Step,
  type Trajectory,
  type AnnotationView,
  type OutcomeKind,
  type Revision,
  type StepView,
  type TrajectoryView,
  unsampled,
  unsampledView,
  withToldPrompts,
} from '../domain/index.js';
import { annotatedOf, marksOf, type Annotated } from './facts.js';
import type { Line } from './line.js';

/** Combines a recorded trajectory with its annotations. Pure; the recorded one is never changed. */

interface AnyStep {
  readonly index: number;
  readonly thought?: string | undefined;
  readonly actions: readonly Action[];
}
/** Thought and actions of a step as edited. */
export function saidOf(
  s: AnyStep,
  a: Annotated,
): { readonly thought: string | undefined; readonly actions: readonly Action[] } {
  const changed = a.actions.get(s.index);
  return {
    thought: a.thoughts.get(s.index) ?? s.thought,
    actions: changed ? s.actions.map((x, i) => changed.get(i) ?? x) : s.actions,
  };
}
export const isChanged = (s: AnyStep, a: Annotated): boolean => {
  const now = saidOf(s, a);
  return (now.thought ?? '') !== (s.thought ?? '') || !isDeepStrictEqual(now.actions, s.actions);
};
const inPart = (s: AnyStep, a: Annotated): boolean => s.index >= a.from && (a.to === undefined || s.index < a.to);
/** The recorded steps of a part, deleted ones too. */
export const stepsOf = <S extends AnyStep>(steps: readonly S[], a: Annotated): S[] => steps.filter((s) => inPart(s, a));

/** Steps of this revision; `edit` makes one that nobody sampled. */
function revisedSteps<S extends AnyStep>(
  steps: readonly S[],
  a: Annotated,
  edit: (s: S, now: ReturnType<typeof saidOf>) => S,
): S[] {
  const deleted = new Set(a.deleted);
  return stepsOf(steps, a).flatMap((s) => (deleted.has(s.index) ? [] : [isChanged(s, a) ? edit(s, saidOf(s, a)) : s]));
}
/** An edited step was not sampled: it has no log-probs and no policy version. */
function editStep(s: Step, now: ReturnType<typeof saidOf>): Step {
  const { thought: _s, ...rest } = unsampled(s);
  return {
    ...rest,
    ...(now.thought === undefined ? {} : { thought: now.thought }),
    actions: now.actions,
    origin: 'human',
  };
}
function editView(s: StepView, now: ReturnType<typeof saidOf>): StepView {
  const { thought: _s, after, ...rest } = unsampledView(s),
    same = isDeepStrictEqual(now.actions, s.actions);
  // The screen after it is that of what was really done.
  return {
    ...rest,
    ...(same && after ? { after } : {}),
    ...(now.thought === undefined ? {} : { thought: now.thought }),
    actions: now.actions,
    origin: 'human',
  };
}

/** The verifier looked at the end of the recording, which is not the end of this part. */
const unverified = (a: Annotated): RunError => ({
  kind: 'task.verify',
  message: `${a.rollout} ends before the end of the recording, where the verifier looked.`,
  remedy: 'Replay and verify it, or set its outcome and give a reason.',
});

/** Outcome as corrected; of a part that is not the last, unknown until somebody says it. */
export function outcomeOf(recorded: Outcome, a: Annotated): Outcome {
  const last = a.to === undefined;
  if (a.outcome) {
    const { value } = a.outcome,
      report = recorded.kind !== 'error' && last ? recorded.report : undefined;
    return {
      kind: value,
      reward: value === 'success' ? 1 : 0,
      truncated: last && recorded.kind !== 'error' && recorded.truncated,
      report,
    };
  }
  return last ? recorded : { kind: 'error', error: unverified(a) };
}

/**
 * The trajectory of this revision, for export and the like. Steps keep the index they were recorded with; deleted ones
 * are gone. Without
 * `edits` only what was said of the whole counts: its outcome, and where it was split.
 */
export function revisedTrajectory(t: Trajectory, a: Annotated): Trajectory {
  const { last, ...rest } = t,
    steps = withToldPrompts(revisedSteps(t.steps, a, editStep), t.steps),
    end = t.steps.at(-1);
  return {
    ...rest,
    id: id<RolloutId>(a.rollout),
    steps,
    outcome: outcomeOf(t.outcome, a),
    ...(last && end && a.to === undefined && steps.at(-1)?.index === end.index ? { last } : {}),
  };
}

/** The recorded trajectory, or the recorded steps of one of its parts under the part's name. */
export function partView(recorded: TrajectoryView, a: Annotated): TrajectoryView {
  if (a.parts.length === 1) return { ...recorded, row: { ...recorded.row, ...annotated(a) } };
  const {
      report,
      error,
      advantage: _a,
      group: _g,
      row: { group: _rg, reward, errorKind, truncated, ...row },
      ...rest
    } = recorded,
    steps = stepsOf(recorded.steps, a),
    last = a.to === undefined;
  return {
    ...rest,
    steps,
    ...(last && report ? { report } : {}),
    ...(last ? (error ? { error } : {}) : { error: unverified(a) }),
    row: {
      ...row,
      rollout: a.rollout,
      steps: steps.length,
      ...annotated(a),
      ...(last
        ? {
            ...(reward === undefined ? {} : { reward }),
            ...(errorKind ? { errorKind } : {}),
            ...(truncated ? { truncated } : {}),
          }
        : { outcome: 'error' satisfies OutcomeKind, errorKind: 'unverified' }),
    },
  };
}
const annotated = (a: Annotated): { annotated?: NonNullable<ReturnType<typeof marksOf>> } => {
  const marks = marksOf(a);
  return marks ? { annotated: marks } : {};
};

/**
 * The annotator's view: `place` is that of the part, 0 for the trajectory itself. Undefined when there is no such part
 * at this revision.
 */
export function viewOf(
  recorded: TrajectoryView,
  run: string,
  line: Line,
  place = 0,
): Omit<AnnotationView, 'locked'> | undefined {
  const a = annotatedOf(recorded.row.rollout, line)[place];
  if (!a) return undefined;
  const base = partView(recorded, a),
    steps = revisedSteps(base.steps, a, editView),
    revisions: Revision[] = [
      { revision: 0, at: recorded.row.endedAt ?? recorded.row.startedAt ?? 0, ops: [] },
      ...line.edits.map(({ revision, at, ops }) => ({ revision, at, ops })),
    ];
  const { errorKind, ...row } = base.row,
    corrected = a.outcome && { outcome: a.outcome.value, reward: a.outcome.value === 'success' ? 1 : 0 };
  return {
    run,
    rollout: a.rollout,
    revision: a.revision,
    revisions,
    ...(a.outcome ? { outcome: a.outcome } : {}),
    tags: a.tags,
    note: a.note,
    marks: Object.fromEntries(a.marks),
    deleted: a.deleted,
    reviewed: a.reviewed,
    parts: a.parts.filter((p) => p !== a.rollout),
    trajectory: {
      ...base,
      steps,
      row: { ...row, steps: steps.length, ...(corrected ?? (errorKind ? { errorKind } : {})) },
    },
    changed: stepsOf(recorded.steps, a)
      .filter((s) => !a.deleted.includes(s.index) && isChanged(s, a))
      .map((s) => s.index),
    replays: line.replays.filter((r) => r.part === a.from).map((r) => r.replay),
  };
}
