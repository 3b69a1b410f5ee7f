import { StudioError } from '../domain/index.js';
import { rateText } from '../domain/stats.js';
import { evaluateNow, type EvalPoint } from './evaluateEpisodes.js';
import type { EvaluationSchedule } from './evaluationSchedule.js';
import type { RunParts } from './parts.js';
import type { BetweenUpdates } from './updateLoop.js';

/** The evaluations of a run: performs those that its schedule says are due. */
export class EvaluationPhases implements BetweenUpdates {
  readonly #r: RunParts;
  readonly #schedule: EvaluationSchedule;
  #current: Promise<void> | undefined;
  #repeating = false;
  /** An evaluation that was due between two updates waits for its turn. */
  #due = false;
  /** Whoever makes updates meanwhile. */
  #ring: (() => void) | undefined;
  #stopTimer: (() => void) | undefined;

  constructor(r: RunParts, schedule: EvaluationSchedule) {
    this.#r = r;
    this.#schedule = schedule;
  }

  async untrained(): Promise<void> {
    if (this.#schedule.untrainedDue()) await this.#evaluate('untrained', this.#r.ending);
  }
  async warmStart(): Promise<void> {
    const { version, warmStartVersion } = this.#r.state;
    if (this.#schedule.warmStartDue(version, warmStartVersion)) await this.#evaluate('warm start', this.#r.ending);
  }
  /** The evaluation at the end, which runs even when the budget is spent; only `stop` cancels it. */
  async final(stop: AbortSignal): Promise<void> {
    const { state, data } = this.#r;
    if (this.#schedule.finalDue(state.version, data.counts().ledger.generated)) await this.#evaluate('final', stop);
  }

  /** Evaluates at the configured interval from now on, beside reinforcement learning. */
  repeat(): void {
    this.#schedule.begin(this.#r.budget.elapsedMs);
    this.#repeating = true;
    this.#arm();
  }
  /** Time does not advance: no evaluation is due or begins before `resume`. */
  pause(): void {
    this.#disarm();
  }
  resume(): void {
    this.#arm();
    this.#tell();
  }
  onDue(ring: () => void): () => void {
    this.#ring = ring;
    return () => {
      this.#ring = undefined;
    };
  }
  /** Performs the one that is due, once all replicas have the trainer's weights: each of its episodes is of one version. */
  async hold(published: Promise<boolean>): Promise<void> {
    if (this.#due && (await published) && !this.#r.budget.paused) this.#begin();
    await this.#current;
  }
  async endRepeat(): Promise<void> {
    this.#repeating = false;
    this.#due = false;
    this.#disarm();
    await this.#current;
  }

  #arm(): void {
    const { budget, clock } = this.#r;
    this.#disarm();
    if (!this.#repeating || budget.paused) return;
    const wait = this.#schedule.nextIn(budget.elapsedMs, budget.leftMs);
    if (wait !== undefined)
      this.#stopTimer = clock.after(wait, () => {
        // However long this one takes: two at once would only slow each other.
        this.#due = !this.#current;
        this.#arm();
        this.#tell();
      });
  }
  /** Tells the update loop that an evaluation is due; without a loop it begins at once. */
  #tell(): void {
    if (!this.#due) return;
    if (this.#ring) this.#ring();
    else void this.hold(Promise.resolve(true));
  }
  #disarm(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }
  #begin(): void {
    const { budget, ending, log } = this.#r,
      label = this.#schedule.labelAt(budget.elapsedMs);
    this.#due = false;
    if (label !== undefined)
      this.#current = this.#evaluate(label, ending)
        .catch((e: unknown) => log.fault(e))
        .finally(() => {
          this.#current = undefined;
        });
  }

  async #evaluate(label: string, signal: AbortSignal): Promise<void> {
    const { data, scheduler, tasks, config, state, log } = this.#r,
      before = state.phase;
    state.phase = 'evaluating';
    state.detail = label;
    try {
      const point = await evaluateNow({
        data,
        scheduler,
        tasks,
        episodes: config.evaluation.episodes,
        label,
        version: state.version,
        maxSteps: config.rollout.maxSteps,
        signal,
      });
      this.#schedule.measured(point);
      log.note(evaluationText(point), { eval: point });
    } catch (e) {
      // A cancelled evaluation measured nothing: it is due again when the run is resumed.
      if (!(e instanceof StudioError && e.kind === 'cancelled')) throw e;
    } finally {
      state.phase = before;
      state.detail = undefined;
    }
  }
}

const evaluationText = (p: EvalPoint): string =>
  `Evaluation ${p.label.padEnd(12)} v${String(p.version).padEnd(4)} success ${rateText(p.successes, p.episodes)} on held-out seeds (${p.episodes} episodes${p.errors ? `, ${p.errors} errors` : ''})`;
