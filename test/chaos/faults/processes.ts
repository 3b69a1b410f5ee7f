import { setTimeout as after } from 'node:timers/promises';
import { DETECTED_MS, restart, signal, soon, type Fault, type Faults } from '../patient.js';
import { processes } from '../processes.js';

const kill = (word: string): Fault => ({
  phase: 'live',
  make: async (c) => {
    const pid = await soon(() => c.children(word)[0]);
    return pid !== undefined && signal(pid, 'SIGKILL');
  },
});
/** Stopped for good: ends when the daemon has found it and killed it. */
const hang = (word: string): Fault => ({
  phase: 'live',
  make: async (c) => {
    const pid = await soon(() => c.children(word)[0]);
    if (pid === undefined || !signal(pid, 'SIGSTOP')) return false;
    await c.until(() => !processes().some((p) => p.pid === pid), DETECTED_MS, `a stopped ${word} was found`);
    return true;
  },
});

export const processFaults: Faults = {
  'kill-daemon': {
    phase: 'live',
    make: async (c) => {
      await c.killDaemon();
      return restart(c);
    },
  },
  'stop-daemon': {
    phase: 'live',
    make: async (c) => {
      signal(c.pid, 'SIGSTOP');
      await after(2500);
      return signal(c.pid, 'SIGCONT');
    },
  },
  'kill-trainer': kill('__trainer'),
  'stop-trainer': hang('__trainer'),
  'kill-replica': kill('__replica'),
  'stop-replica': hang('__replica'),
  'end-index': { phase: 'live', make: (c) => c.command('end-index') },
  'hang-verifier': {
    phase: 'live',
    make: async (c) => {
      if (!(await c.at('verifier'))) return false;
      const had = c.tail.errors('task.verify');
      await c.until(() => c.tail.errors('task.verify') > had, DETECTED_MS, 'a verifier that hangs was found');
      return true;
    },
  },
};
