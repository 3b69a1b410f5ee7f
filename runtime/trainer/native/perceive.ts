import type * as Ort from 'onnxruntime-node';
import { alignmentOf, findWords, gridOf, partOf, type EncodedState } from '../../domain/index.js';
import { foundShapes, type PolicyModel } from './model/policyGraph.js';
import type { Perceived } from './packing.js';
import type { Sessions } from './sessions.js';

/** The part of a state that perception depends on. */
export type Sight = Pick<EncodedState, 'obs' | 'instruction'>;
/** The reader's output for a micro-batch: f32[batch * per screen]. */
interface ReaderOutput {
  readonly features: Float32Array;
  readonly logits: Float32Array;
}

/** One pass of the reader over at most `batch` screens. `theta` is f32[P], of which it uses the reader's part. */
export async function look(s: Sessions, screens: readonly Uint8Array[], theta: Float32Array): Promise<ReaderOutput> {
  const out = await s.look({ ...s.packScreens(screens), theta: s.floats(theta) });
  return { features: dataOf(out.features), logits: dataOf(out.logits) };
}

/** What the reader sees of at most `batch` states, and where on them it finds the words of their instructions. */
export async function perceive(
  model: PolicyModel,
  s: Sessions,
  states: readonly Sight[],
  theta: Float32Array,
): Promise<Perceived[]> {
  const { spec } = model,
    { features, logits } = await look(
      s,
      states.map((x) => x.obs),
      theta,
    ),
    { rows, cols } = gridOf(spec),
    facts = foundShapes(model, 1).facts.reduce((a, b) => a * b, 1);
  return states.map((x, n) => {
    const seen = {
      features: partOf(features, n, s.batch).slice(),
      found: new Float32Array(spec.instruction.maxTokens * rows * cols),
      facts: new Float32Array(facts),
    };
    findWords(spec, x.instruction, alignmentOf(spec, partOf(logits, n, s.batch)), seen);
    return seen;
  });
}

function dataOf(output: Ort.Tensor | undefined): Float32Array {
  if (output?.data instanceof Float32Array) return output.data;
  throw new TypeError(`the reader gave ${output?.type ?? 'nothing'} where it gives float32`);
}
