import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { understood, wordsOf, type Said } from '../../../runtime/tasks/bridge/said.js';

/** In a metric that executes what the policy left behind, which may write lines of its own. */
const own = (line: string): Said => understood(line, 'metric', true);
const honest = (m: unknown): Said => understood(JSON.stringify(m), 'result', false);

describe('what a worker says', () => {
  it('asks, begins its metric and ends', () => {
    const ask = { ask: 'file', path: '/x' };
    expect(honest(ask)).toEqual({ kind: 'ask', name: 'file', what: ask });
    expect(honest({ stage: 'metric' })).toEqual({ kind: 'metric' });
    const end = { done: { score: 1, found: 'a', expected: 'b' }, faults: [] };
    expect(honest(end)).toEqual({
      kind: 'end',
      end: { kind: 'done', score: 1, found: 'a', expected: 'b' },
    });
    expect(honest({ ...end, faults: ['no network'] })).toEqual({ kind: 'fault', text: 'no network' });
  });
  it.each([
    ['an object that turns into no text', '{"faults":[{"toString":1,"valueOf":1}]}'],
    ['lists within one another', `{"faults":[${'['.repeat(12)}${']'.repeat(12)}]}`],
    ['null', '{"faults":[null]}'],
  ])('a fault that is %s is a failure of the file', (_what, line) => {
    expect(own(line)).toEqual({
      kind: 'end',
      end: { kind: 'raised', stage: 'metric', type: 'Fault', text: 'something that is no text' },
    });
    expect(understood(line, 'result', false)).toEqual({ kind: 'fault', text: 'something that is no text' });
  });
  it.each([
    ['nested deeply', `{"faults":[${'['.repeat(50_000)}${']'.repeat(50_000)}]}`],
    ['of too many values', `{"done":{"score":1},"faults":[${'[],'.repeat(10_000)}[]]}`],
    ['too long', `{"done":{"score":1,"found":"${'x'.repeat(1 << 16)}"}}`],
    ['no object', '3'],
    ['a second beginning', '{"stage":"metric"}'],
    ['a question', '{"ask":"file"}'],
    ['no end', '{}'],
    ['an end without a score', '{"done":{"score":null}}'],
    ['an end that is a list', '{"done":[],"raised":[]}'],
  ])('a line that is %s is no answer', (_what, line) => {
    expect(own(line).kind).toBe('lost');
  });
  it('a question must have a name, and no stage is said but the metric', () => {
    expect(honest({ ask: { toString: 1 } }).kind).toBe('lost');
    expect(honest({ stage: 'expected' }).kind).toBe('lost');
  });
  it('is cut to the length that is shown', () => {
    expect(wordsOf('x'.repeat(1000), 300)).toHaveLength(300);
    expect(wordsOf(7, 300)).toBe('7');
  });
  it('never throws', () => {
    const value = fc.oneof(
      fc.json().map((j) => JSON.parse(j) as unknown),
      fc.constant({ toString: 1, valueOf: 1 }),
    );
    const message = fc.dictionary(fc.constantFrom('ask', 'stage', 'faults', 'done', 'raised', 'files', 'x'), value);
    fc.assert(
      fc.property(
        fc.oneof(
          message.map((m) => JSON.stringify(m)),
          fc.string(),
        ),
        fc.boolean(),
        (line, executing) => {
          expect(['ask', 'metric', 'fault', 'end', 'lost']).toContain(understood(line, 'metric', executing).kind);
        },
      ),
    );
  });
});
