import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Action } from '../../../runtime/domain/index.js';
import { clusterFailures, divergenceOf, partsFrom, type Episode } from '../../../runtime/queries/divergence.js';

const frame = { hash: 'f'.repeat(64), width: 640, height: 400 },
  click = (x: number, y: number): Action => ({ type: 'click', at: { x, y } }),
  type = (text: string): Action => ({ type: 'type', text }),
  done: Action = { type: 'finished' };
let made = 0;
const episode = (actions: readonly Action[], o: Partial<Episode> = {}): Episode => ({
  rollout: `r${++made}`,
  task: 'desk/form-one#1',
  family: 'desk/form-one',
  success: false,
  truncated: false,
  version: 3,
  at: made,
  steps: actions.map((a) => ({ frame, actions: [a] })),
  ...o,
});
const won = (actions: readonly Action[], o: Partial<Episode> = {}): Episode =>
  episode(actions, { success: true, ...o });
const right = won([click(100, 50), type('Ada'), click(300, 200), done]);

describe('where a failure parts from a success', () => {
  it.each<[string, readonly Action[], object]>([
    ['another action', [type('Ada'), done], { kind: 'instead', step: 0, did: type('Ada'), expected: click(100, 50) }],
    ['just beside the place', [click(100, 90), type('Ada')], { kind: 'beside', step: 0 }],
    ['far from it', [click(500, 300)], { kind: 'elsewhere', step: 0 }],
    ['another text', [click(101, 52), type('Eve')], { kind: 'other', step: 1, did: type('Eve') }],
    ['ended early, by its own word', [click(100, 50), done], { kind: 'early', step: 1, expected: type('Ada') }],
    ['ended early, cut off', [click(100, 50), type('Ada')], { kind: 'early', step: 1, expected: click(300, 200) }],
    [
      'went on where it was done',
      [click(100, 50), type('Ada'), click(300, 200), click(9, 9)],
      { kind: 'late', step: 3, did: click(9, 9) },
    ],
    ['the same to the end', [click(102, 50), type('Ada'), click(300, 200), done], { kind: 'same', step: 3 }],
    [
      'waits say nothing',
      [{ type: 'wait' }, click(100, 50), { type: 'wait' }, type('Eve')],
      { kind: 'other', step: 3 },
    ],
  ])('%s', (_, actions, want) => {
    expect(partsFrom(episode(actions), right)).toMatchObject(want);
  });

  it('is measured against the success it was like for longest; of another task only by kinds of actions', () => {
    const other = won([type('Ada'), click(5, 5), done]),
      f = episode([type('Ada'), click(400, 5), done]);
    expect(divergenceOf(f, [right, other], [])).toMatchObject({ kind: 'elsewhere', step: 1, success: other });
    const elsewhere = won([type('Bob'), click(77, 7), click(1, 1), done], { task: 'desk/form-one#2' });
    expect(divergenceOf(f, [], [elsewhere])).toMatchObject({ kind: 'early', step: 2, expected: click(1, 1) });
    expect(divergenceOf(f, [], [])).toMatchObject({ kind: 'alone', did: done });
  });
});

describe('clusters of failures', () => {
  it('says what most did: typed into the focused field, clicked the gap below', () => {
    const all = [
        right,
        ...Array.from({ length: 38 }, () => episode([type('Ada'), done])),
        ...Array.from({ length: 12 }, (_, i) => episode([click(100, 84 + (i % 3)), done], { version: 7 })),
        episode([click(100, 50)], { truncated: true }),
      ],
      [typed, gap, cut, ...none] = clusterFailures(all);
    expect(none).toEqual([]);
    expect(typed).toMatchObject({ kind: 'instead', did: 'type', expected: 'click', step: 0, ended: 'finished' });
    expect(typed!.rollouts).toHaveLength(38);
    expect(gap).toMatchObject({ kind: 'beside', side: 'below', did: 'click', distance: 35, versions: [7, 7] });
    expect(gap!.rollouts).toHaveLength(12);
    expect(gap!.exemplars[0]).toMatchObject({ step: 0, success: right.rollout, expected: click(100, 50) });
    expect(cut).toMatchObject({ kind: 'early', expected: 'type', ended: 'step cap' });
  });

  it('exemplars are of different tasks first, newest first', () => {
    const of = (task: string, n: number): Episode[] => Array.from({ length: n }, () => episode([type('x')], { task })),
      [c] = clusterFailures([right, ...of('desk/form-one#1', 3), ...of('desk/form-one#2', 2)]),
      tasks = c!.exemplars.map((e) => e.task);
    expect(new Set(tasks.slice(0, 2)).size).toBe(2);
  });

  const action: fc.Arbitrary<Action> = fc.oneof(
      fc.record({ x: fc.nat(600), y: fc.nat(380) }).map(({ x, y }) => click(x, y)),
      fc.constantFrom('Ada', 'Eve').map(type),
      fc.constant(done),
      fc.constant<Action>({ type: 'wait' }),
      fc.constantFrom<Action>({ type: 'hotkey', keys: ['enter'] }, { type: 'fail' }),
      fc.constantFrom<Action>(
        { type: 'scroll', at: { x: 1, y: 1 }, direction: 'down' },
        { type: 'drag', from: { x: 1, y: 2 }, to: { x: 30, y: 4 } },
      ),
    ),
    episodes = fc.array(
      fc
        .tuple(fc.array(action, { minLength: 1, maxLength: 6 }), fc.boolean(), fc.nat(2), fc.boolean())
        .map(([actions, success, task, truncated]) =>
          episode(actions, { success, truncated, task: `desk/a#${task}`, family: task === 2 ? 'desk/b' : 'desk/a' }),
        ),
      { maxLength: 30 },
    );

  it('of two successes of one length the older says where a failure parts, whatever order they come in', () => {
    const failure = episode([click(1, 1)]),
      typed = won([type('Ada')]),
      pressed = won([{ type: 'hotkey', keys: ['enter'] }]);
    for (const all of [
      [failure, typed, pressed],
      [pressed, typed, failure],
    ])
      expect(clusterFailures(all).map((c) => c.expected)).toEqual(['type']);
  });
  it('every failure is in exactly one cluster, no success in any, whatever the order they come in', () => {
    fc.assert(
      fc.property(episodes, fc.nat(), (all, turn) => {
        const clusters = clusterFailures(all),
          listed = clusters.flatMap((c) => c.rollouts);
        expect([...listed].sort()).toEqual(
          all
            .filter((e) => !e.success)
            .map((e) => e.rollout)
            .sort(),
        );
        const k = all.length === 0 ? 0 : turn % all.length,
          turned = clusterFailures([...all.slice(k), ...all.slice(0, k)]);
        expect(new Set(turned.map((c) => c.rollouts.join()))).toEqual(new Set(clusters.map((c) => c.rollouts.join())));
        for (const c of clusters) for (const e of c.exemplars) expect(c.rollouts).toContain(e.rollout);
      }),
    );
  });
  it('a failure never parts from itself, and where it parts lies in it', () => {
    fc.assert(
      fc.property(
        fc.array(action, { minLength: 1, maxLength: 8 }),
        fc.array(action, { minLength: 1, maxLength: 8 }),
        (a, b) => {
          const f = episode(a),
            d = partsFrom(f, won(b));
          expect(partsFrom(f, won(a)).kind).toBe('same');
          expect(d.step).toBeGreaterThanOrEqual(0);
          expect(d.step).toBeLessThan(a.length);
        },
      ),
    );
  });
});
