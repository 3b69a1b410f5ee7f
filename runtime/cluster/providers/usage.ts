import { readdir, readFile } from 'node:fs/promises';
import type Docker from 'dockerode';
import { orUndefined } from '../../concurrency/failures.js';
import { withDeadline } from '../../concurrency/deadline.js';
import type { Usage } from '../drivers/desktop.js';
import { outOfMemory } from './cgroups.js';

/** Clock ticks of /proc, per second: what Linux gives programs on every architecture. */
const HZ = 100;
const ASK_MS = 1500;

/**
 * Processor time, ms, that the programs in a desktop whose /proc is at `proc` have used or waited for (on a crowded
 * machine a busy program mostly waits), and that those of their children used that have ended. PID 1 is the agent,
 * which is no program.
 */
export async function processorMs(proc: string): Promise<number> {
  const pids = (await readdir(proc)).filter((n) => /^\d+$/.test(n) && n !== '1'),
    each = await Promise.all(
      pids.map(async (pid) => {
        const stat = await orUndefined(readFile(`${proc}/${pid}/stat`, 'utf8'), 'it has ended meanwhile');
        if (stat === undefined) return 0;
        const f = stat.slice(stat.lastIndexOf(')') + 2).split(' '),
          ticks = [11, 12, 13, 14].reduce((sum, i) => sum + Number(f[i]), 0);
        return (ticks * 1000) / HZ + (await waitedMs(`${proc}/${pid}/task`));
      }),
    );
  return each.reduce((a, b) => a + b, 0);
}

/** How long the threads of a process have waited for a processor, ms; 0 where the kernel does not say. */
async function waitedMs(tasks: string): Promise<number> {
  const threads = (await orUndefined(readdir(tasks), 'it has ended meanwhile')) ?? [],
    waits = await Promise.all(
      threads.map(async (t) => {
        const schedstat = await orUndefined(readFile(`${tasks}/${t}/schedstat`, 'utf8'), 'it has ended meanwhile');
        return Number(schedstat?.split(' ')[1] ?? 0);
      }),
    );
  return waits.reduce((a, b) => a + b, 0) / 1e6;
}

/** Control groups of a process, of any controller, as this process sees them. */
async function groupsOf(pid: number): Promise<string[]> {
  const text = (await orUndefined(readFile(`/proc/${pid}/cgroup`, 'utf8'), 'its files cannot be read from here')) ?? '';
  return text
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [, controllers, path] = line.split(':');
      if (path === undefined || controllers === undefined) return [];
      return controllers === '' ? [`/sys/fs/cgroup${path}`] : [`/sys/fs/cgroup/${controllers}${path}`];
    });
}

/**
 * Memory and processor figures of a container's programs. `pid`: PID 1 of a container whose files can be
 * opened; without it the engine is asked, which only knows whether memory has ever run out.
 */
export function containerUsage(container: Docker.Container, pid: number | undefined): Usage {
  const groups = pid === undefined ? Promise.resolve([]) : groupsOf(pid);
  let known = 0;
  return {
    async outOfMemory() {
      const counted = await outOfMemory(await groups);
      if (counted !== undefined) return (known = counted);
      const { State } = await withDeadline(ASK_MS, [], (abortSignal) => container.inspect({ abortSignal } as object));
      // After one time that was survived nobody can tell what ended it.
      return (known = known > 0 ? known : State.OOMKilled ? 1 : 0);
    },
    processorMs: async () => (pid === undefined ? undefined : processorMs(`/proc/${pid}/root/proc`)),
  };
}
