import { readFileSync } from 'node:fs';
import { belongs } from './orphans.js';
import { descendants, processes } from './processes.js';

/** Clock ticks of /proc. */
const HZ = 100;

/** How much of the machine's processors others have used: what a run then waits for is not its own time. */
export class Others {
  readonly #base: string;
  #from = { at: 0, busy: 0, own: new Map<number, number>() };

  /** `base`: the folder of the controller, whose processes are those of the run, and all below them. */
  constructor(base: string) {
    this.#base = base;
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
    // Programs in a desktop do not have our environment, and the children of a daemon that was killed not our ancestry.
    const ours = descendants(process.pid);
    return new Map(
      processes().flatMap((p) => (ours.has(p.pid) || belongs(p.pid, this.#base) ? [[p.pid, p.ticks]] : [])),
    );
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
