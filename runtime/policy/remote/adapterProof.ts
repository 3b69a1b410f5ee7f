/**
 * Proof that a server answers with the weights of an adapter: some tokens for a fixed prompt, held against what the
 * trainer makes of them with these weights. They are those that the version before answered with: tokens of weights far
 * back are hardly probable by now, and hardly probable is all that other weights make of them, too.
 */
import { traceOf, type Completion, type TokenLogprob } from './completion.js';
import { ModelServer, UNTRUNCATED, type ModelServerOptions } from './modelServer.js';

/** The fixed prompt as a server counts it, and what it answers: what a trainer can score too. */
export interface Proof {
  readonly prompt: Int32Array;
  readonly answer: Int32Array;
  /** The answer's tokens as the server writes them. */
  readonly tokens: readonly string[];
}
/** Tokens that follow the prompt, with the trainer's log-probs of them. */
export interface Scored {
  readonly answer: Int32Array;
  readonly logprobs: Float32Array;
}
/** A proof, with the trainer's log-probs of its answer and of the unsaid tokens. */
export interface ExpectedProof extends Proof, Scored {
  readonly unsaid?: Scored | undefined;
}

const REQUEST = {
  messages: [{ role: 'user', content: 'Describe the next action.' }],
  max_tokens: 8,
  // Sampled with a fixed seed: the most probable token of a sharp distribution hardly distinguishes weights.
  ...UNTRUNCATED,
  seed: 7,
  logprobs: true,
  top_logprobs: 5,
  return_token_ids: true,
};
/**
 * Allowed mean difference of a token's log-prob: trainer and server differ by their number formats, by at most 0.02 in
 * bfloat16 as measured.
 */
const TOLERANCE = 0.05;
/**
 * At improbable tokens they differ by more, 3.5 % of the log-prob as measured, where other weights move it by nats.
 * Allowed is a tenth of what is beyond `PROBABLE`, in nats.
 */
const OF_IMPROBABLE = 0.1;
const PROBABLE = 2;
/** Weights whose log-probs the trainer moves further than this, in the mean, change some digit of a server's. */
const MOVED = 0.02;

/** Number of unsaid tokens. */
const UNSAID = 8;
/**
 * The last tokens of the prompt, backwards: tokens that no weights make probable. A model that is sure of its answer
 * gives it with other weights, too; at these tokens its log-probs differ.
 */
export const unsaidAfter = (prompt: Int32Array): Int32Array => prompt.slice(-UNSAID).reverse();

export const proofRequest = (imageToken: number | undefined): Readonly<Record<string, unknown>> =>
  imageToken === undefined ? REQUEST : { ...REQUEST, logit_bias: { [imageToken]: -100 } };

/** Undefined where the server does not return tokens. */
export function proofIn(c: Completion): Proof | undefined {
  const answer = traceOf(c)?.ids,
    tokens = c.choices?.[0]?.logprobs?.content?.flatMap((t) => (t.token === undefined ? [] : [t.token]));
  if (!c.prompt_token_ids || !answer || tokens?.length !== answer.length) return undefined;
  return { prompt: Int32Array.from(c.prompt_token_ids), answer, tokens };
}
/** The proof, from a model that the server has. */
export async function proofOf(
  o: ModelServerOptions & { readonly imageToken?: number },
  model: string,
  signal: AbortSignal,
): Promise<Proof | undefined> {
  return proofIn(await new ModelServer(o).complete({ ...proofRequest(o.imageToken), model }, signal));
}

/** Log-probs of the same tokens under one set of weights: the server's, and the trainer's. */
export interface Agreement {
  readonly answer: Int32Array;
  readonly there: Float32Array;
  readonly training: Float32Array;
}
/** Undefined where the server sampled other tokens than those that are expected. */
export function agreementOf({ answer, logprobs }: ExpectedProof, c: Completion): Agreement | undefined {
  const trace = traceOf(c);
  return trace?.ids && sameNumbers(trace.ids, answer)
    ? { answer, there: trace.logprobs, training: logprobs }
    : undefined;
}
/** Whether a server said the same, to the last digit, of the same tokens. */
export const saidTheSame = (before: Agreement, now: Agreement): boolean =>
  sameNumbers(before.answer, now.answer) && sameNumbers(before.there, now.there);
/** How a server that said the same with two weights shows that it ignores them, in words; undefined where it does not. */
export function unmoved(before: Agreement, now: Agreement): string | undefined {
  const moved = now.training.reduce((sum, x, i) => sum + Math.abs(x - before.training[i]!), 0) / now.training.length;
  return moved > MOVED
    ? `every log-prob is to the last digit what it was with earlier weights, and in training they are ${moved.toFixed(3)} apart in the mean`
    : undefined;
}
const sameNumbers = (a: ArrayLike<number>, b: ArrayLike<number>): boolean =>
  a.length === b.length && Array.from(a).every((x, i) => x === b[i]);

/** How far a server is from the trainer at one token, and what it said of it. */
interface Distance {
  readonly by: number;
  readonly there: string;
  readonly training: number;
}
/** How an answer shows other weights than the expected ones, in words; undefined where it does not. */
export function unlike({ answer, tokens, logprobs }: ExpectedProof, c: Completion): string | undefined {
  const [choice] = c.choices ?? [],
    said = choice?.logprobs?.content ?? [],
    ids = choice?.token_ids,
    distances: Distance[] = [];
  for (let i = 0; i < Math.min(said.length, tokens.length); i++) {
    const same = ids ? ids[i] === answer[i] : said[i]!.token === tokens[i];
    distances.push(distance(tokens[i]!, logprobs[i]!, said[i]!, ids ? same : undefined));
    // Behind another token it is another prompt.
    if (!same) break;
  }
  return tooFar(distances);
}
/** The same, for log-probs that the server gave to the very tokens of the expected answer. */
export function unlikeScored({ logprobs }: Pick<Scored, 'logprobs'>, there: readonly number[]): string | undefined {
  return tooFar(there.map((x, i) => ({ by: Math.abs(x - logprobs[i]!), there: x.toFixed(3), training: logprobs[i]! })));
}
function tooFar(distances: readonly Distance[]): string | undefined {
  const mean = (of: (d: Distance) => number): number =>
    distances.reduce((sum, d) => sum + of(d), 0) / Math.max(1, distances.length);
  const allowed = Math.max(TOLERANCE, OF_IMPROBABLE * (mean((d) => -d.training) - PROBABLE));
  if (mean((d) => d.by) <= allowed) return undefined;
  const { there, training } = distances.reduce((a, b) => (b.by > a.by ? b : a));
  return `a log-prob is ${there} there and ${training.toFixed(3)} in training`;
}

/** `same`: whether the sampled token is the expected one; undefined where only their texts are known. */
function distance(token: string, training: number, sampled: TokenLogprob, same: boolean | undefined): Distance {
  const top = knownOf(sampled.top_logprobs ?? []),
    itself = knownOf([sampled]),
    // vLLM puts what was sampled among the most probable ones, even where it is none of them.
    others = top.filter((t) => t.token !== sampled.token || t.logprob !== sampled.logprob),
    candidates = same === false ? others : same && itself.length > 0 ? itself : [...itself, ...top];
  if (itself.length + top.length === 0) return { by: Infinity, there: 'not known', training };
  const named = candidates
    .filter((t) => t.token === token)
    .map((t): Distance => ({ by: Math.abs(t.logprob - training), there: t.logprob.toFixed(3), training }));
  // Parts of characters are all written alike: where another token was sampled, what is so written may be a third one.
  if (named.length > 0 && (same !== false || !token.includes('\ufffd'))) return nearest(named);
  // A token that is not among the most probable ones is at most as probable as the least of them.
  const most = Math.min(...top.filter((t) => t.token !== sampled.token).map((t) => t.logprob));
  return nearest([...named, { by: Math.max(0, training - most), there: `at most ${most.toFixed(3)}`, training }]);
}
const nearest = (of: readonly Distance[]): Distance => of.reduce((a, b) => (b.by < a.by ? b : a));
const knownOf = (of: readonly Pick<TokenLogprob, 'token' | 'logprob'>[]): { token?: string; logprob: number }[] =>
  of.flatMap(({ token, logprob }) => (typeof logprob === 'number' ? [{ token, logprob }] : []));
