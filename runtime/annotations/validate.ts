import { isDeepStrictEqual } from 'node:util';
import {
  StudioError,
  argumentValue,
  makeAction,
  type Action,
  type NamedArgument,
  type Point,
  type Size,
  type AnnotationOp,
  type StepView,
  ServiceError,
} from '../domain/index.js';
import { charKeysym, keyKeysym } from '../domain/keysyms.js';
import { Folding, maxParts, type Annotated } from './facts.js';
import { shown, type Line } from './line.js';

const refuse = (what: string, remedy: string): ServiceError => new ServiceError('params.invalid', what, remedy);

/** One-based, as the pages count them. */
const nth = (step: number): string => `step ${step + 1}`;

/**
 * Edits as they are recorded, or `params.invalid` with what is wrong with the first that cannot be made. Each is
 * checked against the trajectory as the ones before it leave it. Points are rounded to pixels, tags trimmed and told
 * once. Pure.
 */
export function validOps(
  steps: readonly StepView[],
  root: string,
  line: Line,
  place: number,
  ops: readonly AnnotationOp[],
): AnnotationOp[] {
  if (ops.length === 0) throw refuse('There is nothing to edit.', 'Give at least one edit.');
  const folding = new Folding(root, shown(line)),
    part = folding.parts(line.head)[place]!.from,
    byIndex = new Map(steps.map((s) => [s.index, s]));
  return ops.map((given) => {
    const op = checked(
      given,
      new EditedPart(
        folding.parts(line.head).find((p) => p.from === part)!,
        byIndex,
      ),
    );
    folding.apply(part, op);
    return op;
  });
}

/** A trajectory, or a part of one, with what people said of it so far. */
class EditedPart {
  readonly #a: Annotated;
  readonly #steps: ReadonlyMap<number, StepView>;
  constructor(a: Annotated, steps: ReadonlyMap<number, StepView>) {
    this.#a = a;
    this.#steps = steps;
  }

  /** The step of this number, deleted or not. */
  step(step: number): StepView {
    const a = this.#a,
      s = this.#steps.get(step);
    if (!s)
      throw refuse(`There is no ${nth(step)}: the recording has ${this.#steps.size}.`, 'Name a step of the recording.');
    if (step < a.from || (a.to !== undefined && step >= a.to))
      throw refuse(
        `${a.rollout} was split: ${nth(step)} belongs to another part of it.`,
        `Edit it there: ${a.parts.filter((p) => p !== a.rollout).join(', ')}.`,
      );
    return s;
  }
  shownStep(step: number): StepView {
    const s = this.step(step);
    if (this.#a.deleted.includes(step)) throw refuse(`The ${nth(step)} is deleted.`, 'Restore it first.');
    return s;
  }
  /** The steps that are left when these are deleted too. */
  left(without: readonly number[] = []): StepView[] {
    const { from, to, deleted } = this.#a;
    return [...this.#steps.values()].filter(
      ({ index: i }) => i >= from && (to === undefined || i < to) && !deleted.includes(i) && !without.includes(i),
    );
  }
  /** Throws when it cannot be split before this step. */
  checkSplit(step: number): void {
    this.step(step);
    if (this.#a.parts.length >= maxParts)
      throw refuse(`A trajectory is split into at most ${maxParts} parts.`, 'Undo another split first.');
    const kept = this.left();
    if (!kept.some((s) => s.index < step) || !kept.some((s) => s.index >= step))
      throw refuse(
        `A split before ${nth(step)} would leave a part without steps.`,
        'Choose a step with others before it.',
      );
  }
}

const sortedSet = (steps: readonly number[]): number[] => [...new Set(steps)].sort((x, y) => x - y);

function checked(op: AnnotationOp, part: EditedPart): AnnotationOp {
  switch (op.op) {
    case 'outcome':
      if (op.value !== null && op.reason.trim() === '')
        throw refuse("An outcome that differs from the verifier's requires a reason.", 'Enter a reason.');
      return { ...op, reason: op.reason.trim() };
    case 'tags':
      return { ...op, tags: [...new Set(op.tags.map((t) => t.trim()).filter((t) => t !== ''))] };
    case 'mark':
    case 'thought':
      part.shownStep(op.step);
      return op;
    case 'action':
      return { ...op, value: checkedAction(op, part.shownStep(op.step)) };
    case 'delete': {
      const gone = sortedSet(op.steps);
      for (const s of gone) part.step(s);
      if (part.left(gone).length === 0)
        throw refuse(
          'That would delete every step.',
          'Keep at least one. To reject the trajectory, correct its outcome.',
        );
      return { ...op, steps: gone };
    }
    case 'restore':
      for (const s of op.steps) part.step(s);
      return { ...op, steps: sortedSet(op.steps) };
    case 'split':
      part.checkSplit(op.step);
      return op;
    default:
      return op;
  }
}

function checkedAction(op: Extract<AnnotationOp, { op: 'action' }>, step: StepView): Action {
  const was = step.actions[op.action],
    where = `action ${op.action + 1} of ${nth(op.step)}`;
  if (!was) throw refuse(`There is no ${where}: it has ${step.actions.length}.`, 'Name an action of the step.');
  if (op.value.type !== was.type)
    throw refuse(
      `${where} is ${was.type} and cannot become ${op.value.type}.`,
      'Only its values can be edited. To act differently, record a demonstration or take over a rollout.',
    );
  // A recorded value stays allowed, even where it could not be typed today.
  if (isDeepStrictEqual(op.value, was)) return was;
  return makeAction(was.type, (name, argument) =>
    checkedValue(argument, argumentValue(op.value, name), step.frame, where),
  );
}
function checkedValue(argument: NamedArgument[1], value: unknown, screen: Size, where: string): unknown {
  switch (argument.kind) {
    case 'place':
      return inside(value as Point, screen, where);
    case 'keys':
      typeable(() => {
        for (const k of value as readonly string[]) keyKeysym(k);
      }, where);
      return value;
    case 'text':
      if (argument.typed)
        typeable(() => {
          for (const c of value as string) charKeysym(c);
        }, where);
      return value;
    case 'modifiers':
    case 'direction':
    case 'number':
      return value;
  }
}
function inside(p: Point, screen: Size, where: string): Point {
  const at = { x: Math.round(p.x), y: Math.round(p.y) };
  if (!(at.x >= 0 && at.x < screen.width && at.y >= 0 && at.y < screen.height))
    throw refuse(
      `${where}: ${p.x}, ${p.y} is not on the screen of ${screen.width} x ${screen.height}.`,
      'Choose a point on the screen.',
    );
  return at;
}
/** Refuses keys that no keyboard of a desktop has: they would only fail at the replay. */
function typeable(look: () => void, where: string): void {
  try {
    look();
  } catch (e) {
    if (e instanceof StudioError) throw refuse(`${where}: ${e.error.message}`, e.error.remedy);
    throw e;
  }
}
