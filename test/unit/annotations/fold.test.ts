import { describe, expect, it } from 'vitest';
import type { AnnotationOp, StepView } from '../../../runtime/protocol/types.js';
import { actedKey, annotatedOf, marksOf, partOf } from '../../../runtime/annotations/facts.js';
import { after, applyRecord, before, emptyLine, type Line } from '../../../runtime/annotations/line.js';
import { partView, revisedTrajectory, viewOf } from '../../../runtime/annotations/revise.js';
import { validOps } from '../../../runtime/annotations/validate.js';
import { id, type RolloutId, type Trajectory } from '../../../runtime/domain/index.js';
import { click, recording } from '../../helpers/annotations/recording.js';

const R = 'r000001',
  rec = recording([
    [click(10, 10)],
    [{ type: 'type', text: 'helo' }],
    [click(20, 20), { type: 'hotkey', keys: ['ctrl', 's'] }],
    [{ type: 'wait' }],
    [{ type: 'finished' }],
  ]);
const edit = (l: Line, ops: readonly AnnotationOp[], place = 0): Line =>
  applyRecord(l, {
    type: 'edit',
    rollout: R,
    part: annotatedOf(R, l)[place]!.from,
    revision: l.last + 1,
    base: l.head,
    at: 5000 + l.last,
    ops: validOps(rec.steps, R, l, place, ops),
  });
const show = (l: Line, place = 0): NonNullable<ReturnType<typeof viewOf>> => viewOf(rec, '/run', l, place)!;
const to = (l: Line, revision: number | undefined): Line =>
  applyRecord(l, { type: 'head', rollout: R, revision: revision!, at: 1 });
const indices = (v: { readonly trajectory: { readonly steps: readonly StepView[] } }): number[] =>
  v.trajectory.steps.map((s) => s.index);

describe('a view', () => {
  it('of revision 0 is the recording', () => {
    const v = show(emptyLine);
    expect(v).toMatchObject({
      rollout: R,
      revision: 0,
      revisions: [{ revision: 0, at: 2000, ops: [] }],
      tags: [],
      note: '',
      marks: {},
      deleted: [],
      reviewed: false,
      parts: [],
      changed: [],
      replays: [],
    });
    expect(v.outcome).toBeUndefined();
    expect(v.trajectory).toEqual(rec);
  });

  it('shows what was said of the trajectory, and takes it back', () => {
    const l = edit(emptyLine, [
        { op: 'outcome', value: 'success', reason: ' the file is there ' },
        { op: 'tags', tags: [' slow', 'slow', '', 'nice'] },
        { op: 'note', text: 'look\nhere' },
        { op: 'reviewed', value: true },
      ]),
      v = show(l);
    expect(v).toMatchObject({
      outcome: { value: 'success', reason: 'the file is there' },
      tags: ['slow', 'nice'],
      note: 'look\nhere',
      reviewed: true,
      trajectory: {
        row: {
          outcome: 'success',
          reward: 1,
          annotated: { revision: 1, outcome: 'success', tags: ['slow', 'nice'], note: true, reviewed: true },
        },
      },
    });
    const back = show(
      edit(l, [
        { op: 'outcome', value: null, reason: '' },
        { op: 'tags', tags: [] },
        { op: 'note', text: '' },
        { op: 'reviewed', value: false },
      ]),
    );
    expect(back.outcome).toBeUndefined();
    expect(back.trajectory.row).toEqual(rec.row);
  });

  it('replaces thought, point and text; what was edited was sampled by nobody', () => {
    const v = show(
      edit(emptyLine, [
        { op: 'action', step: 0, action: 0, value: click(11.4, 12.6) },
        { op: 'thought', step: 1, text: 'now I type' },
        { op: 'action', step: 2, action: 1, value: { type: 'hotkey', keys: ['ctrl', 'shift', 's'] } },
        { op: 'mark', step: 3, mark: 'redundant', on: true },
      ]),
    );
    expect(v.changed).toEqual([0, 1, 2]);
    expect(v.marks).toEqual({ 3: ['redundant'] });
    expect(v.trajectory.steps.map((s) => [s.thought, s.actions, s.origin, s.after !== undefined])).toEqual([
      ['thought 0', [click(11, 13)], 'human', false],
      ['now I type', [{ type: 'type', text: 'helo' }], 'human', true],
      ['thought 2', [click(20, 20), { type: 'hotkey', keys: ['ctrl', 'shift', 's'] }], 'human', false],
      ['thought 3', [{ type: 'wait' }], 'policy', true],
      ['thought 4', [{ type: 'finished' }], 'policy', true],
    ]);
    for (const s of v.trajectory.steps.slice(0, 3))
      for (const k of ['tokens', 'version', 'entropy', 'kept', 'advantage', 'weight'])
        expect(s, k).not.toHaveProperty(k);
    expect(v.trajectory.steps[3]).toEqual(rec.steps[3]);
    expect(v.trajectory.row.annotated).toEqual({ revision: 1, edited: true, marks: 1 });
  });

  it('leaves out deleted steps and takes them back under their index', () => {
    const l = edit(emptyLine, [{ op: 'delete', steps: [3, 0, 3] }]);
    expect([show(l).deleted, indices(show(l)), show(l).trajectory.row.steps]).toEqual([[0, 3], [1, 2, 4], 3]);
    expect(show(edit(l, [{ op: 'restore', steps: [3, 1] }])).trajectory.steps.map((s) => s.index)).toEqual([
      1, 2, 3, 4,
    ]);
  });

  it('as recorded again is no change', () => {
    const l = edit(emptyLine, [
      { op: 'thought', step: 0, text: 'other' },
      { op: 'action', step: 0, action: 0, value: click(99, 99) },
    ]);
    const v = show(
      edit(l, [
        { op: 'thought', step: 0, text: null },
        { op: 'action', step: 0, action: 0, value: click(10, 10) },
      ]),
    );
    expect([v.changed, v.trajectory.steps]).toEqual([[], rec.steps]);
  });
});

describe('a split', () => {
  const l = edit(
    edit(emptyLine, [
      { op: 'delete', steps: [4] },
      { op: 'mark', step: 3, mark: 'key', on: true },
      { op: 'tags', tags: ['whole'] },
    ]),
    [
      { op: 'split', step: 3 },
      { op: 'note', text: 'first half' },
    ],
  );
  it('gives steps and what was said of them to another part; the verdict stays with the end', () => {
    const won = edit(edit(emptyLine, [{ op: 'mark', step: 3, mark: 'key', on: true }]), [{ op: 'split', step: 3 }]),
      a = show(won),
      b = show(won, 1);
    expect([a.parts, indices(a), a.marks, b.rollout, b.parts, indices(b), b.marks]).toEqual([
      [`${R}/b`],
      [0, 1, 2],
      {},
      `${R}/b`,
      [R],
      [3, 4],
      { 3: ['key'] },
    ]);
    expect([
      a.trajectory.row.outcome,
      a.trajectory.row.errorKind,
      a.trajectory.row.reward,
      a.trajectory.error?.kind,
    ]).toEqual(['error', 'unverified', undefined, 'task.verify']);
    expect([b.trajectory.row.outcome, b.trajectory.row.rollout, b.trajectory.report]).toEqual([
      'failure',
      `${R}/b`,
      rec.report,
    ]);
    expect(
      show(edit(won, [{ op: 'outcome', value: 'success', reason: 'saved already' }])).trajectory.row,
    ).toMatchObject({ outcome: 'success', reward: 1 });
  });
  it('keeps what is said of a part with the part, also when another split comes before it', () => {
    const tagged = edit(
        l,
        [
          { op: 'tags', tags: ['second'] },
          { op: 'reviewed', value: true },
        ],
        1,
      ),
      more = edit(tagged, [{ op: 'split', step: 1 }]);
    expect([show(tagged).tags, show(tagged, 1).tags]).toEqual([['whole'], ['second']]);
    expect(annotatedOf(R, more).map((a) => [a.rollout, a.from, a.to, a.tags, a.note, a.reviewed, a.deleted])).toEqual([
      [R, 0, 1, ['whole'], 'first half', false, []],
      [`${R}/b`, 1, 3, [], '', false, []],
      [`${R}/c`, 3, undefined, ['second'], '', true, [4]],
    ]);
    expect(viewOf(rec, '/run', to(more, 1), 1)).toBeUndefined();
  });
  it('lets an edit change only the steps of its own part', () => {
    expect(() => edit(l, [{ op: 'mark', step: 3, mark: 'key', on: true }])).toThrow(/step 4 belongs to another part/);
    expect(() => edit(l, [{ op: 'mark', step: 2, mark: 'key', on: true }], 1)).toThrow(
      /step 3 belongs to another part/,
    );
    expect(() => edit(l, [{ op: 'delete', steps: [3] }], 1)).toThrow(/every step/);
    expect(() => edit(l, [{ op: 'split', step: 0 }])).toThrow(/without steps/);
    expect(() => edit(l, [{ op: 'split', step: 4 }], 1)).toThrow(/without steps/);
    expect(partOf(`${R}/b`)).toEqual({ root: R, place: 1 });
    for (const name of [R, `${R}/a`, `${R}/bb`, '/b', 'probe/x/3']) expect(partOf(name), name).toBeUndefined();
  });
  it('shows its recorded steps under its own name', () => {
    const p = partView(rec, annotatedOf(R, l)[1]!);
    expect([p.row.rollout, p.row.steps, p.steps, p.group, p.advantage, p.row.group]).toEqual([
      `${R}/b`,
      2,
      rec.steps.slice(3),
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('revisions', () => {
  it('are undone and redone; an edit of an earlier one drops those after it, and no number is given twice', () => {
    let l = edit(edit(emptyLine, [{ op: 'tags', tags: ['a'] }]), [{ op: 'tags', tags: ['b'] }]);
    expect([before(emptyLine), after(emptyLine), before(l), after(l)]).toEqual([undefined, undefined, 1, undefined]);
    l = to(l, before(l));
    expect([show(l).tags, show(l).revision, after(l), show(l).revisions.map((r) => r.revision)]).toEqual([
      ['a'],
      1,
      2,
      [0, 1, 2],
    ]);
    l = edit(l, [{ op: 'note', text: 'n' }]);
    expect([show(l).tags, show(l).revision, after(l), show(l).revisions.map((r) => r.revision)]).toEqual([
      ['a'],
      3,
      undefined,
      [0, 1, 3],
    ]);
    l = to(to(l, before(l)), 0);
    expect(show(l).trajectory).toEqual(rec);
  });
  it('that build on a damaged one keep what can be kept', () => {
    const r = (revision: number, base: number, tag: string) =>
      ({ type: 'edit', rollout: R, part: 0, revision, base, at: 1, ops: [{ op: 'tags', tags: [tag] }] }) as const;
    const l = [
      r(1, 0, 'a'),
      r(3, 2, 'c'),
      r(3, 2, 'again'),
      { type: 'head', rollout: R, revision: 2, at: 1 } as const,
    ].reduce(applyRecord, emptyLine);
    expect([l.head, l.last, show(l).tags]).toEqual([3, 3, ['c']]);
  });
  it('that act the same share a replay', () => {
    const l = edit(emptyLine, [{ op: 'delete', steps: [0] }]),
      [a] = annotatedOf(R, l);
    const replayed = applyRecord(l, {
      type: 'replay',
      rollout: R,
      part: 0,
      acted: keyOf(l),
      replay: { revision: 1, at: 1, outcome: 'success', reward: 1, rollout: 'replay/x' },
    });
    expect(a!.replayed).toBeUndefined();
    expect([
      marksOf(annotatedOf(R, replayed)[0]!)?.replayed,
      marksOf(annotatedOf(R, edit(replayed, [{ op: 'note', text: 'n' }]))[0]!)?.replayed,
      marksOf(annotatedOf(R, edit(replayed, [{ op: 'delete', steps: [1] }]))[0]!)?.replayed,
    ]).toEqual(['success', 'success', undefined]);
    expect(show(replayed).replays).toEqual([
      { revision: 1, at: 1, outcome: 'success', reward: 1, rollout: 'replay/x' },
    ]);
  });
});

describe('edits that cannot be made', () => {
  it.each<[string, AnnotationOp[], RegExp]>([
    ['none', [], /nothing to edit/],
    ['an outcome without a reason', [{ op: 'outcome', value: 'failure', reason: ' ' }], /requires a reason/],
    [
      'a step that is not there',
      [{ op: 'mark', step: 5, mark: 'key', on: true }],
      /There is no step 6: the recording has 5/,
    ],
    ['a step that is not there, deleted', [{ op: 'delete', steps: [0, 9] }], /There is no step 10/],
    [
      'an action that is not there',
      [{ op: 'action', step: 0, action: 1, value: click(1, 1) }],
      /There is no action 2 of step 1: it has 1/,
    ],
    [
      'another type of action',
      [{ op: 'action', step: 0, action: 0, value: { type: 'left_double', at: { x: 1, y: 1 } } }],
      /cannot become left_double/,
    ],
    [
      'a point beyond the screen',
      [{ op: 'action', step: 0, action: 0, value: click(640, 1) }],
      /not on the screen of 640 x 400/,
    ],
    ['a point before the screen', [{ op: 'action', step: 0, action: 0, value: click(1, -0.6) }], /not on the screen/],
    [
      'text no keyboard has',
      [{ op: 'action', step: 1, action: 0, value: { type: 'type', text: 'a\u0001' } }],
      /cannot be typed/,
    ],
    [
      'a key nobody has',
      [{ op: 'action', step: 2, action: 1, value: { type: 'hotkey', keys: ['ctrl', 'nokey'] } }],
      /nokey/,
    ],
    ['every step deleted', [{ op: 'delete', steps: [0, 1, 2, 3, 4] }], /every step/],
    [
      'every step deleted bit by bit',
      [
        { op: 'delete', steps: [0, 1, 2, 3] },
        { op: 'delete', steps: [4] },
      ],
      /every step/,
    ],
    [
      'an edit of a deleted step',
      [
        { op: 'delete', steps: [2] },
        { op: 'thought', step: 2, text: 'x' },
      ],
      /step 3 is deleted/,
    ],
    ['a split at the beginning', [{ op: 'split', step: 0 }], /without steps/],
    [
      'a split behind what is left',
      [
        { op: 'delete', steps: [3, 4] },
        { op: 'split', step: 3 },
      ],
      /without steps/,
    ],
  ])('%s', (_what, ops, why) => {
    expect(() => edit(emptyLine, ops)).toThrow(why);
  });
});

describe('for export', () => {
  const t: Trajectory = {
    id: id<RolloutId>(R),
    task: 'desk/a#1' as never,
    family: 'desk/a' as never,
    instruction: 'do it',
    provenance: { kind: 'rollout' },
    outcome: { kind: 'failure', reward: 0, truncated: true },
    cap: 12,
    startedAt: 1,
    endedAt: 2,
    resetMs: 1,
    verifyMs: 1,
    last: { hash: 'f'.repeat(64), width: 640, height: 400 },
    steps: rec.steps.map((s) => ({
      index: s.index,
      frame: s.frame,
      thought: s.thought!,
      actions: s.actions,
      origin: 'policy' as const,
      settled: true,
      version: 3,
      tokens: { logprobs: Float32Array.of(-1), entropies: Float32Array.of(1) },
      timings: s.timings,
    })),
  };
  it('a trajectory is revised without log-probs of what nobody sampled, and the recorded one stays', () => {
    const kept = structuredClone(t),
      l = edit(emptyLine, [
        { op: 'delete', steps: [0] },
        { op: 'action', step: 1, action: 0, value: { type: 'type', text: 'hello' } },
        { op: 'outcome', value: 'success', reason: 'seen' },
      ]),
      [a] = annotatedOf(R, l),
      now = revisedTrajectory(t, a!);
    expect(t).toEqual(kept);
    expect(now.steps.map((s) => [s.index, s.origin, s.tokens !== undefined, s.version])).toEqual([
      [1, 'human', false, undefined],
      [2, 'policy', true, 3],
      [3, 'policy', true, 3],
      [4, 'policy', true, 3],
    ]);
    expect([now.outcome, now.last]).toEqual([{ kind: 'success', reward: 1, truncated: true }, t.last]);
    expect(
      revisedTrajectory(t, annotatedOf(R, edit(emptyLine, [{ op: 'delete', steps: [4] }]))[0]!).last,
    ).toBeUndefined();
  });
  it('parts are trajectories of their own', () => {
    const [a, b] = annotatedOf(R, edit(emptyLine, [{ op: 'split', step: 2 }])).map((x) => revisedTrajectory(t, x));
    expect([a!.id, a!.steps.length, a!.outcome.kind, a!.last]).toEqual([R, 2, 'error', undefined]);
    expect([b!.id, b!.steps.map((s) => s.index), b!.outcome, b!.last]).toEqual([
      `${R}/b`,
      [2, 3, 4],
      t.outcome,
      t.last,
    ]);
  });
});

const keyOf = (l: Line): string => actedKey(annotatedOf(R, l)[0]!);
