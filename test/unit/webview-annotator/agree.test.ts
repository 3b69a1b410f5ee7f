import { expect, it } from 'vitest';
import fc from 'fast-check';
import type { AnnotationOp, AnnotationView, StepView, TrajectoryView } from '../../../runtime/protocol/types.js';
import { emptyLine, type Line } from '../../../runtime/annotations/line.js';
import { viewOf } from '../../../runtime/annotations/revise.js';
import { applyOps, notesOf, revised } from '../../../webview/annotator/apply.js';

const step = (index: number): StepView => ({
  index,
  at: index,
  frame: { hash: 'a'.repeat(64), width: 640, height: 400 },
  ...(index % 2 ? { thought: `t${index}` } : {}),
  actions: [
    { type: 'click', at: { x: index, y: 1 } },
    { type: 'type', text: 'x' },
  ],
  origin: 'policy',
  settled: true,
  timings: { observe: 1, queue: 1, decide: 1, perform: 1, settle: 1 },
});
const recorded: TrajectoryView = {
  row: {
    rollout: 'r',
    task: 't',
    family: 'f',
    instruction: 'i',
    outcome: 'failure',
    provenance: 'rollout',
    steps: 6,
    cap: 9,
  },
  steps: [0, 1, 2, 3, 4, 5].map(step),
  framesDir: '/f',
  live: false,
};
const line = (ops: readonly AnnotationOp[]): Line => ({
  ...emptyLine,
  edits: ops.map((o, i) => ({ type: 'edit', rollout: 'r', part: 0, revision: i + 1, base: i, at: i, ops: [o] })),
  head: ops.length,
  last: ops.length,
});
const daemon = (ops: readonly AnnotationOp[]): AnnotationView => viewOf(recorded, '/run', line(ops), 0)!;

const s = fc.integer({ min: 0, max: 5 }),
  text = fc.string({ maxLength: 5 });
const op: fc.Arbitrary<AnnotationOp> = fc
  .oneof<fc.Arbitrary<AnnotationOp>[]>(
    fc.record({
      op: fc.constant('outcome' as const),
      value: fc.constantFrom('success' as const, 'failure' as const, null),
      reason: text,
    }),
    fc.record({ op: fc.constant('tags' as const), tags: fc.uniqueArray(text) }),
    fc.record({ op: fc.constant('note' as const), text }),
    fc.record({
      op: fc.constant('mark' as const),
      step: s,
      mark: fc.constantFrom('key' as const, 'redundant' as const, 'wrong' as const),
      on: fc.boolean(),
    }),
    fc.record({ op: fc.constant('thought' as const), step: s, text: fc.constantFrom(null, 'new', 't1') }),
    fc.record({
      op: fc.constant('action' as const),
      step: s,
      action: fc.constant(0),
      value: fc.record({
        type: fc.constant('click' as const),
        at: fc.record({ x: fc.integer({ min: 0, max: 5 }), y: fc.constant(1) }),
      }),
    }),
    fc.record({ op: fc.constant('delete' as const), steps: fc.uniqueArray(s, { minLength: 1, maxLength: 2 }) }),
    fc.record({ op: fc.constant('restore' as const), steps: fc.uniqueArray(s, { minLength: 1, maxLength: 2 }) }),
    fc.record({ op: fc.constant('reviewed' as const), value: fc.boolean() }),
  )
  .map((o) => JSON.parse(JSON.stringify(o)) as AnnotationOp);

it('what a page shows before the answer is what the daemon answers, for edits it takes', () => {
  fc.assert(
    fc.property(fc.array(op, { maxLength: 8 }), fc.array(op, { minLength: 1, maxLength: 4 }), (before, now) => {
      // The page offers neither edits of deleted steps nor the restoring of edited ones without the daemon's word.
      const gone = new Set<number>(),
        touched = new Set<number>(),
        taken = [...before, ...now].filter((o) => {
          if (o.op === 'delete') {
            for (const x of o.steps) gone.add(x);
            return gone.size < 6 && !o.steps.some((x) => touched.has(x));
          }
          if (o.op === 'restore') {
            for (const x of o.steps) gone.delete(x);
            return true;
          }
          if (o.op === 'thought' || o.op === 'action') touched.add(o.step);
          return !('step' in o) || !gone.has(o.step);
        }),
        cut = Math.min(before.length, taken.length);
      const guess = applyOps(daemon(taken.slice(0, cut)), taken.slice(cut), recorded.steps),
        truth = daemon(taken);
      for (const k of ['outcome', 'tags', 'note', 'marks', 'deleted', 'changed', 'reviewed'] as const)
        expect([k, guess[k]]).toEqual([k, truth[k]]);
      expect(guess.trajectory.steps).toEqual(truth.trajectory.steps);
      expect(revised(recorded, guess).steps).toEqual(revised(recorded, truth).steps);
      expect(notesOf(guess)).toEqual(notesOf(truth));
    }),
  );
});
