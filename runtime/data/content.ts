import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { canonicalAction, type Outcome, type Step } from '../domain/index.js';
import type { StoredEvent } from './events.js';

/**
 * A trajectory's content, independent of its id and source: task and instruction, screens by their pixels, actions,
 * outcome.
 */
export class ContentHash {
  readonly #hash: Hash = createHash('sha256');
  step(s: Pick<Step, 'frame' | 'actions'>): this {
    this.#hash.update(`${s.frame.hash}${JSON.stringify(s.actions.map(canonicalAction))}\n`);
    return this;
  }
  /** 32 hex digits. Nothing may be added afterwards. */
  end({
    task,
    instruction,
    outcome,
  }: {
    readonly task: string;
    readonly instruction: string;
    readonly outcome: Outcome;
  }): string {
    return this.#hash
      .update(
        `${JSON.stringify([task, instruction])}\n${outcome.kind === 'error' ? 'error' : `${outcome.kind} ${outcome.reward}`}`,
      )
      .digest('hex')
      .slice(0, 32);
  }
}

/**
 * The sources that a run imported earlier, and the content of every trajectory it has. Takes the run's events in order.
 */
export class Known {
  readonly sources = new Set<string>();
  /** Trajectory by content. */
  readonly content = new Map<string, string>();
  readonly #open = new Map<string, ContentHash>();

  see(e: StoredEvent): void {
    if (e.type === 'trajectory.started') this.#open.delete(e.rollout);
    else if (e.type === 'rollout.step') {
      // Step 0 begins a new attempt: earlier steps belong to one that was interrupted.
      const begun = e.step.index === 0 ? undefined : this.#open.get(e.rollout),
        hash = begun ?? new ContentHash();
      this.#open.set(e.rollout, hash.step(e.step));
    } else if (e.type === 'rollout.retired') this.#open.delete(e.rollout);
    else if (e.type === 'trajectory.recorded') {
      const { id, provenance } = e.head,
        hash = this.#open.get(id);
      this.#open.delete(id);
      if (hash) this.content.set(hash.end(e.head), id);
      if (provenance.kind === 'imported') this.sources.add(provenance.from);
    }
  }
}
/** The events that `Known` needs. */
export const knownEvents: readonly StoredEvent['type'][] = [
  'trajectory.started',
  'rollout.step',
  'rollout.retired',
  'trajectory.recorded',
];
