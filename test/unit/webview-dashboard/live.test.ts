import { describe, expect, it } from 'vitest';
import type {
  DesktopRow,
  DesktopWork,
  StepView,
  TrajectoryRow,
  TrajectoryView,
} from '../../../runtime/protocol/types.js';
import { outcomeWords, reduce, stateWords, stepWords, type Message, type State } from '../../../webview/live/state.js';

const row = (o: Partial<DesktopRow> = {}): DesktopRow => ({
  desktop: 'desktop-1',
  run: '/r',
  provider: 'local',
  state: 'act',
  since: 0,
  resets: 0,
  replaced: 0,
  rollout: 'r1',
  ...o,
});
const step = (index: number): StepView => ({
  index,
  at: 1,
  frame: { hash: 'x', width: 1, height: 1 },
  actions: [],
  origin: 'policy',
  settled: true,
  timings: { observe: 0, queue: 0, decide: 0, perform: 0, settle: 0 },
});
const trajectory = (rollout: string, outcome: TrajectoryRow['outcome'] = 'running'): TrajectoryRow => ({
  rollout,
  task: 't',
  family: 'f',
  instruction: '',
  outcome,
  provenance: 'rollout',
  steps: 1,
  cap: 6,
});
const start: State = { desktop: 'desktop-1', daemon: 'ready', gone: false };
const after = (...ms: readonly Message[]): State => ms.reduce(reduce, start);

describe('the watched desktop', () => {
  it('follows the steps of the rollout under way and no other', () => {
    const s = after(
      { type: 'row', row: row() },
      {
        type: 'events',
        events: [
          { seq: 1, at: 1, type: 'step', rollout: 'r1', step: step(2) },
          { seq: 2, at: 2, type: 'step', rollout: 'r9', step: step(7) },
        ],
      },
    );
    expect(s.step?.index).toBe(2);
    expect(
      reduce(s, {
        type: 'trajectory',
        view: { row: trajectory('r1'), steps: [step(0), step(1)], framesDir: '', live: true } satisfies TrajectoryView,
      }).step?.index,
    ).toBe(2);
    expect(reduce(s, { type: 'row', row: row({ rollout: 'r2' }) }).step).toBeUndefined();
    expect(reduce(s, { type: 'row', row: row({ state: 'settle' }) }).step?.index).toBe(2);
  });
  it('keeps an outcome until the next rollout begins', () => {
    const s = after(
      { type: 'row', row: row() },
      { type: 'events', events: [{ seq: 1, at: 1, type: 'ended', row: trajectory('r1', 'success') }] },
    );
    expect(s.ended?.outcome).toBe('success');
    expect(reduce(s, { type: 'row', row: row({ rollout: 'r2' }) }).ended).toBeUndefined();
  });
  it('has words for every state, and knows when nothing moves', () => {
    for (const state of [
      'starting',
      'idle',
      'resetting',
      'setup',
      'observe',
      'decide',
      'act',
      'settle',
      'verify',
      'broken',
      'stopped',
    ] as const satisfies readonly DesktopWork[]) {
      const w = stateWords(after({ type: 'row', row: row({ state }) }));
      expect(w.says).toMatch(/\.$/);
      expect(w.still).toBe(state === 'broken' || state === 'stopped');
    }
    for (const daemon of ['stopped', 'starting', 'attaching', 'reconnecting', 'incompatible', 'failed'] as const)
      expect(stateWords({ ...start, daemon }).still).toBe(true);
    expect(stateWords(after({ type: 'row', row: row() }, { type: 'row' })).word).toBe('Ended');
    expect(stateWords(start).word).toBe('Looking for the desktop');
    // One that is not listed never comes; a picture is the last one only where there was one.
    const never = stateWords(after({ type: 'row' }));
    expect([never.word, never.says.includes('last picture')]).toEqual(['Ended', false]);
    expect(stateWords(after({ type: 'screen', at: 1 }, { type: 'row' })).says).toMatch(/last picture\.$/);
    expect(
      stateWords(after({ type: 'row', row: row() }, { type: 'row' }, { type: 'row', row: row({ rollout: 'r3' }) }))
        .word,
    ).toBe('Act');
  });
  it('says steps and outcomes', () => {
    expect(stepWords(row({ step: 2, cap: 9 }))).toBe('step 3 of 9');
    expect(stepWords(row({ step: 9, cap: 9 }))).toBe('step 9 of 9');
    expect(stepWords(row({ step: 2, cap: 9, state: 'verify' }))).toBe('step 2 of 9');
    expect(stepWords(row())).toBe('');
    expect(outcomeWords({ ...trajectory('r', 'failure'), truncated: true })).toBe('Failed: out of steps');
  });
});
