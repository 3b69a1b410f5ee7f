import { describe, expect, it } from 'vitest';
import { sessionActions } from '../../../webview/live/session.js';
import { sessionWords } from '../../../webview/live/sessionWords.js';
import type { ControlState } from '../../../runtime/protocol/types.js';
import { listed, tried, tryStep } from '../../helpers/pages/trySamples.js';

const ready = { daemon: 'ready' } as const;
const ended = (o: Partial<ControlState> = {}, trial: Parameters<typeof tried>[1] = {}): ControlState =>
  tried({ mode: 'ended', steps: listed([tryStep(0, 'a')]), ...o }, trial);
const word = (c: ControlState): string => sessionWords(c, ready).word;

describe('a policy that is tried', () => {
  it('is paused, stepped through and stopped; without a verifier there is nothing to finish for', () => {
    expect([...sessionActions(tried(), ready).keys()]).toEqual(['pause', 'stepMode', 'stop']);
    expect([...sessionActions(tried({ mode: 'human' }), ready).keys()]).toEqual([
      'handBack',
      'stepMode',
      'stop',
      'wait',
    ]);
    expect([...sessionActions(tried({ mode: 'human' }, { verified: true }), ready).keys()]).toEqual([
      'handBack',
      'stepMode',
      'stop',
      'finish',
      'wait',
      'cannot',
      'answer',
    ]);
    // It can be stopped also while a server thinks, and not without a runtime.
    expect(sessionActions(tried(), ready).get('stop')).toBeUndefined();
    expect(sessionActions(tried(), { daemon: 'reconnecting' }).get('stop')).toBe('The runtime cannot be reached');
    expect(sessionActions(ended(), ready).size).toBe(0);
  });

  it('says how it ended: judged, not judged, stopped, by a fault, with nothing', () => {
    expect(word(ended())).toBe('The policy is done');
    expect(word(ended({}, { stopped: true }))).toBe('Stopped');
    expect(word(ended({ verdict: { outcome: 'success', reward: 1 } }))).toBe('Success');
    expect(word(ended({ verdict: { outcome: 'failure', reward: 0 } }))).toBe('Not solved');
    expect(word(ended({ steps: [] }))).toBe('Ended');
    const idle = { kind: 'timeout', message: 'Nothing was done.', remedy: 'Try again.' } as const;
    expect(word(ended({ error: idle }))).toBe('Out of time');
    expect(
      sessionWords(ended({ verdict: { outcome: 'error', error: { ...idle, kind: 'policy.remote' } } }), ready),
    ).toMatchObject({
      word: 'Ended with an error',
      says: 'Nothing was done. Try again.',
      tone: 'bad',
    });
    // What a person says of one that was stopped for want of anybody is what it is then.
    expect(word(ended({ error: idle, verdict: { outcome: 'failure', reward: 0 } }))).toBe('Not solved');
    expect(
      sessionWords(ended({ verdict: { outcome: 'success', reward: 1 } }, { heldOut: true }), ready).says,
    ).toContain('for evaluation only');
  });

  it('says what becomes of it without its runtime', () => {
    expect(sessionWords(tried(), { daemon: 'reconnecting' }).says).toContain('kept for a minute');
    expect(sessionWords(tried(), { daemon: 'stopped' }).word).toBe('Runtime stopped');
    expect(sessionWords(tried(), { ...ready, forgotten: true }).word).toBe('Ended');
    expect(sessionWords(ended(), { ...ready, discarded: true }).word).toBe('Discarded');
  });
});
