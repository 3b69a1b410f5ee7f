import { describe, expect, it } from 'vitest';
import type { ControlMode, ControlState, DesktopRow, DesktopWork } from '../../../runtime/protocol/types.js';
import {
  sessionActions,
  mayAct,
  proposalWords,
  ProposalWatch,
  recordedWords,
  seenAfterMs,
  takesOverSoon,
  takeOverRefusal,
} from '../../../webview/live/session.js';
import { sessionWords } from '../../../webview/live/sessionWords.js';
import { controlState } from '../../helpers/pages/live/samples.js';

const ready = { daemon: 'ready' } as const;
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
const record = (o: Partial<ControlState> = {}): ControlState => controlState({ purpose: 'record', ...o }),
  taken = (o: Partial<ControlState> = {}): ControlState => controlState({ purpose: 'takeOver', ...o });

describe('stepping through', () => {
  it('is not offered where the policy has no steps left to propose', () => {
    const refusal = (o: Partial<ControlState>): string | undefined =>
      sessionActions(taken({ mode: 'human', ...o }), ready).get('stepMode');
    expect([refusal({}), refusal({ left: 0 })]).toEqual([undefined, 'The policy has no steps left']);
  });
});

describe('the words of a control session', () => {
  const endings: Partial<ControlState>[] = [
    { verdict: { outcome: 'success', reward: 1 }, kept: { rollout: 'd1', pooled: true } },
    {
      verdict: { outcome: 'success', reward: 1 },
      kept: { rollout: 'd1', pooled: false, why: 'The same is already in the run.' },
    },
    { verdict: { outcome: 'failure', reward: 0 } },
    { verdict: { outcome: 'failure', reward: 0 }, kept: { rollout: 'd1', pooled: false } },
    { verdict: { outcome: 'failure', reward: 0 }, kept: { rollout: 'd1', pooled: true } },
    { verdict: { outcome: 'error' } },
    { error: { kind: 'desktop.lost', message: 'The desktop stopped answering.', remedy: 'Look at the log.' } },
    { abandonedAt: 1 },
    {},
  ];
  it('every state says what happens next, in its own words', () => {
    const seen = new Map<string, string>();
    for (const make of [record, taken]) {
      const all = [
        ...(['starting', 'human', 'policy', 'step', 'verifying'] as const satisfies readonly ControlMode[]).map(
          (mode) => make({ mode }),
        ),
        make({ mode: 'step', proposal: { id: 1, actions: [] } }),
        make({ mode: 'step', doing: 'typing' }),
        ...endings.map((e) => make({ mode: 'ended', ...e })),
      ];
      for (const c of all) {
        const w = sessionWords(c, ready);
        expect(w.says, JSON.stringify(c)).toMatch(/\.$/);
        expect(w.word).not.toBe('');
        expect(w.still).toBe(c.mode === 'ended');
        seen.set(`${w.word} ${w.says}`, c.mode);
      }
    }
    expect(seen.size).toBeGreaterThan(20);
  });
  it('a fault is no failure, and no reward is spoken of', () => {
    const w = sessionWords(
      record({
        mode: 'ended',
        verdict: {
          outcome: 'error',
          error: { kind: 'task.verify', message: 'The verifier could not read the file.', remedy: 'Look at the log.' },
        },
      }),
      ready,
    );
    expect(w.word).toBe('Could not be judged');
    expect(w.says).toContain('has no reward');
    expect(
      sessionWords(
        record({
          mode: 'ended',
          verdict: { outcome: 'success', reward: 1 },
          error: { kind: 'store.io', message: 'The disk is full.', remedy: 'Make room.' },
        }),
        ready,
      ),
    ).toMatchObject({
      word: 'Success',
      says: 'It could not be saved: The disk is full. Make room. Choose Keep to try again.',
    });
    expect(
      sessionWords(
        record({
          mode: 'ended',
          verdict: { outcome: 'success', reward: 1 },
          kept: { rollout: 'x', pooled: false, why: 'discarded' },
        }),
        ready,
      ).word,
    ).toBe('Discarded');
    expect(
      sessionWords(
        record({ mode: 'ended', error: { kind: 'desktop.lost', message: 'Gone.', remedy: 'Again.' } }),
        ready,
      ).word,
    ).toBe('Desktop lost');
  });
  it('a lost connection and a stopped runtime come before what the session was; an end stays an end', () => {
    expect(sessionWords(record(), { daemon: 'reconnecting' })).toMatchObject({ word: 'Connection lost', still: true });
    expect(sessionWords(taken(), { daemon: 'stopped' }).says).toContain('retried');
    expect(
      sessionWords(record({ mode: 'ended', verdict: { outcome: 'success' }, kept: { rollout: 'x', pooled: true } }), {
        daemon: 'stopped',
      }).word,
    ).toBe('Success');
    expect(sessionWords(record(), { ...ready, forgotten: true }).word).toBe('Ended');
    expect(
      sessionWords(record({ mode: 'ended', verdict: { outcome: 'failure' } }), { ...ready, discarded: true }).says,
    ).toBe('Nothing was kept.');
  });
  it('says who did a step, and what is proposed', () => {
    expect(
      recordedWords({
        index: 2,
        origin: 'human',
        actions: [{ type: 'click', at: { x: 3, y: 4 } }],
        frame: { hash: 'a', width: 1, height: 1 },
      }),
    ).toBe('Step 3, human: click at 3,4');
    expect(proposalWords({ id: 1, actions: [{ type: 'hotkey', keys: ['enter'] }], probability: 0.78 })).toBe(
      'press enter · 78 %',
    );
  });
});

describe('what can be done', () => {
  it('taking over is refused with a reason in states that do not allow it', () => {
    const why = (state: DesktopWork, o: Partial<DesktopRow> = {}): string | undefined =>
      takeOverRefusal({ desktop: 'desktop-1', daemon: 'ready', gone: false, row: row({ state, ...o }) });
    for (const state of ['setup', 'observe', 'decide', 'act', 'settle'] as const) expect(why(state)).toBeUndefined();
    for (const state of ['starting', 'idle', 'resetting', 'verify', 'broken', 'stopped'] as const)
      expect(why(state)).toMatch(/\w/);
    const soon = (['starting', 'idle', 'resetting', 'setup', 'act', 'verify', 'broken', 'stopped'] as const).filter(
      (state) => takesOverSoon({ desktop: 'desktop-1', daemon: 'ready', gone: false, row: row({ state }) }),
    );
    expect(soon).toEqual(['starting', 'idle', 'resetting', 'verify']);
    expect(why('act', { rollout: undefined })).toBe('No rollout is running on it');
    expect(takeOverRefusal({ desktop: 'd', daemon: 'reconnecting', gone: false, row: row() })).toMatch(/runtime/);
    expect(takeOverRefusal({ desktop: 'd', daemon: 'ready', gone: true })).toMatch(/gone/);
  });
  it('a person acts in human and step mode only, and only while the runtime is there', () => {
    const modes = ['starting', 'human', 'policy', 'step', 'verifying', 'ended'] as const;
    expect(modes.filter((mode) => mayAct(taken({ mode }), ready))).toEqual(['human', 'step']);
    expect(mayAct(taken(), { daemon: 'reconnecting' })).toBe(false);
    expect(mayAct(record(), { ...ready, discarded: true })).toBe(false);
    expect(mayAct(undefined, ready)).toBe(false);
  });
  it('offers what makes sense and says why the rest waits', () => {
    expect([...sessionActions(record(), ready).keys()]).toEqual([
      'finish',
      'wait',
      'cannot',
      'answer',
      'drop',
      'discard',
    ]);
    expect(sessionActions(record({ steps: [] }), ready).get('drop')).toBe('No step is recorded yet');
    expect([...sessionActions(taken(), ready).keys()]).toEqual([
      'handBack',
      'stepMode',
      'finish',
      'wait',
      'cannot',
      'answer',
    ]);
    expect([...sessionActions(taken({ mode: 'policy' }), ready).keys()]).toEqual(['pause', 'stepMode']);
    expect(sessionActions(taken({ mode: 'step' }), ready).get('accept')).toBe('There is no proposal yet');
    expect([...sessionActions(taken({ mode: 'verifying' }), ready).values()].every((w) => w !== undefined)).toBe(true);
    expect(
      [...sessionActions(record(), { daemon: 'reconnecting' }).values()].every(
        (w) => w === 'The runtime cannot be reached',
      ),
    ).toBe(true);
    expect(sessionActions(record({ mode: 'ended' }), ready).size).toBe(0);
    // The steps of a rollout are written down as they happen.
    expect(sessionActions(taken(), ready).has('drop')).toBe(false);
    expect(sessionActions(taken({ mode: 'starting' }), ready).get('handBack')).toBeUndefined();
  });
});

describe('a proposal and the Enter that answers it', () => {
  it('is accepted once, and only after it could be seen', () => {
    const w = new ProposalWatch();
    expect(w.acceptable(1e9)).toBeUndefined();
    expect(w.has(3)).toBe(true);
    expect(w.acceptable(1e9)).toBeUndefined();
    w.drawn(1000);
    w.drawn(5000);
    expect(w.acceptable(1000 + seenAfterMs - 1)).toBeUndefined();
    expect(w.acceptable(1000 + seenAfterMs)).toBe(3);
    w.answer('accepted');
    expect([w.state, w.acceptable(1e9), w.acceptable(1e9, true)]).toEqual(['accepted', undefined, undefined]);
    expect(w.has(3)).toBe(false);
    expect(w.has(4)).toBe(true);
    // The Enter meant for 3.
    w.drawn(2000);
    expect(w.acceptable(2100)).toBeUndefined();
    expect(w.acceptable(2300)).toBe(4);
  });
  it('is overridden, and only the button goes back on that; a failed acceptance may be tried again', () => {
    const w = new ProposalWatch();
    w.has(1);
    w.drawn(0);
    w.answer('overridden');
    expect([w.state, w.acceptable(1e6), w.acceptable(1e6, true)]).toEqual(['overridden', undefined, 1]);
    w.answer('accepted');
    expect(w.state).toBe('overridden');
    w.reopen(1);
    w.answer('accepted');
    w.reopen(1);
    expect(w.acceptable(1e6)).toBe(1);
  });
});
