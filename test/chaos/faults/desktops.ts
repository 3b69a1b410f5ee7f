import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import { DETECTED_MS, signal, soon, type Fault, type Faults, type Patient } from '../patient.js';
import { processes, type Process } from '../processes.js';

const AWAY_MS = 2000;

/** Everything in one desktop, PID 1 first, whatever it is. */
async function inside(c: Patient): Promise<readonly Process[]> {
  const all = processes(),
    [top] = c.engine ? await c.engine.desktops() : c.children('bwrap');
  const out = all.filter((p) => p.pid === top);
  for (let i = 0; i < out.length; i++) out.push(...all.filter((p) => p.parent === out[i]!.pid));
  return out;
}
/** A signal to what of a desktop `fits`. `ms`: it goes on after that; `found`: until the desktop was replaced. */
const some = (fits: (what: string) => boolean, name: NodeJS.Signals, then?: number | 'found'): Fault => ({
  phase: 'live',
  slow: then === 'found',
  make: async (c) => {
    const hit = await soon(async () => {
      const found = (await inside(c)).filter((p) => fits(p.what));
      return found.length > 0 ? found : undefined;
    });
    if (!hit) return false;
    for (const p of hit) signal(p.pid, name);
    if (then === 'found') {
      const there = new Set(hit.map((p) => p.pid));
      await c.until(() => !processes().some((p) => there.has(p.pid)), DETECTED_MS, 'a desktop that hangs was replaced');
    } else if (then !== undefined) {
      await after(then);
      for (const p of hit) signal(p.pid, 'SIGCONT');
    }
    return true;
  },
});
const applications = (what: string): boolean => !/bwrap|agent\.py|relay\.py|Xvfb|jwm|prlimit|containerd/.test(what);
const isX = (what: string): boolean => /\bXvfb\b/.test(what);

/** A program in the desktop that asks for memory until it is refused. Resolves when it is gone. */
const hog: Fault = {
  phase: 'live',
  unless: () => (process.getuid?.() === 0 ? undefined : 'only root can start a program in a desktop from outside'),
  make: async (c) => {
    const agent = await soon(async () => (await inside(c)).find((p) => /agent\.py/.test(p.what)));
    if (!agent) return false;
    const joins = memoryGroups(agent.pid).map((g) => `echo $$ > ${g}/cgroup.procs`);
    if (joins.length === 0) return false;
    // A bound of its own, should the desktop have none.
    const script = [...joins, 'ulimit -v 4000000', `exec nsenter -t ${agent.pid} -m -p python3 -c "$0"`].join('\n');
    const program = 'x=[]\nwhile True: x.append(bytearray(b"x" * (1<<20)))';
    const child = spawn('sh', ['-c', script, program], { stdio: 'ignore' });
    await new Promise((gone) => child.once('exit', gone));
    return true;
  },
};
/** Control groups that limit a process's memory. */
function memoryGroups(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8')
      .trim()
      .split('\n')
      .flatMap((line) => {
        const [, controllers, path] = line.split(':');
        if (controllers === '') return [`/sys/fs/cgroup${path}`];
        return controllers!.split(',').includes('memory') ? [`/sys/fs/cgroup/memory${path}`] : [];
      });
  } catch {
    return [];
  }
}

const local = (f: Fault): Fault => ({ ...f, unless: (c) => (c.engine ? 'desktops are containers' : f.unless?.(c)) });
const docker = (f: Fault): Fault => ({
  ...f,
  unless: (c) => (c.engine ? f.unless?.(c) : 'desktops are no containers'),
});
const container = (how: 'kill' | 'pause'): Fault => ({
  phase: 'live',
  make: (c) => (how === 'kill' ? c.engine!.killOne() : c.engine!.pauseOne(AWAY_MS)),
});

const sandbox = (phase: Fault['phase']): Fault => ({
  phase,
  make: async (c) => {
    // A desktop has its agent; what only asks whether sandboxes can be made has none.
    const pid = await soon(async () => {
      const all = await inside(c);
      return all.some((p) => /agent\.py/.test(p.what)) ? all[0]!.pid : undefined;
    });
    return pid !== undefined && signal(pid, 'SIGKILL');
  },
});

export const desktopFaults: Faults = {
  'kill-sandbox': local(sandbox('live')),
  // One that draws screens for the reading lessons, as a rule.
  'kill-sandbox-lessons': local(sandbox('lessons')),
  'stop-sandbox': local(some(() => true, 'SIGSTOP', AWAY_MS)),
  'hang-sandbox': local(some(() => true, 'SIGSTOP', 'found')),
  'oom-sandbox': local(hog),
  'kill-container': docker(container('kill')),
  'pause-container': docker(container('pause')),
  'oom-container': docker(hog),
  'kill-x': some(isX, 'SIGKILL'),
  'hang-x': some(isX, 'SIGSTOP', 'found'),
  'stop-application': some(applications, 'SIGSTOP', AWAY_MS),
  'hang-application': some(applications, 'SIGSTOP', 'found'),
  'kill-application': some(applications, 'SIGKILL'),
};
