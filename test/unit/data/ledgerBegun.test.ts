import { describe, expect, it } from 'vitest';
import { Ledger } from '../../../runtime/data/ledger.js';
import { id, type GroupId, type RolloutId } from '../../../runtime/domain/index.js';

describe('how many rollouts began', () => {
  it('counts those that were on a desktop, and those that a fault ended before, once each; those that ended with a verdict apart', () => {
    const l = new Ledger(),
      r = (n: number): RolloutId => id<RolloutId>(`r${n}`);
    for (let n = 1; n <= 5; n++) l.move({ rollout: r(n), to: { at: 'queued' } });
    expect(l.counts().begun).toBe(0);
    l.move({ rollout: r(1), to: { at: 'running' } });
    l.move({ rollout: r(2), to: { at: 'running' } });
    l.move({ rollout: r(1), to: { at: 'recorded' } });
    l.move({ rollout: r(1), to: { at: 'grouped', group: id<GroupId>('g') } });
    l.move({ rollout: r(3), to: { at: 'retired', reason: 'error' } });
    // Planned, and the run was stopped before a desktop was free.
    l.move({ rollout: r(4), to: { at: 'retired', reason: 'stopped' } });
    expect(l.counts()).toMatchObject({ generated: 5, begun: 3, judged: 1 });
    // Cut off by a kill on its desktop.
    l.move({ rollout: r(2), to: { at: 'retired', reason: 'lost' } });
    expect(l.counts()).toMatchObject({ begun: 3, judged: 1 });
  });
});
