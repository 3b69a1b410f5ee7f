import {
  id,
  type Outcome,
  type RolloutId,
  type Step,
  type Trajectory,
  type AnnotationFilter,
  type TrajectoryView,
  unsampledView,
  withToldPrompts,
} from '../domain/index.js';
import type { Annotated } from '../annotations/facts.js';
import { revisedTrajectory } from '../annotations/revise.js';

/** A trajectory to be exported: as it was recorded, or as people revised it. */
export interface Unit {
  /** Id of the export: the trajectory, or a part of it. */
  readonly id: string;
  readonly root: RolloutId;
  readonly task: string;
  readonly annotated?: Annotated;
}
export interface Candidate {
  readonly id: string;
  readonly task: string;
  readonly outcome: Outcome['kind'];
}

/**
 * Which trajectories are exported, by what people said of them: parts of a split one each by itself, outcomes as
 * corrected, those without an outcome never. Pure. `asked`: only these, by the name of the trajectory or of the part.
 */
export function chooseUnits(
  rows: readonly Candidate[],
  annotations: ReadonlyMap<string, Annotated>,
  f: AnnotationFilter & {
    readonly outcome?: 'success' | 'failure' | undefined;
    readonly asked?: readonly string[] | undefined;
  },
): { readonly units: Unit[]; readonly withoutOutcome: number } {
  const revised = f.revised ?? true,
    asked = f.asked && new Set(f.asked),
    units: Unit[] = [];
  let withoutOutcome = 0;
  for (const r of rows) {
    const root = annotations.get(r.id),
      parts = root ? root.parts.flatMap((p) => annotations.get(p) ?? []) : [];
    for (const a of revised && parts.length > 0 ? parts : [root && wholeOf(root, parts)]) {
      const name = revised ? (a?.rollout ?? r.id) : r.id;
      if (asked && !asked.has(name) && !asked.has(r.id)) continue;
      if (f.tags && f.tags.length > 0 && !f.tags.some((t) => a?.tags.includes(t))) continue;
      if (f.reviewed !== undefined && (a?.reviewed ?? false) !== f.reviewed) continue;
      // The verifier looked at the end of the recording: of an earlier part it said nothing.
      const outcome = revised && a ? (a.outcome?.value ?? (a.to === undefined ? r.outcome : 'error')) : r.outcome;
      if (outcome === 'error') {
        withoutOutcome++;
        continue;
      }
      if (f.outcome && outcome !== f.outcome) continue;
      units.push({ id: name, root: id<RolloutId>(r.id), task: r.task, annotated: a });
    }
  }
  return { units, withoutOutcome };
}

/** What was said of the recording in all parts of it: where it was split counts only for what people revised. */
const wholeOf = (root: Annotated, parts: readonly Annotated[]): Annotated => ({
  ...root,
  tags: [...new Set(parts.flatMap((a) => a.tags))],
  marks: new Map(parts.flatMap((a) => [...a.marks])),
});

/**
 * The trajectory as it is exported, its steps numbered from 0, and where each lay in the recording. Undefined when no
 * step is left.
 */
export function unitTrajectory(
  recorded: Trajectory,
  u: Unit,
  f: AnnotationFilter,
): { readonly trajectory: Trajectory; readonly places: readonly number[] } | undefined {
  const { annotated: a } = u,
    base = a && (f.revised ?? true) ? revisedTrajectory(recorded, a) : recorded;
  const without = (s: Step): boolean =>
    (a?.marks.get(s.index) ?? []).some((m) => (f.without as readonly string[] | undefined)?.includes(m));
  const kept = withToldPrompts(
      base.steps.filter((s) => !without(s)),
      recorded.steps,
    ),
    end = kept.at(-1);
  if (!end) return undefined;
  // The screen after the last step that stays: that of the step which followed it.
  const next = recorded.steps.find((s) => s.index > end.index)?.frame,
    last = next ?? base.last ?? recorded.last,
    { last: _, ...rest } = base;
  return {
    trajectory: { ...rest, steps: kept.map((s, index) => ({ ...s, index })), last },
    places: kept.map((s) => s.index),
  };
}

/** The recorded view as it is exported: what nobody sampled has neither tokens nor weights. */
export function unitView(recorded: TrajectoryView, t: Trajectory, places: readonly number[]): TrajectoryView {
  const at = new Map(recorded.steps.map((s) => [s.index, s])),
    { outcome } = t,
    { reward: _r, truncated: _t, errorKind: _e, ...row } = recorded.row,
    { error: _err, report: _rep, ...rest } = recorded;
  const steps = t.steps.flatMap((s, i) => {
    const v = at.get(places[i]!),
      after = t.steps[i + 1]?.frame ?? t.last;
    if (!v) return [];
    const { after: _a, thought: _th, ...same } = v,
      shown = {
        ...same,
        index: i,
        origin: s.origin,
        actions: s.actions,
        thought: s.thought,
        after: after && { hash: after.hash, width: after.width, height: after.height },
      };
    if (s.tokens || !v.tokens) return [shown];
    return [unsampledView(shown)];
  });
  return {
    ...rest,
    steps,
    row: {
      ...row,
      rollout: t.id,
      outcome: outcome.kind,
      steps: steps.length,
      ...(outcome.kind === 'error'
        ? { errorKind: outcome.error.kind }
        : { reward: outcome.reward, ...(outcome.truncated ? { truncated: true } : {}) }),
    },
    ...(outcome.kind === 'error' ? { error: outcome.error } : outcome.report ? { report: outcome.report } : {}),
  };
}
