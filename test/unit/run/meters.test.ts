import { expect, it } from 'vitest';
import { id, type DesktopId } from '../../../runtime/domain/index.js';
import type { ModelPoolStatus } from '../../../runtime/rollout/types.js';
import { Meters } from '../../../runtime/run/meters.js';

it('a desktop is busy from its reset to the end of its rollout; the policy’s time is not its work', () => {
  const m = new Meters(0),
    desktop = id<DesktopId>('d1'),
    none = { replicas: [], waiting: 0, version: 0, publishing: false };
  const lane = (phase: 'setup' | 'decide' | 'idle' | 'released', at: number): void => {
    m.onScheduler({ type: 'lane', desktop, phase, at });
  };
  m.onPool({ type: 'state', desktop, state: 'leased', at: 0 });
  lane('idle', 0);
  lane('setup', 100);
  lane('decide', 300);
  lane('released', 400);
  m.onPool({ type: 'state', desktop, state: 'resetting', at: 400 });
  m.onPool({ type: 'state', desktop, state: 'ready', at: 700 });
  const u = m.utilisation(1000, 1, none);
  expect([u.desktops, u.desktopsStrict]).toEqual([0.6, 0.5]);
});

it('replicas are busy with what they decide from its start on, not with evaluations before it', () => {
  const worked = (busyMs: number) => ({
    replicas: [
      { id: 'a', busyMs },
      { id: 'b', busyMs },
    ] as unknown as ModelPoolStatus['replicas'],
    waiting: 0,
    version: 0,
    publishing: false,
  });
  const m = new Meters(5000, worked(4000));
  expect(m.utilisation(6000, 1, worked(4250)).replicas).toBe(0.25);
  expect(m.utilisation(6000, 1, worked(10)).replicas).toBe(0);
});
