/**
 * Decides what the scheduler does next, as pure functions: from the present numbers, how many leases to request, cancel
 * or use. Scheduling is rollout-wise (runtime/rollout/README.md#rollout-wise-scheduling): a free desktop gets the next
 * rollout at once, without a barrier.
 */
export interface SchedulerView {
  /** Desktops the scheduler may hold at once. */
  readonly slots: number;
  /** Leases requested and not yet granted. */
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
  readonly requestLeases: number;
  readonly cancelLeases: number;
  readonly releaseIdle: number;
}

/**
 * Probes go first. A leased desktop without work is kept, because releasing it would cost a reset, unless the scheduler
 * stops or shrinks. Leases are requested while there is work for them and a free slot.
 */
export function nextMove(v: SchedulerView): SchedulerMove {
  const admit = v.paused || v.stopping ? 0 : Math.max(0, Math.floor(v.admit));
  const probes = v.stopping ? 0 : v.probesWaiting;
  if (v.stopping)
    return { startProbes: 0, startRollouts: 0, requestLeases: 0, cancelLeases: v.leasing, releaseIdle: v.idle };
  const startProbes = Math.min(v.idle, probes),
    startRollouts = Math.min(v.idle - startProbes, admit);
  const idle = v.idle - startProbes - startRollouts,
    running = v.running + startProbes + startRollouts;
  const work = probes - startProbes + admit - startRollouts;
  const room = v.slots - running - idle - v.leasing;
  if (room < 0) {
    const cancelLeases = Math.min(v.leasing, -room);
    return {
      startProbes,
      startRollouts,
      requestLeases: 0,
      cancelLeases,
      releaseIdle: Math.min(idle, -room - cancelLeases),
    };
  }
  return {
    startProbes,
    startRollouts,
    requestLeases: Math.max(0, Math.min(room, work - v.leasing)),
    cancelLeases: 0,
    releaseIdle: 0,
  };
}
