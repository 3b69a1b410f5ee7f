import { choiceOf, GLYPH_SPEC, headSizes } from './policySpec.js';
import { sampledRemotely, type Step } from './trajectory.js';

type Sampled = Pick<Step, 'tokens' | 'prompt' | 'rejected'>;

/**
 * The most entropy, in nats, that each token of a step could have had: ln of the number of choices of its head, where
 * they are choices of the embedded policy, whose heads are of very different size. Undefined where all tokens come from
 * one vocabulary, as a language model's do, or the step has none.
 */
export function entropyCeilings(step: Sampled): readonly number[] | undefined {
  const ids = step.tokens?.ids;
  if (!ids || ids.length !== step.tokens!.entropies.length || sampledRemotely(step)) return undefined;
  const out: number[] = [];
  for (const id of ids) {
    if (!(id >= 0 && id < ALL_CHOICES)) return undefined;
    out.push(Math.log(HEAD_SIZES[choiceOf(GLYPH_SPEC, id).head]));
  }
  return out;
}
const HEAD_SIZES = headSizes(GLYPH_SPEC);
const ALL_CHOICES = Object.values(HEAD_SIZES).reduce((a, n) => a + n, 0);
