import { readFileSync } from 'node:fs';
import { processes } from './processes.js';

/** Clock ticks of /proc. */
const HZ = 100;

/** How much of the machine's processors others have used: what a run then waits for is not its own time. */
export class Others {
  readonly #mine: (pid: number) => boolean;
  #from = { at: 0, busy: 0, own: new Map<number, number>() };

  /** `mine`: which processes belong to the run. */
  constructor(mine: (pid: number) => boolean) {
    this.#mine = mine;
  }
  begin(): void {
    this.#from = { at: performance.now(), busy: busyTicks(), own: this.#own() };
  }
  /** Share of the time since `begin`, of all cores together, that others have used. */
  share(): number {
    const cores = readFileSync('/proc/stat', 'utf8').match(/^cpu\d+ /gm)?.length ?? 1,
      ticks = ((performance.now() - this.#from.at) / 1000) * HZ * cores;
    let own = 0;
    for (const [pid, n] of this.#own()) own += n - (this.#from.own.get(pid) ?? 0);
    return ticks <= 0 ? 0 : Math.max(0, (busyTicks() - this.#from.busy - own) / ticks);
  }
  #own(): Map<number, number> {
    return new Map(processes().flatMap((p) => (this.#mine(p.pid) ? [[p.pid, p.ticks]] : [])));
  }
}

/** user, nice, system, irq, softirq of all cores. */
function busyTicks(): number {
  const [, user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'utf8')
    .split('\n')[0]!
    .split(/\s+/)
    .map(Number);
  return user! + nice! + system! + irq! + softirq!;
}
