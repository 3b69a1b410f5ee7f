import { choiceOf, GLYPH_SPEC, headSizes, type EmbeddedPolicySpec } from './policySpec.js';
import { sampledRemotely, type Step } from './trajectory.js';

type Sampled = Pick<Step, 'tokens' | 'prompt' | 'rejected'>;

/**
 * How many choices each of these was drawn from: all of its head, but of a text only the `copyable` tokens that the
 * instruction has and what the policy can type besides.
 */
export function possibleChoices(spec: EmbeddedPolicySpec, ids: Int32Array, copyable: number): Int32Array {
  const sizes = headSizes(spec),
    { maxTokens } = spec.instruction,
    text = sizes.text - maxTokens + Math.min(copyable, maxTokens);
  return ids.map((id) => {
    const { head } = choiceOf(spec, id);
    return head === 'text' ? text : sizes[head];
  });
}

/**
 * The most entropy, in nats, that each token of a step could have had: ln of the number of choices that it was drawn
 * from, where they are choices of the embedded policy, whose heads are of very different size. Undefined where all
 * tokens come from one vocabulary, as a language model's do, or the step has none. Records of before December 2026 do
 * not say how many choices there were: there it is ln of the size of the head.
 */
export function entropyCeilings(step: Sampled): readonly number[] | undefined {
  const t = step.tokens;
  if (!t?.ids || t.ids.length !== t.entropies.length || sampledRemotely(step)) return undefined;
  const said = t.choices?.length === t.ids.length ? t.choices : undefined,
    out: number[] = [];
  for (const [i, id] of t.ids.entries()) {
    if (!(id >= 0 && id < ALL_CHOICES)) return undefined;
    const whole = HEAD_SIZES[choiceOf(GLYPH_SPEC, id).head],
      n = said?.[i] ?? whole;
    out.push(Math.log(n >= 1 && n <= whole ? n : whole));
  }
  return out;
}
const HEAD_SIZES = headSizes(GLYPH_SPEC);
const ALL_CHOICES = Object.values(HEAD_SIZES).reduce((a, n) => a + n, 0);
