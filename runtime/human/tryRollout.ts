import type { Step, Trajectory } from '../domain/index.js';
import type { Lease, SettleOptions } from '../cluster/types.js';
import type { RolloutOrder } from '../data/types.js';
import { runEpisode } from '../rollout/episode.js';
import { Steering } from '../rollout/steering.js';
import type { EpisodeDeps, EpisodePhase, EpisodeRequest, SchedulerEvent } from '../rollout/types.js';
import type { HeldRollout } from '../run/runAccess.js';

/** A step of the policy as it was recorded, with what the decision says besides. */
export type StepEvent = Extract<SchedulerEvent, { type: 'step' }>;

export interface TryRolloutOptions {
  readonly episode: EpisodeDeps;
  readonly lease: Lease;
  readonly settle: SettleOptions;
  readonly request: Pick<EpisodeRequest, 'order' | 'task' | 'provenance' | 'sampling'>;
  /** Called with what the desktop does from now on. */
  readonly onPhase: (phase: EpisodePhase) => void;
}

/** One episode of no run: on a desktop of its own, steered like a rollout. */
export class TryRollout implements HeldRollout {
  readonly kind = 'rollout' as const;
  readonly order: RolloutOrder;
  readonly steering = new Steering();
  readonly settle: SettleOptions;
  readonly instruction: string;
  readonly #o: TryRolloutOptions;
  readonly #steps: StepEvent[] = [];
  readonly #listeners = new Set<(e: SchedulerEvent) => void>();
  readonly #stop = new AbortController();
  #running: Promise<Trajectory> | undefined;

  constructor(o: TryRolloutOptions) {
    this.#o = o;
    this.order = o.request.order;
    this.settle = o.settle;
    this.instruction = o.request.task.instruction;
  }
  get desktop(): HeldRollout['desktop'] {
    return this.#o.lease.desktop;
  }
  get frames(): HeldRollout['frames'] {
    return this.#o.episode.frames;
  }
  get steps(): readonly Step[] {
    return this.#steps.map((s) => s.step);
  }
  /** Steps from `from` on, with the policy's words on them. */
  said(from = 0): readonly StepEvent[] {
    return this.#steps.slice(from);
  }
  onEvent(l: (e: SchedulerEvent) => void): () => void {
    this.#listeners.add(l);
    return () => {
      this.#listeners.delete(l);
    };
  }
  hold(): void {
    // No trainer waits for it.
  }
  get stopped(): boolean {
    return this.#stop.signal.aborted;
  }
  /** Ends the episode now, without a verdict; what was recorded stays. */
  stop(): void {
    this.#stop.abort();
  }

  /** Runs it, once. Faults are the trajectory's outcome, as in any rollout. */
  run(): Promise<Trajectory> {
    return (this.#running ??= this.#run());
  }
  async #run(): Promise<Trajectory> {
    const { episode, lease, request, onPhase } = this.#o,
      { clock } = episode,
      { rollout } = this.order,
      desktop = lease.desktop.id;
    const { trajectory } = await runEpisode(episode, lease, {
      ...request,
      signal: this.#stop.signal,
      steering: this.steering,
      onStep: (step, alternatives, about) => {
        const e: StepEvent = {
          type: 'step',
          kind: 'rollout',
          rollout,
          desktop,
          step,
          ...(alternatives ? { alternatives } : {}),
          ...(about ? { about } : {}),
          at: clock.now(),
        };
        this.#steps.push(e);
        this.#emit(e);
      },
      onPhase: (phase) => {
        onPhase(phase);
        this.#emit({ type: 'lane', desktop, phase, rollout, at: clock.now() });
      },
    });
    this.#emit({ type: 'ended', kind: 'rollout', order: this.order, trajectory, versions: [], at: clock.now() });
    return trajectory;
  }
  #emit(e: SchedulerEvent): void {
    for (const l of [...this.#listeners]) l(e);
  }
}

/** Whether it ended without a fault of the desktop or of the policy's engine; one that was stopped has none. */
export const sound = (t: Trajectory): boolean => t.outcome.kind !== 'error' || t.outcome.error.kind === 'cancelled';
