/**
 * Logits to a decision, head by head: the type first, then the heads that the type uses, and where a text is read that is typed. Log-probs and entropies are
 * natural-log values of softmax(logits / temperature) over the choices that are possible, which is the distribution
 * sampled from. A greedy decision (or a temperature of 0) takes the most probable choice and reports the same
 * distribution's numbers; it is for evaluation, never for training.
 */
import type { EmbeddedPolicySpec, Head } from '../../domain/index.js';
import { HEADS_OF_TYPE, StudioError, headOffsets, headSizes, random, seenText } from '../../domain/index.js';

export interface SampleOptions {
  readonly greedy: boolean;
  readonly temperature: number;
  readonly seed: number;
  /** Instruction tokens that can be copied; the text head is masked beyond them. */
  readonly copyable: number;
  /** Alternatives reported per choice, and per position choice. */
  readonly top: number;
  readonly topPlaces?: number;
}
export interface Alternative {
  readonly choice: number;
  readonly probability: number;
}
export interface Sampled {
  readonly choices: Int32Array;
  readonly logprobs: Float32Array;
  readonly entropies: Float32Array;
  readonly alternatives: readonly (readonly Alternative[])[];
}

export type Logits = Readonly<Record<Head, Float32Array>>;

/** Makes a sampler with its own scratch space, so that a decision allocates only its answer. */
export function makeSampler(spec: EmbeddedPolicySpec): (logits: Logits, o: SampleOptions) => Sampled {
  const sizes = headSizes(spec),
    offsets = headOffsets(spec);
  const scratch = new Float64Array(Math.max(...Object.values(sizes)));
  const { maxTokens } = spec.instruction,
    seen = seenText(spec);

  return (logits, o) => {
    const temperature = o.temperature > 0 ? o.temperature : 1,
      greedy = o.greedy || o.temperature <= 0;
    const rng = random(o.seed);
    const picks: { choice: number; logprob: number; entropy: number; alternatives: Alternative[] }[] = [];
    const ask = (head: Head): number => {
      const d = distribution(
        logits[head],
        sizes[head],
        temperature,
        scratch,
        head === 'text' ? Math.min(o.copyable, maxTokens) : maxTokens,
        head === 'text' ? maxTokens : 0,
      );
      // One random number per head whether or not it is used, so that greedy and sampled runs stay comparable.
      const u = rng.next();
      const index = greedy ? d.argmax : draw(scratch, sizes[head], u, d.argmax);
      picks.push({
        choice: offsets[head] + index,
        logprob: Math.log(scratch[index]!),
        entropy: d.entropy,
        alternatives: best(
          scratch,
          sizes[head],
          offsets[head],
          head === 'cell' || head === 'cell2' ? (o.topPlaces ?? o.top) : o.top,
        ),
      });
      return index;
    };
    const type = spec.types[ask('type')]!;
    for (const head of HEADS_OF_TYPE[type]) if (ask(head) === seen && head === 'text') ask('cell2');
    return {
      choices: Int32Array.from(picks, (p) => p.choice),
      logprobs: Float32Array.from(picks, (p) => p.logprob),
      entropies: Float32Array.from(picks, (p) => p.entropy),
      alternatives: picks.map((p) => p.alternatives),
    };
  };
}

/**
 * Probabilities into `p`; indices in [maskFrom, maskTo) are impossible. Stable: the largest logit is taken out first.
 */
function distribution(
  logits: Float32Array,
  n: number,
  temperature: number,
  p: Float64Array,
  maskFrom: number,
  maskTo: number,
): { argmax: number; entropy: number } {
  const masked = (i: number): boolean => i >= maskFrom && i < maskTo;
  let argmax = -1;
  for (let i = 0; i < n; i++) if (!masked(i) && (argmax < 0 || logits[i]! > logits[argmax]!)) argmax = i;
  if (argmax < 0) throw new RangeError('a head has no possible choice');
  const max = logits[argmax]!;
  let sum = 0,
    dot = 0;
  for (let i = 0; i < n; i++) {
    if (masked(i)) {
      p[i] = 0;
      continue;
    }
    const z = (logits[i]! - max) / temperature;
    const e = Math.exp(z);
    p[i] = e;
    sum += e;
    if (e > 0) dot += e * z;
  }
  if (!Number.isFinite(sum))
    throw new StudioError(
      'trainer.invalid',
      'The policy weights give logits that are not finite numbers.',
      'Training has diverged: resume from an earlier checkpoint with a lower learning rate.',
    );
  for (let i = 0; i < n; i++) p[i] = p[i]! / sum;
  // H = log sum e^z - sum p z.
  return { argmax, entropy: Math.max(0, Math.log(sum) - dot / sum) };
}

/** Inverse of the cumulative distribution; a choice of probability 0 is never drawn. */
function draw(p: Float64Array, n: number, u: number, fallback: number): number {
  let c = 0;
  for (let i = 0; i < n; i++) {
    c += p[i]!;
    if (u < c) return i;
  }
  return fallback; // rounding left the sum a hair under 1
}

function best(p: Float64Array, n: number, offset: number, k: number): Alternative[] {
  const out: Alternative[] = [];
  for (let i = 0; i < n; i++) {
    const q = p[i]!;
    if (q <= 0 || (out.length === k && q <= out[k - 1]!.probability)) continue;
    let at = out.length;
    while (at > 0 && out[at - 1]!.probability < q) at--;
    out.splice(at, 0, { choice: offset + i, probability: q });
    if (out.length > k) out.pop();
  }
  return out;
}
