import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { AnnotationOp, AnnotationView, StepView, TrajectoryView } from '../../../runtime/protocol/types.js';
import { applyOps, notesOf, revised } from '../../../webview/annotator/apply.js';
import * as box from '../../../webview/annotator/outbox.js';
import { fieldOf, movePoint, onScreen, pointsOf } from '../../../webview/annotator/actionFields.js';
import { begin, mark, neighbour, placeOf, skipped } from '../../../webview/annotator/walk.js';

const step = (index: number, more: Partial<StepView> = {}): StepView => ({
  index,
  at: index,
  frame: { hash: 'a', width: 640, height: 400 },
  thought: `t${index}`,
  actions: [{ type: 'click', at: { x: index, y: 1 } }],
  origin: 'policy',
  settled: true,
  timings: { observe: 1, queue: 1, decide: 1, perform: 1, settle: 1 },
  ...more,
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
  steps: [0, 1, 2, 3, 4, 5].map((i) => step(i)),
  framesDir: '/f',
  live: false,
};
const note = (text: string): AnnotationOp => ({ op: 'note', text });
const at = (revision: number, numbers: readonly number[] = [], more: Partial<AnnotationView> = {}): AnnotationView => ({
  run: '/run',
  rollout: 'r',
  revision,
  revisions: [{ revision: 0, at: 0, ops: [] }, ...numbers.map((n) => ({ revision: n, at: n, ops: [note(`n${n}`)] }))],
  tags: [],
  note: '',
  marks: {},
  deleted: [],
  reviewed: false,
  parts: [],
  trajectory: recorded,
  changed: [],
  replays: [],
  ...more,
});
const opened = (v: AnnotationView): box.Outbox => box.seen(box.empty, v);
const send = (b: box.Outbox): box.Outbox => {
  expect(box.next(b)).toBeDefined();
  return box.sending(b);
};

describe('the way to disk', () => {
  it('one at a time and in order; the base is the revision that the one before made', () => {
    let b = box.edit(box.edit(opened(at(0)), [note('a')]), [note('b')]);
    expect([box.saveState(b), b.base]).toEqual(['saving', 0]);
    b = send(b);
    expect(box.next(b)).toBeUndefined();
    b = box.answered(b, at(1, [1]));
    expect([box.next(b), b.base]).toEqual([{ kind: 'edit', ops: [note('b')] }, 1]);
    b = box.answered(send(b), at(2, [1, 2]));
    expect([box.saveState(b), b.jobs, b.base]).toEqual(['saved', [], 2]);
  });
  it('a failed edit waits and is sent again; one whose answer was lost is not sent twice', () => {
    let b = box.failed(send(box.edit(opened(at(3, [3])), [note('mine')])), {
      kind: 'lost',
      message: 'gone',
      remedy: '',
    });
    expect([box.saveState(b), box.next(b), box.shown(b, recorded.steps)?.note]).toEqual(['failed', undefined, 'mine']);
    expect(box.next(box.seen(box.retried(b), at(3, [3])))).toEqual({ kind: 'edit', ops: [note('mine')] });
    b = box.seen(
      box.retried(b),
      at(4, [3], { revisions: [{ revision: 4, at: 1, ops: [note('mine')] }], note: 'mine' }),
    );
    expect([box.saveState(b), b.jobs.length, b.base]).toEqual(['saved', 0, 4]);
  });
  it('what the daemon refuses waits for its correction, and the correction goes out in its place', () => {
    const bad: AnnotationOp = { op: 'action', step: 6, action: 0, value: { type: 'hotkey', keys: ['nokey'] } },
      good: AnnotationOp = { ...bad, value: { type: 'hotkey', keys: ['end'] } };
    const b = box.edit(
      box.failed(send(box.edit(opened(at(0)), [bad])), { kind: 'params.invalid', message: 'no such key', remedy: '' }),
      [note('later')],
    );
    expect([box.saveState(b), b.jobs.length]).toEqual(['failed', 2]);
    const mended = box.edit(b, [good]);
    expect([box.next(mended), mended.jobs.length]).toEqual([{ kind: 'edit', ops: [good] }, 2]);
  });
  it('overtaken by another window: the newer is shown, mine on it and unsent, until it is put on top or discarded', () => {
    let b = box.failed(send(box.edit(opened(at(0)), [note('mine')])), { kind: 'busy', message: '', remedy: '' });
    // Nothing newer: it is another lock, and not tried again by itself.
    expect(box.saveState(box.seen(b, at(0)))).toBe('failed');
    b = box.seen(b, at(1, [1], { tags: ['theirs'] }));
    expect([box.saveState(b), box.next(b), box.shown(b, recorded.steps)]).toMatchObject([
      'conflict',
      undefined,
      { note: 'mine', tags: ['theirs'] },
    ]);
    expect(box.next(box.rebased(b))).toEqual({ kind: 'edit', ops: [note('mine')] });
    expect(box.rebased(b).base).toBe(1);
    expect(box.saveState(box.discarded(b))).toBe('saved');
  });
  it('kept and restored, edits go on from where they were', () => {
    const b = box.edit(box.edit(opened(at(2, [1, 2])), [note('a')]), [note('b')]),
      again = box.restored(box.kept(b)!);
    expect([box.saveState(again), box.next(again)]).toEqual(['waiting', undefined]);
    expect(box.next(box.seen(again, at(2, [1, 2])))).toEqual({ kind: 'edit', ops: [note('a')] });
    expect(box.saveState(box.seen(again, at(3, [1, 2, 3])))).toBe('conflict');
    expect(box.kept(opened(at(0)))).toBeUndefined();
  });
  it('undo takes back what is not sent, then asks the daemon; redo the other way; numbers may have gaps', () => {
    let b = box.edit(opened(at(5, [2, 5])), [note('x')]);
    b = box.undo(b);
    expect([b.jobs, box.canRedo(b)]).toEqual([[], true]);
    b = box.redo(b);
    expect(b.jobs).toEqual([{ kind: 'edit', ops: [note('x')] }]);
    b = box.undo(box.undo(box.undo(box.undo(b))));
    expect(b.jobs).toEqual([{ kind: 'undo' }, { kind: 'undo' }]);
    expect(box.canUndo(b)).toBe(false);
    b = box.answered(send(b), at(2, [2, 5]));
    b = box.answered(send(b), at(0, [2, 5]));
    expect([box.canUndo(b), box.canRedo({ ...b, popped: [] })]).toEqual([false, true]);
    // An undo the daemon refused is not tried again, an edit is.
    expect(box.failed(send(box.undo(opened(at(2, [2])))), { kind: 'x', message: '', remedy: '' }).jobs).toEqual([]);
  });
  it('whatever happens in between, every edit that was not undone arrives, once and in order', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.record({ do: fc.constant('edit' as const), text: fc.string() }),
            fc.record({ do: fc.constantFrom('answer' as const, 'lose' as const, 'refuse' as const, 'retry' as const) }),
          ),
          { maxLength: 40 },
        ),
        (events) => {
          const disk: string[] = [],
            made: string[] = [];
          const view = (): AnnotationView =>
            at(disk.length, [], { revisions: disk.map((t, i) => ({ revision: i + 1, at: i, ops: [note(t)] })) });
          let b = opened(view()),
            n = 0;
          const fail = { kind: 'lost', message: '', remedy: '' },
            first = (): string => {
              const j = b.jobs[0];
              return j?.kind === 'edit' && j.ops[0]?.op === 'note' ? j.ops[0].text : '';
            };
          const retry = (): void => {
            b = box.seen(box.retried(b), view());
          };
          for (const e of events) {
            if (e.do === 'edit') {
              const t = `${n++} ${e.text}`;
              made.push(t);
              b = box.edit(b, [note(t)]);
              continue;
            }
            if (e.do === 'retry') {
              if (!b.busy) retry();
              continue;
            }
            if (!box.next(b)) continue;
            b = box.sending(b);
            if (e.do !== 'refuse') disk.push(first());
            b = e.do === 'answer' ? box.answered(b, view()) : box.failed(b, fail);
          }
          for (let i = 0; i <= made.length; i++) {
            retry();
            if (box.next(b)) {
              b = box.sending(b);
              disk.push(first());
              b = box.answered(b, view());
            }
          }
          expect(disk).toEqual(made);
          expect(box.saveState(b)).toBe('saved');
        },
      ),
    );
  });
});

describe('what edits show', () => {
  it('steps keep their numbers; deleted ones stay in place, dimmed; untouched steps are the same objects', () => {
    const v = applyOps(
        at(0),
        [
          { op: 'delete', steps: [1, 4] },
          { op: 'thought', step: 2, text: 'other' },
          { op: 'mark', step: 2, mark: 'wrong', on: true },
          { op: 'mark', step: 2, mark: 'key', on: true },
        ],
        recorded.steps,
      ),
      shown = revised(recorded, v);
    expect(shown.steps.map((s) => s.index)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(v.trajectory.steps.map((s) => s.index)).toEqual([0, 2, 3, 5]);
    expect(shown.steps[0]).toBe(recorded.steps[0]);
    expect(shown.steps[2]!.thought).toBe('other');
    expect(Object.fromEntries(notesOf(v))).toEqual({
      1: { marks: [], deleted: true, changed: false },
      2: { marks: ['key', 'wrong'], deleted: false, changed: true },
      4: { marks: [], deleted: true, changed: false },
    });
  });
  it('an edit and its opposite leave nothing', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 5 }),
        fc.constantFrom('mark', 'thought', 'delete', 'outcome', 'move'),
        (s, kind) => {
          const there: AnnotationOp =
            kind === 'mark'
              ? { op: 'mark', step: s, mark: 'key', on: true }
              : kind === 'thought'
                ? { op: 'thought', step: s, text: 'x' }
                : kind === 'delete'
                  ? { op: 'delete', steps: [s] }
                  : kind === 'outcome'
                    ? { op: 'outcome', value: 'success', reason: 'y' }
                    : { op: 'action', step: s, action: 0, value: { type: 'click', at: { x: 99, y: 99 } } };
          const back: AnnotationOp =
            kind === 'mark'
              ? { op: 'mark', step: s, mark: 'key', on: false }
              : kind === 'thought'
                ? { op: 'thought', step: s, text: null }
                : kind === 'delete'
                  ? { op: 'restore', steps: [s] }
                  : kind === 'outcome'
                    ? { op: 'outcome', value: null, reason: '' }
                    : { op: 'action', step: s, action: 0, value: recorded.steps[s]!.actions[0]! };
          expect(applyOps(at(0), [there, back], recorded.steps)).toEqual(at(0));
        },
      ),
    );
  });
  it('steps that a split gave away are not shown', () => {
    const v = at(1, [1], { trajectory: { ...recorded, steps: recorded.steps.slice(0, 3) }, parts: ['r/b'] });
    expect(revised(recorded, v).steps.map((s) => s.index)).toEqual([0, 1, 2]);
  });
});

describe('actions', () => {
  it('points move within the screen, in whole pixels, and the rest of the action stays', () => {
    expect(
      pointsOf([{ type: 'wait' }, { type: 'drag', from: { x: 1, y: 2 }, to: { x: 3, y: 4 }, modifiers: ['ctrl'] }]).map(
        (p) => [p.action, p.end],
      ),
    ).toEqual([
      [1, 'from'],
      [1, 'to'],
    ]);
    expect(
      movePoint({ type: 'scroll', at: { x: 1, y: 2 }, direction: 'down', amount: 4 }, 'at', { x: 9, y: 9 }),
    ).toEqual({ type: 'scroll', at: { x: 9, y: 9 }, direction: 'down', amount: 4 });
    fc.assert(
      fc.property(
        fc.double({ noNaN: true, min: -1e6, max: 1e6 }),
        fc.double({ noNaN: true, min: -1e6, max: 1e6 }),
        (x, y) => {
          const p = onScreen({ x, y }, { width: 640, height: 400 });
          expect(Number.isInteger(p.x) && p.x >= 0 && p.x < 640 && Number.isInteger(p.y) && p.y >= 0 && p.y < 400).toBe(
            true,
          );
        },
      ),
    );
  });
  it('what a field shows parses to the action it came from; nonsense is refused with words', () => {
    for (const a of [
      { type: 'type', text: 'a\tb\nc' },
      { type: 'hotkey', keys: ['ctrl', 's'] },
      { type: 'scroll', at: { x: 1, y: 1 }, direction: 'up', amount: 7 },
      { type: 'wait', ms: 20 },
      { type: 'finished', answer: '96' },
      { type: 'finished' },
      { type: 'fail', reason: 'no' },
    ] as const) {
      const f = fieldOf(a)!;
      expect(f.parse(f.value)).toEqual(a);
    }
    const keys = fieldOf({ type: 'hotkey', keys: ['a'] })!,
      wait = fieldOf({ type: 'wait' })!,
      clicks = fieldOf({ type: 'scroll', at: { x: 0, y: 0 }, direction: 'up' })!;
    expect(keys.parse(' Ctrl + Shift+S ')).toEqual({ type: 'hotkey', keys: ['ctrl', 'shift', 's'] });
    for (const bad of [
      keys.parse('ctrl++'),
      keys.parse(''),
      wait.parse('soon'),
      wait.parse('-1'),
      clicks.parse('21'),
      clicks.parse('1.5'),
      fieldOf({ type: 'type', text: 'x' })!.parse(''),
    ])
      expect(typeof bad).toBe('string');
    expect(fieldOf({ type: 'click', at: { x: 0, y: 0 } })).toBeUndefined();
  });
});

it('the queue: neighbours, what is reviewed is passed by, what was skipped is known', () => {
  const w = begin({
    items: ['a', 'b', 'c', 'd'].map((rollout) => ({
      row: { ...recorded.row, rollout },
      priority: 1,
      why: 'w',
      reviewed: rollout === 'c',
    })),
    total: 10,
    reviewed: 4,
  });
  expect([w.open, placeOf(w, 'c'), neighbour(w, 'a', -1), neighbour(w, 'd', 1)]).toEqual([6, 2, undefined, undefined]);
  expect([
    neighbour(w, 'b', 1)?.row.rollout,
    neighbour(w, 'b', 1, true)?.row.rollout,
    neighbour(w, 'zz', 1)?.row.rollout,
  ]).toEqual(['c', 'd', 'a']);
  expect(skipped(mark(mark(w, 'a', true), 'd', true)).map((i) => i.row.rollout)).toEqual(['b']);
});
