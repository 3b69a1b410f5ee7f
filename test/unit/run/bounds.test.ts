import { describe, expect, it } from 'vitest';
import { bounds } from '../../../runtime/run/bounds.js';

describe('the bound X*', () => {
  const m = {
    desktops: 6,
    rolloutSeconds: 3,
    steps: 4,
    replicas: 2,
    decisionsPerSecond: 50,
    trainedPerRollout: 2,
    trainer: { perUpdate: 24, seconds: 10, share: 0.6 },
  };
  it('is the least of desktops, replicas and trainer', () => {
    expect(bounds(m)).toEqual({
      by: 'desktops',
      rolloutsPerHour: 7200,
      stepsPerMinute: 480,
      trainedActionsPerMinute: 240,
    });
    expect(bounds({ ...m, decisionsPerSecond: 2 })).toMatchObject({ by: 'replicas', rolloutsPerHour: 3600 });
    expect(bounds({ ...m, trainer: { perUpdate: 6, seconds: 10, share: 0.6 } })).toMatchObject({
      by: 'trainer',
      rolloutsPerHour: 3600,
    });
  });
  it('of the newest rollouts stands beside their rates, and what is trained has that of the whole run', () => {
    expect(bounds({ ...m, newest: { rolloutSeconds: 1.5, steps: 3 } })).toEqual({
      by: 'desktops',
      rolloutsPerHour: 14_400,
      stepsPerMinute: 720,
      trainedActionsPerMinute: 240,
    });
  });
  it('is not told before anything was measured', () => {
    expect(bounds({ ...m, rolloutSeconds: 0 })).toBeUndefined();
  });
});
