import { describe, expect, it } from 'vitest';
import { reportOf, type ChaosReport, type Made } from '../../chaos/report.js';

const fault = (ms: number, others: number): Made => ({ kind: 'kill-trainer', ms, others, redone: 0, inFlight: 0 });
const reported = (...made: Made[]): ChaosReport =>
  reportOf({
    made,
    stopped: [],
    strict: undefined,
    last: undefined,
    orphans: [],
    problems: [],
    rest: { seed: 1, provider: 'local', steps: 1, versions: 1, events: 1, missed: [], impossible: {} },
  });

describe('the report of faults', () => {
  it('judges how long recovery took where the machine was its own, and says of how many faults', () => {
    const r = reported(fault(900, 0.1), fault(4000, 0.5), fault(9000, 0.51));
    expect(r.recovery_max_ms).toBe(9000);
    expect(r.bars).toEqual([{ name: 'recovery_max_ms', value: 4000, goal: 5000, judged: 2, ok: true }]);
    expect([r.problems, r.slow]).toEqual([[], []]);
  });
  it('a recovery over the goal is slow, no fault of what was recorded, and the bar is not met', () => {
    const r = reported(fault(900, 0), fault(5001, 0.2));
    expect(r.bars).toMatchObject([{ value: 5001, judged: 2, ok: false }]);
    expect(r.slow).toEqual(['kill-trainer: the run went on after 5001 ms, over the goal of 5000']);
    expect(r.problems).toEqual([]);
  });
  it('where nothing could be judged the bar is not met, has no value, and says why', () => {
    const busy = reported(fault(900, 0.62), fault(900, 0.98)).bars[0]!;
    expect(busy).toMatchObject({ judged: 0, ok: false });
    expect(busy.value).toBeUndefined();
    expect(busy.words).toBe(
      'No recovery was judged: at each of the 2 faults others used more than 50 % of the processors (62 to 98 %).',
    );
    expect(reported().bars).toMatchObject([
      { judged: 0, ok: false, words: 'No recovery was judged: no fault was made.' },
    ]);
  });
});
