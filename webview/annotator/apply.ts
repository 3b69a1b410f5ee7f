/**
 * Applies edits to the shown view before the daemon has answered, and compares a trajectory as annotated with its
 * recording. Pure.
 */
import type { AnnotationOp, AnnotationView, StepMark, StepView, TrajectoryView } from '../../runtime/protocol/types.js';
import type { StepNote } from '../ui/notes.js';

export const stepMarks: readonly StepMark[] = ['key', 'redundant', 'wrong'];

/**
 * `recorded`: the steps as they were recorded, for what is put back. A split is the daemon's to carry out: it names the
 * parts.
 */
export function applyOps(
  v: AnnotationView,
  ops: readonly AnnotationOp[],
  recorded: readonly StepView[],
): AnnotationView {
  return ops.reduce((w, op) => applyOp(w, op, recorded), v);
}
function applyOp(v: AnnotationView, op: AnnotationOp, recorded: readonly StepView[]): AnnotationView {
  switch (op.op) {
    case 'outcome': {
      const { outcome: _o, ...rest } = v;
      return op.value === null ? rest : { ...rest, outcome: { value: op.value, reason: op.reason } };
    }
    case 'tags':
      return { ...v, tags: op.tags };
    case 'note':
      return { ...v, note: op.text };
    case 'reviewed':
      return { ...v, reviewed: op.value };
    case 'mark': {
      const had = v.marks[op.step] ?? [],
        now = stepMarks.filter((m) => (m === op.mark ? op.on : had.includes(m)));
      const { [op.step]: _gone, ...others } = v.marks;
      return { ...v, marks: now.length ? { ...others, [op.step]: now } : others };
    }
    case 'thought':
      return change(v, op.step, recorded, (s, was) => ({ thought: op.text ?? was.thought, actions: s.actions }));
    case 'action':
      return change(v, op.step, recorded, (s) => ({
        thought: s.thought,
        actions: s.actions.map((a, i) => (i === op.action ? op.value : a)),
      }));
    case 'delete': {
      const gone = new Set(op.steps);
      return {
        ...v,
        deleted: [...new Set([...v.deleted, ...op.steps])].sort((a, b) => a - b),
        trajectory: { ...v.trajectory, steps: v.trajectory.steps.filter((s) => !gone.has(s.index)) },
      };
    }
    case 'restore': {
      const back = new Set(op.steps.filter((s) => v.deleted.includes(s)));
      return {
        ...v,
        deleted: v.deleted.filter((s) => !back.has(s)),
        trajectory: {
          ...v.trajectory,
          steps: [...v.trajectory.steps, ...recorded.filter((s) => back.has(s.index))].sort(
            (a, b) => a.index - b.index,
          ),
        },
      };
    }
    case 'split':
      return v;
  }
}
type Editable = Pick<StepView, 'thought' | 'actions'>;
function change(
  v: AnnotationView,
  index: number,
  recorded: readonly StepView[],
  edit: (s: StepView, was: StepView) => Editable,
): AnnotationView {
  const was = recorded.find((s) => s.index === index);
  if (!was) return v;
  let differs = false;
  const steps = v.trajectory.steps.map((s) => {
    if (s.index !== index) return s;
    const now = edit(s, was);
    differs = !sameEditable(was, now);
    return differs ? edited(was, now) : was;
  });
  return {
    ...v,
    trajectory: { ...v.trajectory, steps },
    changed: differs ? [...new Set([...v.changed, index])].sort((a, b) => a - b) : v.changed.filter((x) => x !== index),
  };
}
/**
 * The view of an edited step. Nobody sampled it: it is a person's, and the screen after it shows the recorded action.
 */
function edited(was: StepView, now: Editable): StepView {
  const {
    tokens: _t,
    version: _v,
    thought: _s,
    entropy: _e,
    kept: _k,
    advantage: _a,
    weight: _w,
    declined: _d,
    after,
    ...rest
  } = was;
  return {
    ...rest,
    ...(after && same(was.actions, now.actions) ? { after } : {}),
    ...(now.thought === undefined ? {} : { thought: now.thought }),
    actions: now.actions,
    origin: 'human',
  };
}
const sameEditable = (a: Editable, b: Editable): boolean =>
  (a.thought ?? '') === (b.thought ?? '') && same(a.actions, b.actions);

/**
 * The recorded trajectory with what was edited in place: deleted steps stay (they can be restored), steps that a split
 * gave to another part do not. Steps that nobody changed are the same objects. Numbers stay those of the recording.
 */
export function revised(recorded: TrajectoryView, a: AnnotationView): TrajectoryView {
  const now = new Map(a.trajectory.steps.map((s) => [s.index, s])),
    deleted = new Set(a.deleted),
    known = new Set(recorded.steps.map((s) => s.index));
  const kept = recorded.steps.flatMap((s) => {
    const n = now.get(s.index);
    if (!n) return deleted.has(s.index) ? [s] : [];
    return [sameEditable(s, n) ? s : n];
  });
  const others = a.trajectory.steps.filter((s) => !known.has(s.index));
  return { ...recorded, steps: others.length ? [...kept, ...others].sort((x, y) => x.index - y.index) : kept };
}

/** Notes by the index of their step. */
export function notesOf(a: AnnotationView): Map<number, StepNote> {
  const out = new Map<number, StepNote>(),
    changed = new Set(a.changed),
    deleted = new Set(a.deleted);
  for (const i of new Set([...Object.keys(a.marks).map(Number), ...changed, ...deleted]))
    out.set(i, { marks: a.marks[i] ?? [], deleted: deleted.has(i), changed: changed.has(i) });
  return out;
}

/** Deep equality of plain JSON; what is undefined is absent. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (
    typeof a !== 'object' ||
    typeof b !== 'object' ||
    a === null ||
    b === null ||
    Array.isArray(a) !== Array.isArray(b)
  )
    return false;
  const x = a as Record<string, unknown>,
    y = b as Record<string, unknown>,
    keys = new Set([...Object.keys(x), ...Object.keys(y)]);
  return [...keys].every((k) => same(x[k], y[k]));
}
