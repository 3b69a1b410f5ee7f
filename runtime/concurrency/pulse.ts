/**
 * Whether a child process still lives. It says so itself every `BEAT_MS`; one that is silent is looked at from outside,
 * because a child that computes, or waits for its turn on a busy machine, is slow and not hung.
 */

/** How often a child says that it lives, ms. */
export const BEAT_MS = 1000;
/** How often its parent looks. */
const LOOK_MS = 500;
/** From this silence on the operating system is asked. */
const ASK_MS = 2 * BEAT_MS;

/** The operating system's figures of a process. */
export interface ProcessWork {
  /** Processor time it has used, ms. */
  readonly cpuMs: number;
  /** Whether it has something to do: it runs, waits for the processor, or for a disk. */
  readonly busy: boolean;
}
export type WorkOf = (pid: number) => Promise<ProcessWork | undefined>;

export interface PulseLimits {
  /** Silent, and seen to do nothing for so long. */
  readonly idleMs: number;
  /** Silent, whatever it does: a loop without an end computes too. */
  readonly silentMs: number;
  /** Silent, where the operating system cannot be asked. */
  readonly blindMs: number;
}
/** A stopped child is found 5 to 6 seconds after its last beat. */
export const PULSE_LIMITS: PulseLimits = { idleMs: 3500, silentMs: 60_000, blindMs: 30_000 };

/**
 * Counts the silence of one child. Time counts only while its watcher itself runs: after a suspended machine, or a
 * stopped parent, nobody is taken for dead. Pure.
 */
export class PulseCount {
  readonly #limits: PulseLimits;
  #silent = 0;
  #idle = 0;
  #cpuMs: number | undefined;
  #at: number;

  constructor(now: number, limits: PulseLimits = PULSE_LIMITS) {
    this.#limits = limits;
    this.#at = now;
  }

  /** ms without a sign of life. */
  get silentMs(): number {
    return this.#silent;
  }
  beat(): void {
    this.#silent = this.#idle = 0;
    this.#cpuMs = undefined;
  }
  /** Call every `LOOK_MS`, with what the operating system says where it was asked. Returns why the child is hung. */
  look(now: number, work: ProcessWork | undefined): string | undefined {
    const passed = Math.min(2 * LOOK_MS, Math.max(0, now - this.#at)),
      { idleMs, silentMs, blindMs } = this.#limits;
    this.#at = now;
    this.#silent += passed;
    const idle = work !== undefined && !work.busy && this.#cpuMs !== undefined && work.cpuMs <= this.#cpuMs;
    this.#idle = idle ? this.#idle + passed : 0;
    this.#cpuMs = work?.cpuMs;
    if (this.#idle >= idleMs) return `it gave no sign of life for ${seconds(this.#silent)} and did nothing`;
    const limit = work === undefined ? blindMs : silentMs;
    return this.#silent >= limit ? `it gave no sign of life for ${seconds(this.#silent)}` : undefined;
  }
}

/** Watches one child until it is stopped; `hung` is called once at most, and not after `stop`. */
export class Pulse {
  readonly #count: PulseCount;
  readonly #timer: NodeJS.Timeout;
  #stopped = false;

  constructor(o: {
    readonly pid: number | undefined;
    readonly workOf: WorkOf | undefined;
    readonly hung: (why: string) => void;
    readonly limits?: PulseLimits;
  }) {
    const { pid, workOf } = o,
      count = (this.#count = new PulseCount(performance.now(), o.limits));
    let looking = false;
    const look = async (): Promise<void> => {
      if (looking) return;
      looking = true;
      const asked = pid !== undefined && workOf && count.silentMs >= ASK_MS - LOOK_MS,
        work = asked ? await workOf(pid) : undefined,
        why = count.look(performance.now(), work);
      looking = false;
      if (why === undefined || this.#stopped) return;
      this.stop();
      o.hung(why);
    };
    this.#timer = setInterval(() => void look(), LOOK_MS);
    this.#timer.unref();
  }

  beat(): void {
    this.#count.beat();
  }
  stop(): void {
    this.#stopped = true;
    clearInterval(this.#timer);
  }
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;
