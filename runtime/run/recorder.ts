import type { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';
import type { RolloutId, Trajectory } from '../domain/index.js';
import type { SchedulerEvent } from '../rollout/types.js';
import type { Replicas } from './backends/index.js';
import { logicalStep, logicalTrajectory } from './logicalTime.js';
import type { RunLog } from './runLog.js';
import type { RunState } from './runState.js';
import { schedulerNote } from './schedulerNote.js';
import { stepExtra } from './stepExtra.js';
import type { Successes } from './successes.js';

/** How often a failing rollout of a deterministic run is repeated before its error becomes its outcome. */
const RESTARTS = 5;

/** Passes everything that happens in rollouts on to the data manager. */
export class RolloutRecorder {
  readonly #data: DataManager;
  readonly #state: RunState;
  readonly #log: RunLog;
  readonly #successes: Successes;
  readonly #replicas: Replicas | undefined;
  readonly #instructionOf: (o: RolloutOrder) => string;
  readonly #deterministic: boolean;
  /** How often rollouts of a deterministic run have begun again. */
  readonly #restarts = new Map<RolloutId, number>();

  constructor(o: {
    readonly data: DataManager;
    readonly state: RunState;
    readonly log: RunLog;
    readonly successes: Successes;
    readonly replicas: Replicas | undefined;
    readonly instructionOf: (o: RolloutOrder) => string;
    readonly deterministic?: boolean;
  }) {
    this.#deterministic = o.deterministic ?? false;
    this.#data = o.data;
    this.#state = o.state;
    this.#log = o.log;
    this.#successes = o.successes;
    this.#replicas = o.replicas;
    this.#instructionOf = o.instructionOf;
  }

  onScheduler(e: SchedulerEvent): void {
    if (e.type === 'started') this.#log.mustSucceed(this.#started(e));
    else if (e.type === 'step')
      this.#log.mustSucceed(
        this.#data.recordStep(
          e.rollout,
          this.#deterministic ? logicalStep(e.step) : e.step,
          stepExtra(e.desktop, e.alternatives, e.about),
        ),
      );
    else if (e.type === 'ended') this.#log.mustSucceed(this.#ended(e));
    else {
      const note = schedulerNote(e);
      if (note) this.#log.note(note);
    }
  }

  #started({ kind, order, desktop }: Extract<SchedulerEvent, { type: 'started' }>): Promise<void> {
    const { rollout, family, task, cap } = order,
      { version } = this.#state,
      instruction = this.#instructionOf(order);
    if (kind === 'rollout') return this.#data.started(rollout, this.#replicas?.oldest ?? version, desktop, instruction);
    return this.#data.note({
      type: 'trajectory.started',
      rollout,
      family,
      task,
      instruction,
      cap,
      provenance: kind,
      version,
      desktop,
    });
  }

  #ended({ kind, trajectory, relabelled }: Extract<SchedulerEvent, { type: 'ended' }>): Promise<unknown> {
    const t = this.#asRecorded(trajectory);
    if (this.#beginsAgain(t)) return this.#data.restart(t.id);
    if (kind === 'rollout' && t.outcome.kind === 'success') this.#successes.add(t);
    const stopped = kind === 'rollout' && t.outcome.kind === 'error' && t.outcome.error.kind === 'cancelled';
    if (stopped) return this.#data.retire(t.id, 'stopped');
    // Recorded before its rollout: after a crash between the two, the rollout is repeated, and this with it.
    const again = relabelled && this.#data.record(this.#asRecorded(relabelled));
    return Promise.all([again, this.#data.record(t)]);
  }
  #asRecorded(t: Trajectory): Trajectory {
    return this.#deterministic ? logicalTrajectory(t) : t;
  }

  /**
   * Repeats the rollout under its own id: a new one would have another number, and the run would no longer be
   * deterministic.
   */
  #beginsAgain({ id, outcome, provenance }: Trajectory): boolean {
    if (!this.#deterministic || provenance.kind !== 'rollout' || outcome.kind !== 'error') return false;
    const n = (this.#restarts.get(id) ?? 0) + 1;
    this.#restarts.set(id, n);
    return outcome.error.kind !== 'cancelled' && outcome.error.kind !== 'rollout.diverged' && n <= RESTARTS;
  }
}
