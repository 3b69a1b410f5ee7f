import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { RunEvent, StepView, TrajectoryView } from '../../../runtime/protocol/types.js';
import {
  connectionWords,
  initial,
  positionOf,
  reduce,
  type InspectorInput,
  type State,
} from '../../../webview/inspector/state.js';

const frame = (n: number): StepView['frame'] => ({ hash: n.toString(16).padStart(64, '0'), width: 640, height: 400 });
const step = (index: number, more: Partial<StepView> = {}): StepView => ({
  index,
  at: index,
  frame: frame(index),
  actions: [{ type: 'click', at: { x: index, y: 1 } }],
  origin: 'policy',
  settled: true,
  timings: { observe: 1, queue: 1, decide: 1, perform: 1, settle: 1 },
  ...more,
});
const trajectory = (steps: readonly StepView[], more: Partial<TrajectoryView> = {}): TrajectoryView => ({
  row: {
    rollout: 'r',
    task: 't',
    family: 'f',
    instruction: 'i',
    outcome: more.live ? 'running' : 'success',
    provenance: 'rollout',
    steps: steps.length,
    cap: 30,
  },
  steps,
  framesDir: '/f',
  live: false,
  ...more,
});
const input: InspectorInput = { kind: 'inspector', run: '/run', rollout: 'r' };
const opened = (v: TrajectoryView, i: InspectorInput = input): State =>
  reduce(initial(i, 'ready'), { type: 'loaded', view: v });
let seq = 0;
const event = (e: { readonly type: 'step'; readonly rollout: string; readonly step: StepView }): RunEvent => ({
  seq: ++seq,
  at: seq,
  ...e,
});
const arrives = (s: State, ...steps: StepView[]): State =>
  reduce(s, { type: 'events', events: steps.map((x) => event({ type: 'step', rollout: 'r', step: x })) });

describe('opening', () => {
  it('a finished trajectory opens at its first step, a live one at its last', () => {
    expect(opened(trajectory([step(0), step(1), step(2)])).selected).toBe(0);
    const live = opened(trajectory([step(0), step(1)], { live: true }));
    expect([live.selected, live.pinned]).toEqual([1, true]);
  });
  it('a given step is shown, by its index, and a live rollout is then not followed', () => {
    expect(opened(trajectory([step(3), step(5), step(9)]), { ...input, step: 5 }).selected).toBe(1);
    const s = opened(trajectory([step(0), step(1), step(2)], { live: true }), { ...input, step: 1 });
    expect([s.selected, s.pinned]).toEqual([1, false]);
  });
  it('a document needs no daemon; an empty trajectory selects nothing', () => {
    const s = initial({ kind: 'inspector', rollout: 'r', document: trajectory([step(0)]) }, 'stopped');
    expect([s.loading, s.selected, connectionWords(s)]).toEqual([false, 0, undefined]);
    expect(opened(trajectory([])).selected).toBe(-1);
    expect(reduce(opened(trajectory([])), { type: 'select', at: 3 }).selected).toBe(-1);
  });
});

describe('live', () => {
  const live = opened(trajectory([step(0), step(1)], { live: true }));
  it('selects each new step while the reader follows', () => {
    expect(arrives(live, step(2), step(3)).selected).toBe(3);
  });
  it('who looked back stays there, and Follow brings the end back', () => {
    const back = reduce(live, { type: 'select', at: 0 }),
      more = arrives(back, step(2), step(3));
    expect([more.selected, more.pinned]).toEqual([0, false]);
    const again = reduce(more, { type: 'follow' });
    expect([again.selected, again.pinned]).toEqual([3, true]);
    expect(arrives(again, step(4)).selected).toBe(4);
  });
  it('going to the newest step by hand is following', () => {
    expect(reduce(reduce(live, { type: 'select', at: 0 }), { type: 'select', at: 99 }).pinned).toBe(true);
  });
  it('a step shows the screen after it when the next arrives', () => {
    const s = arrives(live, step(2));
    expect(s.view!.steps[1]!.after).toEqual(frame(2));
    expect(s.view!.steps[2]!.after).toBeUndefined();
  });
  it('the end stops following and asks for what only the daemon knows', () => {
    const s = reduce(live, {
      type: 'events',
      events: [{ seq: 1, at: 1, type: 'ended', row: { ...live.view!.row, outcome: 'failure', reward: 0 } }],
    });
    expect([s.view!.live, s.view!.row.outcome, s.stale, s.pinned]).toEqual([false, 'failure', true, false]);
    const after = reduce(reduce(s, { type: 'loading' }), {
      type: 'loaded',
      view: trajectory([step(0), step(1), step(2)]),
    });
    expect([after.stale, after.selected, after.loading]).toEqual([false, 1, false]);
  });
  it('its group formed or it was trained on: ask again; another rollout is no news', () => {
    const group = {
      id: 'g',
      family: 'f',
      task: 't',
      state: 'formed',
      members: [{ rollout: 'r', outcome: 'success' as const, steps: 2, injected: false }],
    };
    expect(
      reduce(live, { type: 'events', events: [{ seq: 1, at: 1, type: 'group', group, injected: 0 }] }),
    ).toMatchObject({ stale: true, view: { group } });
    expect(
      reduce(live, {
        type: 'events',
        events: [{ seq: 1, at: 1, type: 'trained', batch: 'b', version: 2, rollouts: ['r'] }],
      }).stale,
    ).toBe(true);
    expect(reduce(live, { type: 'events', events: [event({ type: 'step', rollout: 'other', step: step(2) })] })).toBe(
      live,
    );
  });
  it('an answer that is older than the events does not take steps away', () => {
    const s = reduce(arrives(live, step(2), step(3)), {
      type: 'loaded',
      view: trajectory([step(0), step(1), step(2)], { live: true }),
    });
    expect(s.view!.steps.map((x) => x.index)).toEqual([0, 1, 2, 3]);
  });
  it('an answer from before the end does not bring it back to life', () => {
    const ended = reduce(live, { type: 'events', events: [], ended: true });
    expect(reduce(ended, { type: 'loaded', view: trajectory([step(0), step(1)], { live: true }) }).view!.live).toBe(
      false,
    );
  });
});

it('steps in any order, twice or not, end up once each and in order, and the selected one stays selected', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(40), { minLength: 1, maxLength: 60 }),
      fc.array(fc.nat(40), { minLength: 1, maxLength: 8 }),
      fc.nat(40),
      (arriving, first, pick) => {
        const start = [...new Set(first)].sort((a, b) => a - b).map((i) => step(i));
        let s = reduce(opened(trajectory(start, { live: true })), { type: 'select', at: pick });
        const index = s.view!.steps[s.selected]!.index,
          wasLast = s.pinned;
        s = arrives(s, ...arriving.map((i) => step(i)));
        const indexes = s.view!.steps.map((x) => x.index),
          all = [...new Set([...first, ...arriving])].sort((a, b) => a - b);
        expect(indexes).toEqual(all);
        expect(s.view!.steps[s.selected]!.index).toBe(wasLast ? all.at(-1) : index);
        s.view!.steps.forEach((x, i) => {
          const next = s.view!.steps[i + 1];
          if (next?.index === x.index + 1 && arriving.includes(next.index)) expect(x.after).toEqual(next.frame);
        });
      },
    ),
  );
});
it('positionOf finds an index or the one before it', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(100), { minLength: 1 }), fc.nat(110), (list, want) => {
      const steps = list.sort((a, b) => a - b).map((i) => step(i)),
        at = positionOf(steps, want);
      const expected = steps.findLastIndex((x) => x.index <= want);
      expect(at).toBe(Math.max(0, expected));
    }),
  );
  expect(positionOf([], 3)).toBe(-1);
});

describe('choices', () => {
  const s = opened(trajectory([step(0), step(1)]));
  it('another step is shown as it was before its action', () => {
    const after = reduce(s, { type: 'shot', shot: 'after' });
    expect(after.shot).toBe('after');
    expect(reduce(after, { type: 'select', at: 0 }).shot).toBe('after');
    expect(reduce(after, { type: 'select', at: 1 }).shot).toBe('before');
  });
  it('another trajectory in the same page starts anew but keeps the heat map', () => {
    const next = reduce(reduce(s, { type: 'heat', on: true }), { type: 'show', input: { ...input, rollout: 'q' } });
    expect([next.view, next.loading, next.heat, next.selected]).toEqual([undefined, true, true, -1]);
  });
  it('what the colour of tokens says is chosen once for every trajectory', () => {
    expect(s.colour).toBe('entropy');
    const chosen = reduce(s, { type: 'colour', by: 'weight' });
    expect(reduce(chosen, { type: 'show', input: { ...input, rollout: 'q' } }).colour).toBe('weight');
    expect(initial(input, 'ready', { colour: 'weight' }).colour).toBe('weight');
  });
  it('a step whose prompt only the whole trajectory tells makes it stale', () => {
    expect(arrives(s, step(7)).stale).toBe(false);
    expect(arrives(s, step(7, { prompt: 'pending' })).stale).toBe(true);
    expect(arrives(s, step(7, { prompt: { tokens: 9, images: [] } })).stale).toBe(false);
  });
  it('a failed refresh keeps what is on show', () => {
    const f = reduce(s, { type: 'failed', error: { kind: 'connection.lost', message: 'Gone.', remedy: 'Wait.' } });
    expect([f.view, f.error?.message]).toEqual([s.view, 'Gone.']);
  });
});

it('every state of the connection but ready has words, and what to do where one can', () => {
  const s = opened(trajectory([step(0)], { live: true })),
    words = (state: State['daemon']['state']) =>
      connectionWords(
        reduce(s, {
          type: 'daemon',
          state,
          error: { kind: 'x', message: 'Docker is not there.', remedy: 'Start it.' },
        }),
      );
  expect(words('ready')).toBeUndefined();
  expect(words('stopped')).toMatchObject({ action: 'startRuntime', busy: false });
  expect(words('failed')!.words).toContain('Docker is not there. Start it.');
  expect(words('incompatible')).toMatchObject({ action: 'showLog' });
  for (const state of ['starting', 'attaching', 'reconnecting'] as const) expect(words(state)!.busy).toBe(true);
  expect(words('reconnecting')!.words).toContain('New steps appear when the connection is back');
});
