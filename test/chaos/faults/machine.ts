import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { Fault, Faults, Patient } from '../patient.js';

const AWAY_MS = 2500;

const noEngine = (c: Patient): string | undefined =>
  c.engine ? undefined : 'desktops are no containers of an engine that may be stopped';
/** What happens to the engine; it is there again when this resolves. */
const engine = (happens: (e: NonNullable<Patient['engine']>) => Promise<void>): Fault => ({
  phase: 'live',
  unless: noEngine,
  make: async (c) => {
    await happens(c.engine!);
    return true;
  },
});

export const machineFaults: Faults = {
  'clock-forward': { phase: 'live', make: (c) => c.command('3600000') },
  'clock-back': { phase: 'live', make: (c) => c.command('-5400000') },
  'full-disk': {
    phase: 'live',
    unless: (c) => (c.mounted ? undefined : 'only root can make a file system to fill'),
    make: async (c) => {
      const filler = join(c.disk, 'filler');
      const block = Buffer.alloc(1 << 20, 1);
      try {
        for (;;) writeFileSync(filler, block, { flag: 'a' });
      } catch {
        /* now it is full */
      }
      await after(AWAY_MS);
      rmSync(filler, { force: true });
      return true;
    },
  },
  'restart-engine': engine((e) => e.restart()),
  'stop-engine': engine(async (e) => {
    await e.stop();
    await after(AWAY_MS);
    await e.start();
  }),
  'kill-engine': engine(async (e) => {
    await e.kill();
    await e.start();
  }),
};
