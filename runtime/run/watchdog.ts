import type { RunConfig } from '../config/index.js';
import type { AlertKind } from '../domain/index.js';
import { percent } from '../domain/stats.js';

/** A condition that somebody should look at. */
export interface Alert {
  readonly kind: AlertKind;
  readonly message: string;
}
/** Updates in a row that must agree before an alert, because single values jump. */
const IN_A_ROW = 3;
const GIGABYTE = 1e9;
/** Factor by which more room must be free before a low disk is reported again. */
const ROOM_AGAIN = 1.5;

export interface Seen {
  /** ms of one clock. */
  readonly at: number;
  /** Whether rollouts and updates are to be expected. */
  readonly training: boolean;
  /** Changes whenever a rollout was recorded, the policy changed or an evaluation ended. */
  readonly progress: string;
  readonly freeBytes?: number | undefined;
}

/**
 * Raises each alert once, and again only after the condition has cleared in between. Pure: time and figures are
 * arguments.
 */
export class Watchdog {
  readonly #c: RunConfig['watch'];
  readonly #told = new Set<AlertKind>();
  #low = 0;
  #far = 0;
  #progress = '';
  #since: number | undefined;

  constructor(c: RunConfig['watch']) {
    this.#c = c;
  }

  /** An update of the trainer. */
  update(values: Readonly<Record<string, number>>): Alert[] {
    const { entropyBelow, klAbove } = this.#c,
      { entropy, klK3: kl } = values;
    // An update without samples of the policy's own measures neither.
    if (Number.isFinite(entropy)) this.#low = entropy! < entropyBelow ? this.#low + 1 : 0;
    if (Number.isFinite(kl)) this.#far = kl! > klAbove ? this.#far + 1 : 0;
    return [
      ...this.#tell(
        'entropy',
        this.#low >= IN_A_ROW,
        `The policy's entropy is below ${entropyBelow} nats for ${IN_A_ROW} updates: it has stopped exploring.`,
      ),
      ...this.#tell(
        'kl',
        this.#far >= IN_A_ROW,
        `The KL divergence from the acting policy is above ${klAbove} nats per token for ${IN_A_ROW} updates: the policy moves too fast.`,
      ),
    ];
  }
  evaluation(e: { readonly episodes: number; readonly successes: number }): Alert[] {
    const { target } = this.#c;
    if (target === undefined || e.episodes === 0) return [];
    return this.#tell(
      'target',
      this.#told.has('target') || e.successes / e.episodes >= target,
      `An evaluation reached ${percent(e.successes / e.episodes)}; the target is ${percent(target)}.`,
    );
  }
  /** Called every few seconds. */
  look(s: Seen): Alert[] {
    if (!s.training || s.progress !== this.#progress || this.#since === undefined) {
      this.#progress = s.progress;
      this.#since = s.at;
    }
    const { stalledMinutes, diskBelowGb } = this.#c,
      free = s.freeBytes,
      limit = diskBelowGb * GIGABYTE * (this.#told.has('disk') ? ROOM_AGAIN : 1);
    return [
      ...this.#tell(
        'stalled',
        s.at - this.#since >= stalledMinutes * 60_000,
        `No rollout has ended and nothing was trained for ${stalledMinutes} minutes.`,
      ),
      ...(free === undefined
        ? []
        : this.#tell('disk', free < limit, `${(free / GIGABYTE).toFixed(1)} GB are left on the disk of the run.`)),
    ];
  }
  /** Whether the run file asks to end the run for it. */
  ends(kind: AlertKind): boolean {
    return (this.#c.stop as readonly string[]).includes(kind);
  }

  #tell(kind: AlertKind, now: boolean, message: string): Alert[] {
    const before = this.#told.has(kind);
    if (now) this.#told.add(kind);
    else this.#told.delete(kind);
    return now && !before ? [{ kind, message }] : [];
  }
}
