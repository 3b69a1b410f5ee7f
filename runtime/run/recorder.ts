import type { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';
import type { SchedulerEvent } from '../rollout/types.js';
import type { Replicas } from './backends/index.js';
import type { RunLog } from './runLog.js';
import type { RunState } from './runState.js';
import { stepExtra } from './stepExtra.js';
import type { Successes } from './successes.js';

/** Passes everything that happens in rollouts on to the data manager. */
export class RolloutRecorder {
  readonly #data: DataManager;
  readonly #state: RunState;
  readonly #log: RunLog;
  readonly #successes: Successes;
  readonly #replicas: Replicas | undefined;
  readonly #instructionOf: (o: RolloutOrder) => string;

  constructor(o: {
    readonly data: DataManager;
    readonly state: RunState;
    readonly log: RunLog;
    readonly successes: Successes;
    readonly replicas: Replicas | undefined;
    readonly instructionOf: (o: RolloutOrder) => string;
  }) {
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
      this.#log.mustSucceed(this.#data.recordStep(e.rollout, e.step, stepExtra(e.desktop, e.alternatives, e.about)));
    else if (e.type === 'ended') this.#log.mustSucceed(this.#ended(e));
    else if (e.type === 'leaseFailed') this.#log.note(`No desktop: ${e.error.message} ${e.error.remedy}`);
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

  #ended({ kind, trajectory: t }: Extract<SchedulerEvent, { type: 'ended' }>): Promise<unknown> {
    if (kind === 'rollout' && t.outcome.kind === 'success') this.#successes.add(t);
    const stopped = kind === 'rollout' && t.outcome.kind === 'error' && t.outcome.error.kind === 'cancelled';
    return stopped ? this.#data.retire(t.id, 'stopped') : this.#data.record(t);
  }
}
