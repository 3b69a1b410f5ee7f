/**
 * What the scheduler does next: the pure half. It is shown the present numbers and says how many leases to ask for,
 * give up or use. Rollout-wise (runtime/rollout/README.md#rollout-wise-scheduling): the unit is one rollout, a free
 * desktop gets the next at once,
 * and no barrier exists.
 */
export interface SchedulerView {
  /** Desktops the scheduler may hold at once. */
  readonly slots: number;
  /** Leases asked for and not yet given. */
  readonly leasing: number;
  /** Leased desktops without a rollout. */
  readonly idle: number;
  /** Rollouts and probes on desktops. */
  readonly running: number;
  readonly probesWaiting: number;
  /** Training rollouts that may start now (staleness rule), 0 when the planner has none. */
  readonly admit: number;
  readonly paused: boolean;
  readonly stopping: boolean;
}
export interface SchedulerMove {
  readonly startProbes: number;
  readonly startRollouts: number;
  readonly askLeases: number;
  readonly dropLeases: number;
  readonly releaseIdle: number;
}

/**
 * Probes go first. A leased desktop without work is kept (giving it back would cost a reset) unless the scheduler stops
 * or shrinks. Leases are asked for as long as there is work for them and room.
 */
export function nextMove(v: SchedulerView): SchedulerMove {
  const admit = v.paused || v.stopping ? 0 : Math.max(0, Math.floor(v.admit));
  const probes = v.stopping ? 0 : v.probesWaiting;
  if (v.stopping) return { startProbes: 0, startRollouts: 0, askLeases: 0, dropLeases: v.leasing, releaseIdle: v.idle };
  const startProbes = Math.min(v.idle, probes),
    startRollouts = Math.min(v.idle - startProbes, admit);
  const idle = v.idle - startProbes - startRollouts,
    running = v.running + startProbes + startRollouts;
  const work = probes - startProbes + admit - startRollouts;
  const room = v.slots - running - idle - v.leasing;
  if (room < 0) {
    const dropLeases = Math.min(v.leasing, -room);
    return { startProbes, startRollouts, askLeases: 0, dropLeases, releaseIdle: Math.min(idle, -room - dropLeases) };
  }
  return {
    startProbes,
    startRollouts,
    askLeases: Math.max(0, Math.min(room, work - v.leasing)),
    dropLeases: 0,
    releaseIdle: 0,
  };
}
