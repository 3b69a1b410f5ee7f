import type { DesktopId, RolloutId } from '../../../runtime/domain/index.js';
import type { ModelPoolEvent, SchedulerEvent } from '../../../runtime/rollout/types.js';
import { desktopUse } from '../../../runtime/run/meters.js';

/** ms of desktop and of replica that rollouts took in the window. */
export interface Taken {
  readonly desktop: number;
  readonly replica: number;
}
interface Mine {
  desktop: number;
  replica: number;
}
interface Open {
  readonly rollout: RolloutId | undefined;
  since: number;
}

/**
 * What rollouts take of desktops and replicas while they are served: reset, acting, settling, verifying and the
 * policy's computing, without any waiting. Only what falls into the window counts, and a rollout that ends in an error
 * takes its part away with it. A desktop serves one rollout at a time and a replica `depth` of them, so what is counted
 * is never more than there is: the bound X* made from it (measure.ts) is a bound in every run, however short.
 */
export class Demand {
  #from = 0;
  #desktop = 0;
  #replica = 0;
  readonly #rollouts = new Map<RolloutId, Mine>();
  readonly #working = new Map<DesktopId, Open>();
  readonly #resets = new Map<DesktopId, Open>();

  onScheduler(e: SchedulerEvent): void {
    if (e.type === 'lane') {
      this.#close(this.#working, e.desktop, e.at);
      if (desktopUse(e.phase).working) this.#working.set(e.desktop, { rollout: e.rollout, since: e.at });
    } else if (e.type === 'ended') {
      const mine = this.#rollouts.get(e.order.rollout);
      this.#rollouts.delete(e.order.rollout);
      if (!mine || e.trajectory.outcome.kind === 'error') return;
      this.#desktop += mine.desktop;
      this.#replica += mine.replica;
    }
  }
  onModels(e: ModelPoolEvent): void {
    if (e.type !== 'decided') return;
    const ms = Math.max(0, e.start + e.ms - Math.max(this.#from, e.start)),
      mine = this.#of(e.session as RolloutId);
    mine.desktop += ms;
    mine.replica += ms;
  }
  /** `broken`: the desktop is replaced, which no rollout with an outcome needs. */
  onReset(desktop: DesktopId, busy: boolean, broken: boolean, at: number): void {
    if (!busy) this.#close(this.#resets, desktop, at);
    else if (!broken) this.#resets.set(desktop, { rollout: undefined, since: at });
  }

  /** The window begins. */
  begin(at: number): void {
    this.#from = at;
    this.#desktop = this.#replica = 0;
    for (const m of this.#rollouts.values()) m.desktop = m.replica = 0;
    for (const o of [...this.#working.values(), ...this.#resets.values()]) o.since = at;
  }
  /** What was taken until now, by rollouts still running too. */
  total(at: number): Taken {
    let desktop = this.#desktop,
      replica = this.#replica;
    for (const m of this.#rollouts.values()) {
      desktop += m.desktop;
      replica += m.replica;
    }
    for (const o of [...this.#working.values(), ...this.#resets.values()]) desktop += at - o.since;
    return { desktop, replica };
  }

  #of(rollout: RolloutId): Mine {
    let mine = this.#rollouts.get(rollout);
    if (!mine) this.#rollouts.set(rollout, (mine = { desktop: 0, replica: 0 }));
    return mine;
  }
  #close(lanes: Map<DesktopId, Open>, desktop: DesktopId, at: number): void {
    const open = lanes.get(desktop);
    if (!open) return;
    lanes.delete(desktop);
    if (open.rollout === undefined) this.#desktop += at - open.since;
    else this.#of(open.rollout).desktop += at - open.since;
  }
}
