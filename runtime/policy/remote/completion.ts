/**
 * A chat completion's answer: text, log-probs, entropies, token ids, version. Log-probs are of the distribution sampled
 * from, as long as the request truncates nothing (no top-p, top-k or penalties;
 * runtime/policy/README.md#log-probs-of-remote-models).
 */
import { FINISH_WORD, StudioError, type PolicyVersion, type TokenTrace } from '../../domain/index.js';
import { isObject, jsonOf } from '../../foreign/json.js';
import type { Decision } from '../types.js';

export interface TokenLogprob {
  readonly token?: string;
  readonly logprob?: number | null;
  readonly top_logprobs?: readonly { readonly token?: string; readonly logprob?: number | null }[];
}
/** The parts of the server's JSON that are read; anything may be missing. */
export interface Completion {
  readonly model?: string;
  readonly metadata?: { readonly weight_version?: string | number } | null;
  readonly choices?: readonly {
    readonly message?: { readonly content?: string | null };
    readonly logprobs?: { readonly content?: readonly TokenLogprob[] | null } | null;
    /** Present with `return_token_ids`. */
    readonly token_ids?: readonly number[] | null;
    readonly finish_reason?: string | null;
  }[];
  /** Present with `return_token_ids`; an image is a run of one pad token. */
  readonly prompt_token_ids?: readonly number[] | null;
}

/**
 * Bytes of a server's answer: a few thousand tokens with their alternatives. Parsing as much holds up the event loop for
 * some 20 ms.
 */
export const MOST_ANSWER_BYTES = 4 << 20;
/** Tokens of an answer and of a prompt, and alternatives of a token. */
const MOST_TOKENS = 1 << 16,
  MOST_PROMPT = 1 << 20,
  MOST_ALTERNATIVES = 64,
  bounds = { depth: 32, values: 1 << 20 };

/**
 * Reads a server's text as a completion in which every field that is read has its type: whoever answers at the address
 * need be no model server. Throws `policy.remote`.
 */
export function completionOf(text: string, server: string): Completion {
  const refused = (what: string): StudioError =>
    new StudioError(
      'policy.remote',
      `${server} answered with ${what}`,
      'Check that the endpoint serves chat completions.',
    );
  if (text.length > MOST_ANSWER_BYTES) throw refused(`JSON that is longer than ${MOST_ANSWER_BYTES >> 20} MB`);
  const c = jsonOf(text, bounds, (beyond) => refused(`JSON that ${beyond}`)),
    why = isObject(c) ? faultOf(c) : `something that is not JSON: ${text.slice(0, 200)}`;
  if (why !== undefined) throw refused(why);
  return asVllm(c as Completion);
}

type Choice = NonNullable<Completion['choices']>[number];
/** SGLang has both kinds of token ids in the choice, and since 0.5.18 those of the answer under a name of its own. */
interface SglangChoice extends Choice {
  readonly prompt_token_ids?: readonly number[] | null;
  readonly response_token_ids?: readonly number[] | null;
}
/** The same completion with token ids where vLLM has them. */
export function asVllm(c: Completion): Completion {
  const [first, ...others] = (c.choices ?? []) as readonly SglangChoice[];
  if (!first || (absent(first.prompt_token_ids) && absent(first.response_token_ids))) return c;
  const { prompt_token_ids: prompt, response_token_ids: answer, ...choice } = first;
  return {
    ...c,
    choices: [{ ...choice, token_ids: choice.token_ids ?? answer }, ...others],
    prompt_token_ids: c.prompt_token_ids ?? prompt,
  };
}

type Fields = Readonly<Record<string, unknown>>;
const absent = (v: unknown): boolean => v === undefined || v === null;
const isText = (v: unknown): boolean => absent(v) || typeof v === 'string';
const isNumber = (v: unknown): boolean => absent(v) || typeof v === 'number';
const areIds = (v: unknown, most: number): boolean =>
  absent(v) || (Array.isArray(v) && v.length <= most && v.every((n) => Number.isInteger(n) && n >= 0 && n < 2 ** 31));
const isToken = (t: unknown): boolean => isObject(t) && isText(t['token']) && isNumber(t['logprob']);
const isSampled = (t: unknown): boolean => {
  if (!isToken(t)) return false;
  const top = (t as Fields)['top_logprobs'];
  return absent(top) || (Array.isArray(top) && top.length <= MOST_ALTERNATIVES && top.every(isToken));
};

/** Why a completion is invalid, in words; undefined when every field that is read has its type. */
function faultOf(c: Fields): string | undefined {
  const { model, metadata, choices } = c;
  if (model !== undefined && typeof model !== 'string') return 'a model that is no name';
  if (!absent(metadata) && !isObject(metadata)) return 'metadata that are no object';
  const weights = isObject(metadata) ? metadata['weight_version'] : undefined;
  if (!isText(weights) && !isNumber(weights)) return 'a weight_version that is no version';
  if (!areIds(c['prompt_token_ids'], MOST_PROMPT)) return 'prompt_token_ids that are no token ids';
  if (choices === undefined) return undefined;
  if (!Array.isArray(choices) || !choices.every(isObject)) return 'choices that are no list of objects';
  const [first] = choices as Fields[];
  if (!first) return undefined;
  const { message, logprobs, token_ids: ids, response_token_ids: others, finish_reason: finish } = first;
  if (!absent(message) && !(isObject(message) && isText(message['content']))) return 'a message without text';
  if (!areIds(ids, MOST_TOKENS) || !areIds(others, MOST_TOKENS)) return 'token_ids that are no token ids';
  if (!areIds(first['prompt_token_ids'], MOST_PROMPT)) return 'prompt_token_ids that are no token ids';
  if (!isText(finish)) return 'a finish_reason that is no word';
  const content = isObject(logprobs) ? logprobs['content'] : undefined;
  if (!absent(logprobs) && !isObject(logprobs)) return 'logprobs that are no object';
  if (!absent(content) && !(Array.isArray(content) && content.length <= MOST_TOKENS && content.every(isSampled)))
    return 'logprobs that are no list of tokens';
  return undefined;
}

/** No sampled token is less probable; servers write -9999 or null for "none", which is not a log-prob. */
const LEAST = -100;
/** NaN where the server did not say it: an invented number would be trained on. */
const logprobOf = (x: number | null | undefined): number =>
  typeof x === 'number' && x >= LEAST ? Math.min(0, x) : NaN;

/** Token by token, or undefined when the server gave no log-probs. Entropies are lower bounds (`entropyLowerBound`). */
export function traceOf(c: Completion): TokenTrace | undefined {
  const choice = c.choices?.[0],
    content = choice?.logprobs?.content;
  if (!content || content.length === 0) return undefined;
  const ids = choice!.token_ids?.length === content.length ? Int32Array.from(choice!.token_ids) : idsFromNames(content),
    finish = choice!.finish_reason;
  return {
    logprobs: Float32Array.from(content, (t) => logprobOf(t.logprob)),
    entropies: Float32Array.from(content, (t) =>
      entropyLowerBound(
        [logprobOf(t.logprob)],
        (t.top_logprobs ?? []).map((x) => logprobOf(x.logprob)),
      ),
    ),
    bound: 'lower',
    ids,
    ...(finish && FINISH_WORD.test(finish) ? { finish } : {}),
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
    if (Number.isNaN(l)) continue;
    const p = Math.exp(l);
    h -= p * l;
    mass += p;
  }
  const rest = 1 - mass;
  return Math.max(0, rest > 1e-9 ? h - rest * Math.log(rest) : h);
}

/** Alternatives less probable than this are not kept: most answers have hardly any, and a step stays small. */
const LEAST_SHOWN = 0.01;
/**
 * Characters of all of them: far more than an answer has, and two such answers are no more than a record of the journal
 * may hold.
 */
const MOST_WORDS = 1 << 18;
/**
 * For the inspector: each token in words, and the alternatives that might have been sampled, as long as they are short
 * enough.
 */
export function wordsOf(c: Completion): Pick<Decision, 'labels' | 'alternatives'> {
  const content = c.choices?.[0]?.logprobs?.content;
  if (!content || content.length === 0) return {};
  const labels = content.map((t) => t.token ?? ''),
    alternatives = content.map((t) =>
      (t.top_logprobs ?? []).flatMap((o) => {
        const probability = Math.exp(logprobOf(o.logprob));
        return probability >= LEAST_SHOWN && o.token !== t.token ? [{ label: o.token ?? '', probability }] : [];
      }),
    ),
    own = lengthOf(labels);
  if (own > MOST_WORDS) return {};
  return own + lengthOf(alternatives.flat().map((a) => a.label)) > MOST_WORDS ? { labels } : { labels, alternatives };
}
const lengthOf = (words: readonly string[]): number => words.reduce((n, w) => n + w.length + 1, 0);

/** vLLM can name tokens `token_id:123`. */
function idsFromNames(content: readonly TokenLogprob[]): Int32Array | undefined {
  const ids = content.map((t) => /^token_id:(\d+)$/.exec(t.token ?? '')?.[1]);
  return ids.every((x) => x !== undefined) ? Int32Array.from(ids, Number) : undefined;
}

/**
 * The policy version of a completion, from the server's weight version or a model name that ends in it: `ui-tars@v12`,
 * `dart-7b-v3`.
 */
export function versionOf(c: Completion): PolicyVersion | undefined {
  const w = Number(c.metadata?.weight_version ?? NaN);
  if (Number.isInteger(w) && w >= 0) return w;
  const m = /(?:^|[^a-zA-Z0-9.])v(\d+)$/.exec(c.model ?? '');
  return m ? Number(m[1]) : undefined;
}

/** The part of a completion that a decision needs: small, and fit to be sent between threads. */
export interface Said extends Pick<Decision, 'labels' | 'alternatives'> {
  readonly model: string | undefined;
  readonly version: PolicyVersion | undefined;
  /** Absent where the server left out the message. */
  readonly text: string | undefined;
  readonly tokens: TokenTrace | undefined;
  readonly promptIds: Int32Array | undefined;
  /** The beginning of an answer that has no message. */
  readonly instead?: string;
}
export function saidIn(c: Completion): Said {
  const text = c.choices?.[0]?.message?.content ?? undefined,
    ids = c.prompt_token_ids;
  return {
    model: c.model,
    version: versionOf(c),
    text,
    tokens: traceOf(c),
    promptIds: ids ? Int32Array.from(ids) : undefined,
    ...(text === undefined ? { instead: JSON.stringify(c).slice(0, 300) } : {}),
    ...wordsOf(c),
  };
}
