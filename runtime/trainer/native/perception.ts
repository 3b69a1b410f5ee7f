import type * as Ort from 'onnxruntime-node';
import { alignmentOf, cellOfText, findWords, gridOf, type EncodedState } from '../../domain/index.js';
import { foundShapes, type PolicyModel } from './model/policyGraph.js';
import type { Perceived } from './packing.js';
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
  #seen = new Map<EncodedState, Perceived>();

  constructor(model: PolicyModel, sessions: Sessions) {
    this.#model = model;
    this.#sessions = sessions;
  }

  /** The reader has learned: what was seen before was seen by another one. */
  forget(): void {
    this.#seen.clear();
  }

  async of(states: readonly EncodedState[], theta: Float32Array): Promise<Perceived[]> {
    const out = states.map((s) => this.#seen.get(s)),
      missing = states.flatMap((s, i) => (out[i] ? [] : [i])),
      { batch } = this.#sessions,
      { spec } = this.#model;
    for (let k = 0; k < missing.length; k += batch) {
      const part = missing.slice(k, k + batch),
        { features, scores } = await this.#look(
          part.map((i) => states[i]!.obs),
          theta,
        );
      part.forEach((i, n) => {
        const tokens = spec.instruction.maxTokens,
          { rows, cols } = gridOf(spec),
          seen = {
            features: partOf(features, n, batch),
            found: new Float32Array(tokens * rows * cols),
            facts: new Float32Array(foundShapes(this.#model, 1).facts.reduce((a, b) => a * b, 1)),
          };
        findWords(spec, states[i]!.instruction, alignmentOf(spec, partOf(scores, n, batch)), seen);
        this.#remember(states[i]!, seen);
        out[i] = seen;
      });
    }
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
        { scores } = await this.#look(
          part.map((w) => w.obs),
          theta,
        );
      part.forEach((w, n) => out.push(cellOfText(spec, alignmentOf(spec, partOf(scores, n, batch)), w.text)));
    }
    return out;
  }

  async #look(
    screens: readonly Uint8Array[],
    theta: Float32Array,
  ): Promise<{ readonly features: Float32Array; readonly scores: Float32Array }> {
    const s = this.#sessions,
      out = await s.look({ ...s.packScreens(screens), theta: s.floats(theta) });
    return { features: dataOf(out.features), scores: dataOf(out.scores) };
  }
  #remember(state: EncodedState, seen: Perceived): void {
    this.#seen.set(state, seen);
    if (this.#seen.size > KEPT) this.#seen.delete(this.#seen.keys().next().value!);
  }
}

const partOf = (all: Float32Array, n: number, of: number): Float32Array => {
  const per = all.length / of;
  return all.slice(n * per, (n + 1) * per);
};
function dataOf(output: Ort.Tensor | undefined): Float32Array {
  if (output?.data instanceof Float32Array) return output.data;
  throw new TypeError(`the reader gave ${output?.type ?? 'nothing'} where it gives float32`);
}
