import { readdirSync, readFileSync } from 'node:fs';

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly what: string;
  /** Processor time, its children's that have ended included. */
  readonly ticks: number;
}
export function processes(): Process[] {
  return readdirSync('/proc').flatMap((n) => {
    if (!/^\d+$/.test(n)) return [];
    try {
      const stat = readFileSync(`/proc/${n}/stat`, 'utf8'),
        f = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (f[0] === 'Z') return [];
      return [
        {
          pid: Number(n),
          parent: Number(f[1]),
          ticks: Number(f[11]) + Number(f[12]) + Number(f[13]) + Number(f[14]),
          what: readFileSync(`/proc/${n}/cmdline`, 'utf8').replaceAll('\0', ' '),
        },
      ];
    } catch {
      return [];
    }
  });
}

/** A process and all below it. */
export function descendants(pid: number): Set<number> {
  const all = processes(),
    found = new Set([pid]);
  for (let before = 0; before < found.size;) {
    before = found.size;
    for (const p of all) if (found.has(p.parent)) found.add(p.pid);
  }
  return found;
}
