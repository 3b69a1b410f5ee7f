import type { AnnotationOp } from '../../runtime/protocol/types.js';
import type { Target } from './saver.js';

interface TrajectoryDrafts {
  readonly target: Target;
  readonly ops: Map<string, AnnotationOp>;
}

/** Typed texts that are not committed, by trajectory and field. */
export class Drafts {
  readonly #all = new Map<string, TrajectoryDrafts>();

  /** The edit that a field would make, or undefined when it would make none. */
  set(target: Target, field: string, op: AnnotationOp | undefined): void {
    const key = `${target.run}\n${target.rollout}`,
      d = this.#all.get(key) ?? { target, ops: new Map<string, AnnotationOp>() };
    if (op) d.ops.set(field, op);
    else d.ops.delete(field);
    if (d.ops.size) this.#all.set(key, d);
    else this.#all.delete(key);
  }
  values(): Iterable<TrajectoryDrafts> {
    return this.#all.values();
  }
}
