import { describe, expect, it } from 'vitest';
import { annotatedOf, type Annotated } from '../../../runtime/annotations/facts.js';
import { applyRecord, emptyLine } from '../../../runtime/annotations/line.js';
import {
  id,
  type AnnotationFilter,
  type AnnotationOp,
  type FamilyId,
  type RolloutId,
  type TaskId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { chooseUnits, unitTrajectory } from '../../../runtime/interchange/revise.js';

const R = 'r1',
  row = { id: R, task: 't', outcome: 'success' } as const,
  recorded: Trajectory = {
    id: id<RolloutId>(R),
    task: id<TaskId>('t'),
    family: id<FamilyId>('f'),
    instruction: 'do it',
    provenance: { kind: 'human' },
    steps: Array.from({ length: 10 }, (_, index) => ({
      index,
      frame: { hash: String(index), width: 10, height: 10 },
      actions: [{ type: 'click', at: { x: index, y: 0 } }],
      origin: 'human',
      settled: true,
      timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
    })),
    outcome: { kind: 'success', reward: 1, truncated: false },
    cap: 30,
    startedAt: 1,
    endedAt: 2,
    resetMs: 0,
    verifyMs: 0,
  };
/** Edits of the part that begins at a step, one after another. */
function annotated(...edits: readonly (readonly [number, ...AnnotationOp[]])[]): Map<string, Annotated> {
  const line = edits.reduce(
    (l, [part, ...ops], i) =>
      applyRecord(l, { type: 'edit', rollout: R, part, revision: l.last + 1, base: l.head, at: i, ops }),
    emptyLine,
  );
  return new Map(annotatedOf(R, line).map((a) => [a.rollout, a]));
}
/** The places of the steps of each unit. */
const exported = (annotations: ReadonlyMap<string, Annotated>, f: AnnotationFilter): [string, readonly number[]][] =>
  chooseUnits([row], annotations, f).units.map((u) => [u.id, unitTrajectory(recorded, u, f)!.places]);

describe('an export of a trajectory that was split', () => {
  const split = annotated(
    [0, { op: 'split', step: 5 }, { op: 'tags', tags: ['first', 'both'] }],
    [0, { op: 'mark', step: 2, mark: 'wrong', on: true }],
    [5, { op: 'mark', step: 7, mark: 'wrong', on: true }, { op: 'tags', tags: ['second', 'both'] }],
    [5, { op: 'outcome', value: 'success', reason: 'seen' }],
  );

  it('as recorded is one whole, without the steps that were marked in any part', () => {
    expect(exported(split, { revised: false, without: ['wrong'] })).toEqual([[R, [0, 1, 3, 4, 5, 6, 8, 9]]]);
    expect(exported(split, { revised: false })).toEqual([[R, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]]);
  });
  it('as recorded has the tags of all parts', () => {
    for (const tag of ['first', 'second', 'both'])
      expect(exported(split, { revised: false, tags: [tag] }), tag).toHaveLength(1);
    expect(exported(split, { revised: false, tags: ['none'] })).toEqual([]);
  });
  it('as revised is its parts, each with what was said of it', () => {
    expect(exported(split, { without: ['wrong'] })).toEqual([[`${R}/b`, [5, 6, 8, 9]]]);
    expect(exported(split, { tags: ['first'] })).toEqual([]);
  });
  it('without annotations is the recording either way', () => {
    for (const revised of [true, false]) expect(exported(new Map(), { revised })).toHaveLength(1);
  });
});
