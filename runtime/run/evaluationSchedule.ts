import type { RunConfig } from '../config/index.js';
import type { EvalPoint } from './evaluateEpisodes.js';

const MINUTE_MS = 60_000;
/** An evaluation that begins this shortly before the budget ends would measure what the final one measures. */
const TOO_LATE_MS = MINUTE_MS;

/**
 * When a run evaluates its policy, and what it has measured so far: before it learns, after the warm start, every so
 * many minutes of reinforcement learning, and at the end. Pure: time is an argument, in ms of the run's own time, which
 * does not advance in a pause.
 */
export class EvaluationSchedule {
  readonly #config: RunConfig['evaluation'];
  readonly #points: EvalPoint[];
  #from = 0;

  /** `earlier`: points of earlier parts of the run; a label is measured once. */
  constructor(config: RunConfig['evaluation'], earlier: readonly EvalPoint[]) {
    this.#config = config;
    this.#points = [...earlier];
  }

  get points(): readonly EvalPoint[] {
    return this.#points;
  }
  measured(p: EvalPoint): void {
    this.#points.push(p);
  }

  untrainedDue(): boolean {
    return this.#config.untrained && this.#due('untrained');
  }
  /**
   * `warmStart`: the version that the warm start made. Once reinforcement learning has changed the policy, it is too
   * late.
   */
  warmStartDue(version: number, warmStart: number | undefined): boolean {
    return version === warmStart && this.#due('warm start');
  }
  /** Whether the end of the run has anything that was not measured already. */
  finalDue(version: number, rollouts: number): boolean {
    const newest = this.#points.at(-1);
    if (this.#config.episodes === 0 || (newest?.label === 'final' && newest.version === version)) return false;
    return rollouts > 0 || (version > 0 && newest?.version !== version);
  }

  /** Reinforcement learning begins: the first of the evaluations in between is due `everyMinutes` from here. */
  begin(elapsedMs: number): void {
    this.#from = elapsedMs;
  }
  /** ms to the next evaluation in between; undefined when none fits into the remaining `leftMs`. */
  nextIn(elapsedMs: number, leftMs: number): number | undefined {
    const every = this.#config.everyMinutes * MINUTE_MS;
    if (every <= 0 || this.#config.episodes === 0) return undefined;
    const wait = every - ((elapsedMs - this.#from) % every);
    return leftMs - wait > TOO_LATE_MS ? wait : undefined;
  }
  /** Label of an evaluation in between; undefined when that one was made. */
  labelAt(elapsedMs: number): string | undefined {
    const label = `after ${Math.round(elapsedMs / MINUTE_MS)} min`;
    return this.#due(label) ? label : undefined;
  }

  #due(label: string): boolean {
    return this.#config.episodes > 0 && !this.#points.some((p) => p.label === label);
  }
}
