import { createHash } from 'node:crypto';
import type { Action, AnnotationMarks, AnnotationOp, StepMark } from '../domain/index.js';
import { shown, type EditRecord, type Line } from './line.js';

/**
 * The annotations of a trajectory, or of a part of one, at the revision shown. Steps are named by their index in the
 * recording.
 */
export interface Annotated {
  /** `<root>`, or `<root>/b`, `/c` ... for the parts behind a split. */
  readonly rollout: string;
  /** The recorded trajectory. */
  readonly root: string;
  readonly revision: number;
  /** Steps of the recording it has: from .. to - 1; without `to`, to its end. */
  readonly from: number;
  readonly to?: number;
  /** All parts in order, this one among them; one when there was no split. */
  readonly parts: readonly string[];
  readonly outcome?: { readonly value: 'success' | 'failure'; readonly reason: string };
  readonly tags: readonly string[];
  readonly note: string;
  readonly reviewed: boolean;
  readonly marks: ReadonlyMap<number, readonly StepMark[]>;
  /** Ascending. */
  readonly deleted: readonly number[];
  readonly thoughts: ReadonlyMap<number, string>;
  /** New values by step and place in its actions. */
  readonly actions: ReadonlyMap<number, ReadonlyMap<number, Action>>;
  /** Outcome of the newest replay of what is shown. */
  readonly replayed?: 'success' | 'failure' | 'error';
}
interface Said {
  outcome?: { value: 'success' | 'failure'; reason: string };
  tags: readonly string[];
  note: string;
  reviewed: boolean;
}

export const stepMarks: readonly StepMark[] = ['key', 'redundant', 'wrong'];
/** Parts are named by one letter. */
export const maxParts = 26;
const partName = (root: string, i: number): string => (i === 0 ? root : `${root}/${String.fromCharCode(97 + i)}`);
/** `<root>/b` taken apart; undefined when the name cannot be a part's. */
export function partOf(name: string): { readonly root: string; readonly place: number } | undefined {
  const m = /^(.+)\/([b-z])$/s.exec(name);
  return m ? { root: m[1]!, place: m[2]!.charCodeAt(0) - 97 } : undefined;
}

/**
 * Applies ops one after another. Annotations of steps belong to the step, whatever part it is in; the others belong to
 * the part they were made on.
 */
export class Folding {
  readonly #root: string;
  readonly #said = new Map<number, Said>();
  readonly #marks = new Map<number, readonly StepMark[]>();
  readonly #deleted = new Set<number>();
  readonly #thoughts = new Map<number, string>();
  readonly #actions = new Map<number, ReadonlyMap<number, Action>>();
  readonly #splits = new Set<number>();
  constructor(root: string, edits: readonly EditRecord[] = []) {
    this.#root = root;
    for (const e of edits) for (const op of e.ops) this.apply(e.part, op);
  }

  apply(part: number, op: AnnotationOp): void {
    const said = (s: Partial<Said>): void => {
      this.#said.set(part, { ...this.#of(part), ...s });
    };
    switch (op.op) {
      case 'outcome': {
        const { outcome: _, ...rest } = this.#of(part);
        this.#said.set(part, op.value === null ? rest : { ...rest, outcome: { value: op.value, reason: op.reason } });
        break;
      }
      case 'tags':
        said({ tags: op.tags });
        break;
      case 'note':
        said({ note: op.text });
        break;
      case 'reviewed':
        said({ reviewed: op.value });
        break;
      case 'mark': {
        const had = this.#marks.get(op.step) ?? [],
          now = stepMarks.filter((m) => (m === op.mark ? op.on : had.includes(m)));
        if (now.length > 0) this.#marks.set(op.step, now);
        else this.#marks.delete(op.step);
        break;
      }
      case 'thought':
        if (op.text === null) this.#thoughts.delete(op.step);
        else this.#thoughts.set(op.step, op.text);
        break;
      case 'action':
        this.#actions.set(op.step, new Map(this.#actions.get(op.step)).set(op.action, op.value));
        break;
      case 'delete':
        for (const s of op.steps) this.#deleted.add(s);
        break;
      case 'restore':
        for (const s of op.steps) this.#deleted.delete(s);
        break;
      case 'split':
        if (op.step > 0 && this.#splits.size < maxParts - 1) this.#splits.add(op.step);
        break;
    }
  }
  #of(part: number): Said {
    return this.#said.get(part) ?? { tags: [], note: '', reviewed: false };
  }

  /** The trajectory, and the parts behind it, in order. */
  parts(revision: number): Annotated[] {
    const starts = [0, ...[...this.#splits].sort((a, b) => a - b)],
      names = starts.map((_, i) => partName(this.#root, i));
    return starts.map((from, i): Annotated => {
      const to = starts[i + 1],
        inside = (s: number): boolean => s >= from && (to === undefined || s < to);
      const within = <V>(m: ReadonlyMap<number, V>): ReadonlyMap<number, V> =>
        new Map([...m].filter(([s]) => inside(s)).sort(([a], [b]) => a - b));
      return {
        rollout: names[i]!,
        root: this.#root,
        revision,
        from,
        to,
        parts: names,
        ...this.#of(from),
        marks: within(this.#marks),
        deleted: [...this.#deleted].filter(inside).sort((a, b) => a - b),
        thoughts: within(this.#thoughts),
        actions: within(this.#actions),
      };
    });
  }
}

/** Annotations at the revision shown: first of the trajectory, then of the parts after it. */
export function annotatedOf(root: string, l: Line): Annotated[] {
  const parts = new Folding(root, shown(l)).parts(l.head);
  return l.replays.length === 0
    ? parts
    : parts.map((a) => {
        const key = actedKey(a),
          newest = l.replays.findLast((r) => r.part === a.from && r.acted === key)?.replay.outcome;
        return newest ? { ...a, replayed: newest } : a;
      });
}

/** The same for two revisions that act the same: which steps there are and what they do. */
export function actedKey(a: Pick<Annotated, 'from' | 'to' | 'deleted' | 'actions'>): string {
  return createHash('sha256')
    .update(
      JSON.stringify([
        a.from,
        a.to ?? null,
        a.deleted,
        [...a.actions].map(([s, m]) => [s, [...m].sort(([x], [y]) => x - y)]),
      ]),
    )
    .digest('hex')
    .slice(0, 32);
}

/** Whether what it does or says differs from the recording. */
export const isEdited = (a: Annotated): boolean =>
  a.deleted.length > 0 || a.thoughts.size > 0 || a.actions.size > 0 || a.parts.length > 1;

/** The summary for a list row; undefined when there are no annotations (any more). */
export function marksOf(a: Annotated): AnnotationMarks | undefined {
  const marks = [...a.marks.values()].reduce((n, m) => n + m.length, 0),
    edited = isEdited(a);
  if (!a.outcome && a.tags.length === 0 && a.note === '' && marks === 0 && !edited && !a.reviewed && !a.replayed)
    return undefined;
  return {
    revision: a.revision,
    ...(a.outcome ? { outcome: a.outcome.value } : {}),
    ...(a.tags.length > 0 ? { tags: a.tags } : {}),
    ...(a.note === '' ? {} : { note: true }),
    ...(marks > 0 ? { marks } : {}),
    ...(edited ? { edited } : {}),
    ...(a.reviewed ? { reviewed: true } : {}),
    ...(a.replayed ? { replayed: a.replayed } : {}),
  };
}
