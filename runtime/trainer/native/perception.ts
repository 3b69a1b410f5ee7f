import { alignmentOf, cellOfText, partOf, type EncodedState } from '../../domain/index.js';
import type { LookAhead } from './lookAhead.js';
import type { PolicyModel } from './model/policyGraph.js';
import type { Perceived } from './packing.js';
import { look, perceive } from './perceive.js';
import type { Sessions } from './sessions.js';

/** States whose perception is kept: 0.5 MB each, and a batch is gone over several times. */
const KEPT = 512;

/**
 * Looks at states with the reader as it is and finds the words of their instructions: what a replica does before it
 * decides. Remembered until the reader changes.
 */
export class Perception {
  readonly #model: PolicyModel;
  readonly #sessions: Sessions;
  readonly #lookAhead: LookAhead | undefined;
  #seen = new Map<EncodedState, Perceived>();
  /** States that the other thread looks at with the present reader; undefined for those it could not do. */
  #awaited = new Map<EncodedState, Promise<Perceived | undefined>>();

  constructor(model: PolicyModel, sessions: Sessions, lookAhead?: LookAhead) {
    this.#model = model;
    this.#sessions = sessions;
    this.#lookAhead = lookAhead;
  }

  /** Whether `ahead` does anything. */
  get looksAhead(): boolean {
    return this.#lookAhead?.works ?? false;
  }

  /** The reader has learned: what was seen before was seen by another one. */
  forget(): void {
    this.#seen.clear();
    this.forgetAhead();
    this.#lookAhead?.readerChanged();
  }
  /** Forgets what the other thread is looking at. */
  forgetAhead(): void {
    this.#awaited.clear();
  }

  /** Begins to look at a micro-batch that `of` is asked for later, in another thread. */
  ahead(states: readonly EncodedState[], theta: Float32Array): void {
    const asked = this.#lookAhead?.look(states, theta);
    if (!asked) return;
    for (const [n, s] of states.entries())
      this.#awaited.set(
        s,
        asked.then((all) => all?.[n]),
      );
  }

  /** What the reader sees of a micro-batch or more. */
  async of(states: readonly EncodedState[], theta: Float32Array): Promise<Perceived[]> {
    const out: (Perceived | undefined)[] = [];
    for (const s of states) out.push(this.#seen.get(s) ?? (await this.#awaited.get(s)));
    const missing = states.flatMap((s, i) => (out[i] ? [] : [i])),
      { batch } = this.#sessions;
    for (let k = 0; k < missing.length; k += batch) {
      const part = missing.slice(k, k + batch),
        seen = await perceive(
          this.#model,
          this.#sessions,
          part.map((i) => states[i]!),
          theta,
        );
      part.forEach((i, n) => {
        out[i] = seen[n];
      });
    }
    states.forEach((s, i) => {
      this.#awaited.delete(s);
      this.#remember(s, out[i]!);
    });
    return out as Perceived[];
  }

  /** The cell where each text stands on its screen; undefined where it is not there. */
  async cellsOf(
    wanted: readonly { readonly obs: Uint8Array; readonly text: string }[],
    theta: Float32Array,
  ): Promise<(number | undefined)[]> {
    const { batch } = this.#sessions,
      { spec } = this.#model,
      out: (number | undefined)[] = [];
    for (let k = 0; k < wanted.length; k += batch) {
      const part = wanted.slice(k, k + batch),
        { logits } = await look(
          this.#sessions,
          part.map((w) => w.obs),
          theta,
        );
      part.forEach((w, n) => out.push(cellOfText(spec, alignmentOf(spec, partOf(logits, n, batch)), w.text)));
    }
    return out;
  }

  /** Ends the other thread. */
  release(): void {
    this.#lookAhead?.close();
  }

  #remember(state: EncodedState, seen: Perceived): void {
    this.#seen.set(state, seen);
    if (this.#seen.size > KEPT) this.#seen.delete(this.#seen.keys().next().value!);
  }
}
