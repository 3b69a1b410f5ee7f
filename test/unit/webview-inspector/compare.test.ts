import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { GroupView, StepView, TrajectoryView } from '../../../runtime/protocol/types.js';
import {
  diverge,
  differenceAt,
  differences,
  divergenceWords,
  nextDifference,
} from '../../../webview/compare/diverge.js';
import { initialCompare, reduceCompare } from '../../../webview/compare/state.js';
import { bestContrast } from '../../../webview/inspector/contrast.js';

/** A step from two letters: its screen and its action. */
const make = (words: string): StepView[] =>
  words
    .split(' ')
    .filter(Boolean)
    .map((w, index) => ({
      index,
      at: index,
      frame: { hash: w[0]!.repeat(64), width: 640, height: 400 },
      actions: [{ type: 'click', at: { x: w.charCodeAt(1), y: 7 } }],
      origin: 'policy',
      settled: true,
      timings: { observe: 0, queue: 0, decide: 0, perform: 0, settle: 0 },
    }));
const view = (rollout: string, steps: readonly StepView[], more: Partial<TrajectoryView> = {}): TrajectoryView => ({
  row: {
    rollout,
    task: 't',
    family: 'f',
    instruction: 'i',
    outcome: 'success',
    provenance: 'rollout',
    steps: steps.length,
    cap: 9,
  },
  steps,
  framesDir: '/f',
  live: false,
  ...more,
});

describe('divergence', () => {
  it('says where and what', () => {
    expect(diverge(make('aA bB cC'), make('aA bX cC'))).toEqual({ at: 1, what: 'action', action: 1 });
    expect(diverge(make('aA bB cC'), make('aA xB cX'))).toEqual({ at: 1, what: 'screen', screen: 1, action: 2 });
    expect(diverge(make('aA'), make('bB'))).toEqual({ at: 0, what: 'both', screen: 0, action: 0 });
    expect(diverge(make('aA bB'), make('aA'))).toEqual({ at: 1, what: 'length' });
    expect(diverge(make('aA bB'), make('aA bB'))).toBeUndefined();
  });
  it('describes the first difference in words', () => {
    expect(divergenceWords(make('aA bB'), make('aA bX'))).toBe(
      'The same until step 1. At step 2, on the same screen, left: click at 66,7; right: click at 88,7.',
    );
    expect(divergenceWords(make('aA bB'), make('aA'))).toBe(
      'The same until step 1. The right one has no step 2; the left one continues.',
    );
    expect(divergenceWords(make('aA'), make('aA'))).toContain('The same actions');
    expect(divergenceWords([], [])).toBe('Neither has a step yet.');
  });
  it('the order of an action’s fields is no difference', () => {
    const a = make('aA'),
      b = [{ ...a[0]!, actions: [JSON.parse('{"at":{"y":7,"x":65},"type":"click"}') as StepView['actions'][number]] }];
    expect(differenceAt(a, b, 0)).toBeUndefined();
  });
  const list = fc
    .array(fc.tuple(fc.constantFrom('a', 'b'), fc.constantFrom('A', 'B')), { maxLength: 20 })
    .map((x) => make(x.map((p) => p.join('')).join(' ')));
  it('nothing differs before it, it is the same from both sides, and jumps visit every difference', () => {
    fc.assert(
      fc.property(list, list, (l, r) => {
        const d = diverge(l, r),
          all = differences(l, r);
        for (let i = 0; i < (d?.at ?? Math.max(l.length, r.length)); i++) expect(differenceAt(l, r, i)).toBeUndefined();
        expect(diverge(r, l)).toEqual(d);
        expect(d === undefined).toBe(l.length === r.length && all.size === 0);
        const seen: number[] = [];
        for (let i = nextDifference(all, -1, 1); i !== undefined; i = nextDifference(all, i, 1)) seen.push(i);
        expect(seen).toEqual([...all.keys()]);
        if (seen.length) expect(nextDifference(all, Infinity, -1)).toBe(seen.at(-1));
      }),
    );
  });
});

describe('the page', () => {
  const start = initialCompare({ kind: 'compare', run: '/run', left: 'l', right: 'r' }, 'ready');
  const both = reduceCompare(
    reduceCompare(start, { type: 'loaded', side: 'left', view: view('l', make('aA bB cC')) }),
    { type: 'loaded', side: 'right', view: view('r', make('aA bX')) },
  );
  it('opens at the first difference once both are there', () => {
    const left = reduceCompare(start, { type: 'loaded', side: 'left', view: view('l', make('aA bB')) });
    // The one that is there can be looked at meanwhile, and where the other never comes.
    expect(left).toMatchObject({ selected: 0, chosen: false });
    const error = { kind: 'not.found', message: 'No rollout r.', remedy: '' };
    expect(reduceCompare(left, { type: 'failed', side: 'right', error }).selected).toBe(0);
    expect(both.selected).toBe(1);
  });
  it('the position reaches the end of the longer one, and choosing it keeps it', () => {
    const s = reduceCompare(both, { type: 'select', at: 99 });
    expect(s.selected).toBe(2);
    expect(reduceCompare(s, { type: 'loaded', side: 'right', view: view('r', make('xX xX xX xX')) }).selected).toBe(2);
  });
  it('another rollout on one side is asked for, and late answers for the old one are dropped', () => {
    const s = reduceCompare(both, { type: 'choose', side: 'right', rollout: 'q' });
    expect(s.right).toEqual({ rollout: 'q', stale: true });
    expect(reduceCompare(s, { type: 'loaded', side: 'right', view: view('r', []) })).toBe(s);
  });
  it('swap exchanges the sides, and a live side grows', () => {
    expect(reduceCompare(both, { type: 'swap' })).toMatchObject({ left: { rollout: 'r' }, right: { rollout: 'l' } });
    const live = reduceCompare(both, { type: 'loaded', side: 'right', view: view('r', make('aA bX'), { live: true }) });
    const grown = reduceCompare(live, {
      type: 'events',
      events: [{ seq: 1, at: 1, type: 'step', rollout: 'r', step: make('aA bX cC')[2]! }],
    });
    expect(grown.right.view!.steps.length).toBe(3);
    expect(grown.left).toBe(live.left);
  });
});

it('the sibling offered for comparing has another outcome, is no error where it can be, and is near in length', () => {
  const member = (
    rollout: string,
    outcome: GroupView['members'][number]['outcome'],
    steps: number,
  ): GroupView['members'][number] => ({ rollout, outcome, steps, injected: false });
  const g: GroupView = {
    id: 'g',
    family: 'f',
    task: 't',
    state: 's',
    members: [
      member('me', 'success', 8),
      member('a', 'success', 8),
      member('b', 'failure', 20),
      member('c', 'failure', 9),
      member('d', 'error', 8),
      member('e', 'failure', 0),
    ],
  };
  expect(bestContrast(g, 'me')).toBe('c');
  expect(bestContrast(undefined, 'me')).toBeUndefined();
  expect(bestContrast({ ...g, members: [member('me', 'success', 8)] }, 'me')).toBeUndefined();
});
