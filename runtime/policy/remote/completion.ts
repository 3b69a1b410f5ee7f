/**
 * A chat completion's answer: text, log-probs, entropies, token ids, version. Log-probs are of the distribution sampled
 * from, as long as the request truncates nothing (no top-p, top-k or penalties;
 * runtime/policy/README.md#log-probs-of-remote-models).
 */
import type { PolicyVersion, TokenTrace } from '../../domain/index.js';

interface TokenLogprob {
  readonly token?: string;
  readonly logprob?: number | null;
  readonly top_logprobs?: readonly { readonly logprob?: number | null }[];
}
/** The parts of the server's JSON that are read; anything may be missing. */
export interface Completion {
  readonly model?: string;
  readonly metadata?: { readonly weight_version?: string | number } | null;
  readonly choices?: readonly {
    readonly message?: { readonly content?: string | null };
    readonly logprobs?: { readonly content?: readonly TokenLogprob[] | null } | null;
    /** vLLM with `return_token_ids`. */
    readonly token_ids?: readonly number[] | null;
    readonly finish_reason?: string | null;
  }[];
}

/** Log-probs below this are raised to it; servers write -9999 or null for "none". */
const FLOOR = -100;
const logprobOf = (x: number | null | undefined): number =>
  typeof x === 'number' && Number.isFinite(x) ? Math.min(0, Math.max(FLOOR, x)) : FLOOR;

/** Token by token, or undefined when the server gave no log-probs. Entropies are lower bounds (`entropyLowerBound`). */
export function traceOf(c: Completion): TokenTrace | undefined {
  const choice = c.choices?.[0],
    content = choice?.logprobs?.content;
  if (!content || content.length === 0) return undefined;
  const ids = choice!.token_ids?.length === content.length ? Int32Array.from(choice!.token_ids) : idsFromNames(content);
  return {
    logprobs: Float32Array.from(content, (t) => logprobOf(t.logprob)),
    entropies: Float32Array.from(content, (t) =>
      entropyLowerBound(
        [logprobOf(t.logprob)],
        (t.top_logprobs ?? []).map((x) => logprobOf(x.logprob)),
      ),
    ),
    ids,
  };
}

/**
 * Entropy of a distribution of which the largest probabilities are known: the rest is put on one token, which gives the
 * least entropy for these probabilities (runtime/policy/README.md#log-probs-of-remote-models). Without top log-probs
 * the sampled token alone is used.
 */
export function entropyLowerBound(sampled: readonly number[], top: readonly number[]): number {
  const known = top.length > 0 ? top : sampled;
  let h = 0,
    mass = 0;
  for (const l of known) {
    const p = Math.exp(l);
    h -= p * l;
    mass += p;
  }
  const rest = 1 - mass;
  return Math.max(0, rest > 1e-9 ? h - rest * Math.log(rest) : h);
}

/** vLLM can name tokens `token_id:123`. */
function idsFromNames(content: readonly TokenLogprob[]): Int32Array | undefined {
  const ids = content.map((t) => /^token_id:(\d+)$/.exec(t.token ?? '')?.[1]);
  return ids.every((x) => x !== undefined) ? Int32Array.from(ids, Number) : undefined;
}

/** From the server's weight version, or a model name that ends in its version: `ui-tars@v12`, `dart-7b-v3`. */
export function versionOf(c: Completion, fallback: PolicyVersion): PolicyVersion {
  const w = Number(c.metadata?.weight_version ?? NaN);
  if (Number.isInteger(w) && w >= 0) return w;
  const m = /(?:^|[^a-zA-Z0-9.])v(\d+)$/.exec(c.model ?? '');
  return m ? Number(m[1]) : fallback;
}
