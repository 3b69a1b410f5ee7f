import { readdirSync, readFileSync } from 'node:fs';

/** What Linux says of a process, or of one of its threads (`PID/task/TID`). */
export interface ProcessStat {
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  readonly nice: number;
  /** Start time in ticks since boot: with the pid it tells a process from a later one with the same pid. */
  readonly started: string;
}
/** Undefined when there is none (any more). */
export function statOf(process: number | string): ProcessStat | undefined {
  try {
    const stat = readFileSync(`/proc/${process}/stat`, 'utf8'),
      // The name in parentheses may hold anything, so the fields begin behind the last one.
      f = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: f[0]!, parent: Number(f[1]), session: Number(f[3]), nice: Number(f[16]), started: f[19]! };
  } catch {
    return undefined;
  }
}
/** Whether a process runs (an ended one that nobody has collected does not). */
export function isAlive(pid: number): boolean {
  const s = statOf(pid);
  return s !== undefined && s.state !== 'Z';
}
/** The command line; empty when the process is gone. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** A process, told from a later one with the same pid by its start time. */
export interface ProcessMark {
  readonly pid: number;
  readonly parent: number;
  readonly started: string;
  readonly what: string;
}
/** Every process that runs. */
export function processes(): ProcessMark[] {
  return readdirSync('/proc')
    .filter((n) => /^\d+$/.test(n))
    .flatMap((n) => {
      const s = statOf(n),
        pid = Number(n);
      return s === undefined || s.state === 'Z'
        ? []
        : [{ pid, parent: s.parent, started: s.started, what: commandLine(pid).slice(0, 1000) }];
    });
}
/** A process and everything under it. */
export function processTree(pid: number): ProcessMark[] {
  const all = processes(),
    out = all.filter((m) => m.pid === pid);
  for (let i = 0; i < out.length; i++) out.push(...all.filter((m) => m.parent === out[i]!.pid));
  return out;
}
/** Those that still run. */
export function stillRunning(of: readonly ProcessMark[]): ProcessMark[] {
  return of.filter((m) => {
    const s = statOf(m.pid);
    return s !== undefined && s.state !== 'Z' && s.started === m.started;
  });
}
