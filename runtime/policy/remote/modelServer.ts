/** Calls to an OpenAI-compatible server with runtime adapters, over HTTP. Nothing it says is trusted. */
import { withoutSlashes } from '../../foreign/address.js';
import { boundedBody } from '../../foreign/boundedBody.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { MODEL_FAULTS, StudioError, messageOf } from '../../domain/index.js';
import { isObject, jsonOf } from '../../foreign/json.js';
import type { JsonBounds } from '../../foreign/jsonBounds.js';
import { askedMs, pause } from '../../concurrency/pause.js';
import { MOST_ANSWER_BYTES, completionOf, type Completion, type Said } from './completion.js';
import { refusesLength } from './contextRefusal.js';
import { besideOf, dialectOf, type Dialect } from './dialect.js';
import { callHere, decisionCancelled, type ModelCaller } from './modelCalls.js';
import { jsonPieces } from './picture.js';
import { LateAnswer, postJson, type Posted } from './postJson.js';
import { loadOf, type ServerLoad } from './load.js';
import { HEAD_REMEDY, SPOKEN, datedBy, type Dated } from './versions.js';

export interface ModelServerOptions {
  /** Ends in /v1 (or whatever precedes /chat/completions). */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Time limit of one answer. Default 180 s. */
  readonly timeoutMs?: number;
  /** Resolves when the server is there, for one that may be starting again; rejects where it stays away. */
  readonly ready?: (signal: AbortSignal) => Promise<unknown>;
  /** First pause after 429; doubles each time. Default 250 ms. */
  readonly backoffMs?: number;
  /** A server that is busy (429) is waited for so long. Default 10 minutes. */
  readonly busyMs?: number;
  /** Makes the calls of `ask`. Default: this thread. */
  readonly caller?: ModelCaller;
}
const TIMEOUT_MS = 180_000,
  BACKOFF_MS = 250,
  MOST_BACKOFF_MS = 10_000,
  BUSY_MS = 10 * 60_000;
/** Bytes of a list of models, and of a server's figures of itself. */
const MOST_PAGE_BYTES = 1 << 20;
/** Models with what a server says of each; token ids of a prompt. */
const MODELS: JsonBounds = { depth: 16, values: 1 << 16 },
  TOKENS: JsonBounds = { depth: 16, values: (1 << 20) + 1024 };

const COMPLETIONS = '/chat/completions';
/** Sampling from the model's own distribution. */
export const UNTRUNCATED = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1 } as const;
/** Tokens whose log-probs are asked for, and what they stand behind. */
interface Asked {
  readonly prompt: Int32Array;
  readonly answer: Int32Array;
}

export class ModelServer {
  readonly #o: ModelServerOptions;
  readonly #base: string;
  /** Base address of the routes of vLLM and SGLang that are not OpenAI's. */
  readonly #beside: string;
  #dialect: Dialect | undefined;

  constructor(o: ModelServerOptions) {
    this.#o = o;
    this.#base = withoutSlashes(o.url);
    this.#beside = besideOf(this.#base);
  }

  /** Which server it is, by its list of models; asked again where that list is empty. */
  async dialect(signal: AbortSignal): Promise<Dialect> {
    if (this.#dialect) return this.#dialect;
    const cards = await this.cards(signal),
      found = dialectOf(cards);
    if (cards.length > 0) this.#dialect = found;
    return found;
  }

  /**
   * A chat completion, whole. A server that is busy (429) is waited for; one that fails or is away rejects with
   * `policy.lost`, so that another replica answers; one that refuses the request rejects with `policy.remote`, its status
   * beside.
   */
  async complete(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Completion> {
    const a = await this.#patiently(signal, () => this.#post(COMPLETIONS, body, signal));
    if (a.status === 200) return completionOf(a.text, this.#base);
    throw this.#refused(a, COMPLETIONS);
  }
  /** The same, and of the answer what a decision needs. */
  async ask(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Said> {
    const { apiKey, timeoutMs = TIMEOUT_MS, caller = callHere } = this.#o,
      call = { url: `${this.#base}${COMPLETIONS}`, body, apiKey, timeoutMs, most: MOST_ANSWER_BYTES, tooLong },
      server = this.#base;
    const a = await this.#patiently(signal, () => this.#answer(signal, () => caller.call({ ...call, server }, signal)));
    if (a.said) return a.said;
    throw this.#refused(a, COMPLETIONS);
  }
  async #patiently<A extends Posted>(signal: AbortSignal, ask: () => Promise<A>): Promise<A> {
    const { backoffMs = BACKOFF_MS, busyMs = BUSY_MS } = this.#o,
      growth = { baseMs: backoffMs, maxMs: MOST_BACKOFF_MS },
      began = performance.now();
    for (let before = 0; ; before++) {
      const a = await ask();
      // A server that stays busy is reported instead of holding up the start of a run.
      if (a.status !== 429 || performance.now() - began > busyMs) return a;
      await pause(Math.min(MOST_BACKOFF_MS, askedMs(a.retryAfterMs, growth, before)), signal, decisionCancelled);
    }
  }

  /** Token ids of a conversation by the server's tokenizer and chat template (beside /v1, not under it). */
  async tokenize(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<readonly number[]> {
    const a = await this.#patiently(signal, () => this.#post('/tokenize', body, signal, this.#beside)),
      tokens = (this.#json(a, '/tokenize', TOKENS) as { tokens?: unknown } | undefined)?.tokens;
    if (!Array.isArray(tokens) || !tokens.every((t) => Number.isInteger(t))) throw this.#refused(a, '/tokenize');
    return tokens as number[];
  }

  /** Loading what is loaded already, from the same path, is no error: a replica may have been started again. */
  async loadAdapter(name: string, path: string, signal: AbortSignal): Promise<void> {
    const where = await this.#adapters(signal),
      a = await this.#post('/load_lora_adapter', { lora_name: name, lora_path: path }, signal, where);
    if (a.status === 200) return;
    if (a.status === 400 && (await this.cards(signal)).some((m) => m['id'] === name && m['root'] === path)) return;
    if (a.status === 404 || a.status === 405) await this.#sameServer(signal);
    throw this.#refused(a, '/load_lora_adapter', where);
  }
  /** Unloads an adapter. One that is not loaded is no error (404 from vLLM, 400 from SGLang). */
  unloadAdapter(name: string): Promise<void> {
    return withDeadline(TIMEOUT_MS, [], async (signal) => {
      const where = await this.#adapters(signal),
        a = await this.#post('/unload_lora_adapter', { lora_name: name }, signal, where);
      if (a.status === 200 || a.status === 404) return;
      if (a.status === 400) {
        const there = await this.models(signal);
        if (there.length > 0 && !there.includes(name)) return;
      }
      throw this.#refused(a, '/unload_lora_adapter', where);
    });
  }
  /** Throws `policy.lost` where another kind of server has taken the address of the one that was spoken to. */
  async #sameServer(signal: AbortSignal): Promise<void> {
    const was = this.#dialect;
    this.#dialect = undefined;
    const is = await this.dialect(signal);
    if (was && was.server !== is.server)
      throw new StudioError(
        'policy.lost',
        `${this.#base} was ${was.server} and is ${is.server} now.`,
        'Nothing has to be done: it is started as what it is.',
      );
  }
  async #adapters(signal: AbortSignal): Promise<string> {
    return (await this.dialect(signal)).adapters === 'beside' ? this.#beside : this.#base;
  }

  /**
   * Log-probs (natural logarithm, temperature 1) of `answer` behind `prompt`, token ids without pictures, with the adapter
   * `name` or with the base model. Undefined where the server cannot be asked that.
   */
  async score(asked: Asked, name: string | undefined, signal: AbortSignal): Promise<readonly number[] | undefined> {
    const { scores } = await this.dialect(signal);
    return scores === 'together' ? this.#scoreTogether(asked, name, signal) : this.#scoreOneByOne(asked, name, signal);
  }
  /** The log-probs of the sampling are the model's own in vLLM, whatever tokens are allowed, unless it tells processed ones. */
  async #scoreOneByOne(
    { prompt, answer }: Asked,
    name: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly number[] | undefined> {
    const model = name ?? (await this.models(signal))[0],
      ask = async (token: number, i: number): Promise<number | undefined> => {
        const body = {
          model,
          prompt: [...prompt, ...answer.subarray(0, i)],
          max_tokens: 1,
          ...UNTRUNCATED,
          allowed_token_ids: [token],
          logprobs: 1,
          return_token_ids: true,
        };
        const a = await this.#patiently(signal, () => this.#post('/completions', body, signal));
        return loneIn(this.#json(a, '/completions', TOKENS), token);
      },
      said = await Promise.all(Array.from(answer, ask));
    // The only token that is allowed is certain: these are processed log-probs, which say nothing of the weights.
    return said.every((x) => x !== undefined) && said.some((x) => x !== 0) ? said : undefined;
  }
  async #scoreTogether(
    { prompt, answer }: Asked,
    name: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const body = {
      input_ids: [...prompt, ...answer],
      lora_path: name,
      sampling_params: { max_new_tokens: 1, temperature: 0 },
      return_logprob: true,
      logprob_start_len: prompt.length - 1,
    };
    const a = await this.#patiently(signal, () => this.#post('/generate', body, signal, this.#beside)),
      scored = scoredIn(this.#json(a, '/generate', TOKENS), answer);
    if (!scored) throw this.#refused(a, '/generate', this.#beside);
    return scored;
  }

  /** The server's load by its own figures (vLLM, SGLang and our engine: /metrics); undefined where it gives none. */
  async load(signal: AbortSignal): Promise<ServerLoad | undefined> {
    const a = await this.#get('/metrics', signal, this.#beside);
    return a.status === 200 ? loadOf(a.text) : undefined;
  }

  /** Names of models and adapters that it has. */
  async models(signal: AbortSignal): Promise<readonly string[]> {
    return (await this.cards(signal)).flatMap(({ id }) => (typeof id === 'string' ? [id] : []));
  }
  /** The server's entry about each of them. */
  async cards(signal: AbortSignal): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const a = await this.#get('/models', signal);
    if (a.status >= 500) throw this.#refused(a, '/models');
    const list = (this.#json(a, '/models', MODELS) as { data?: unknown } | undefined)?.data;
    return Array.isArray(list) ? list.map((m: unknown) => (isObject(m) ? m : {})) : [];
  }
  /** The server's version (vLLM and our engine: /version; SGLang: /server_info); undefined where it says none. */
  async version(signal: AbortSignal): Promise<unknown> {
    const said = this.#json(await this.#get('/version', signal, this.#beside), '/version', MODELS);
    if (said !== undefined || (await this.dialect(signal)).server !== 'SGLang') return said;
    const page = this.#json(await this.#get('/server_info', signal, this.#beside), '/server_info', MODELS);
    // The page holds the server's whole configuration, keys included: only the version is kept.
    return isObject(page) ? { version: page['version'] } : undefined;
  }

  /** Which of the two it is, how old, where it says so. */
  async dated(signal: AbortSignal): Promise<Dated | undefined> {
    return datedBy(await this.version(signal), await this.cards(signal));
  }

  /** An answer as JSON; undefined where the server refused. Throws `policy.remote` on an answer beyond the bounds. */
  #json(a: Posted, path: string, most: JsonBounds): unknown {
    if (a.status !== 200) return undefined;
    const refused = (beyond: string): StudioError =>
      new StudioError('policy.remote', `${this.#base}${path} answered with JSON that ${beyond}.`, ANOTHER);
    return jsonOf(a.text, most, refused);
  }
  #post(path: string, body: unknown, signal: AbortSignal, base = this.#base): Promise<Posted> {
    const { apiKey, timeoutMs = TIMEOUT_MS } = this.#o;
    return this.#answer(signal, () =>
      postJson({
        url: `${base}${path}`,
        body: jsonPieces(body),
        apiKey,
        timeoutMs,
        signal,
        most: MOST_ANSWER_BYTES,
        tooLong,
      }),
    );
  }
  #get(path: string, signal: AbortSignal, base = this.#base): Promise<Posted> {
    const { apiKey, timeoutMs = TIMEOUT_MS } = this.#o;
    return this.#answer(signal, () =>
      withDeadline(timeoutMs, [signal], async (either) => {
        const response = await fetch(`${base}${path}`, {
          // A redirect is not followed: it would send the key to an address that nobody named.
          redirect: 'manual',
          signal: either,
          headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
        });
        const text = (await boundedBody(response, MOST_PAGE_BYTES, () => longPage(`${base}${path}`))).toString('utf8');
        return { status: response.status, text, retryAfterMs: undefined };
      }),
    );
  }
  async #answer<A extends Posted>(signal: AbortSignal, ask: () => Promise<A>): Promise<A> {
    try {
      await this.#o.ready?.(signal);
      return await ask();
    } catch (e) {
      if (signal.aborted) throw decisionCancelled();
      if (e instanceof StudioError) throw e;
      if (e instanceof LateAnswer)
        throw new StudioError(
          'policy.lost',
          `${this.#base} is slow: ${e.message}.`,
          'It is asked again automatically. If it happens often, lower policy.vlm.concurrency or policy.vlm.maxTokens.',
          { cause: e, details: MODEL_FAULTS.late },
        );
      const why = e instanceof Error && e.cause instanceof Error ? e.cause.message : messageOf(e);
      throw new StudioError(
        'policy.lost',
        `${this.#base} cannot be reached: ${why}`,
        'Check that the model server runs and that policy.vlm.endpoints is right.',
        { cause: e },
      );
    }
  }

  #refused({ status, text }: Posted, path: string, base = this.#base): StudioError {
    const said = text.slice(0, 500);
    return status >= 500 || status === 429
      ? new StudioError(
          'policy.lost',
          `${base}${path} answered ${status}: ${said}`,
          "Check the model server's log. The runtime retries automatically.",
          { details: { status } },
        )
      : new StudioError('policy.remote', `${base}${path} answered ${status}: ${said}`, remedyFor(status, path, said), {
          details: { status, ...(refusesLength(status, text) ? MODEL_FAULTS.outgrown : {}) },
        });
  }
}

const remedyFor = (status: number, path: string, said: string): string => {
  if (status >= 300 && status < 400)
    return 'Give the address that it redirects to, if you trust it: redirects are not followed, because the key would go along.';
  if (status === 401 || status === 403) return 'Set the environment variable that policy.vlm.apiKeyEnv names.';
  if (path === '/tokenize') return 'Use a server with /tokenize for conversations (vLLM and SGLang have it).';
  if (path === '/generate')
    return `Let it score tokens: an adapter that does nothing is found by that (SGLang ${SPOKEN.SGLang.oldest} or newer, without a router before it).`;
  // vLLM answers 400, or 500, for layers that it has no adapters for, and names them.
  if (path === '/load_lora_adapter' && /\b(lm_head|unembed)/.test(said)) return HEAD_REMEDY;
  if (path !== '/chat/completions')
    return 'Start the server with runtime adapters (vLLM: VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, --enable-lora, --max-lora-rank; SGLang: --enable-lora, --max-lora-rank, --lora-target-modules), and check that it sees the folder of adapters (policy.vlm.adapters).';
  if (status === 404)
    return 'Check policy.vlm.model, which must be a model that the server lists, and that the URL ends in /v1.';
  return 'Check how many images and tokens the server takes (vLLM: --limit-mm-per-prompt, --max-model-len; SGLang: --limit-mm-data-per-request, --context-length).';
};

/** The log-prob in vLLM's answer of the only token that it may say; undefined where it says another, or none. */
function loneIn(said: unknown, token: number): number | undefined {
  const choices = isObject(said) && Array.isArray(said['choices']) ? (said['choices'] as unknown[]) : [],
    [choice] = choices,
    ids = isObject(choice) ? choice['token_ids'] : undefined,
    told = isObject(choice) && isObject(choice['logprobs']) ? choice['logprobs']['token_logprobs'] : undefined;
  if (!Array.isArray(ids) || ids[0] !== token || !Array.isArray(told)) return undefined;
  const [first] = told as unknown[];
  return typeof first === 'number' ? first : undefined;
}

/** The log-probs in SGLang's answer of the tokens asked about; undefined where it does not give them. */
function scoredIn(said: unknown, answer: Int32Array): number[] | undefined {
  const meta = isObject(said) ? said['meta_info'] : undefined,
    all: unknown = isObject(meta) ? meta['input_token_logprobs'] : undefined;
  if (!Array.isArray(all)) return undefined;
  const last = (all as unknown[]).slice(-answer.length),
    // Each is a log-prob, the token's id, and its text.
    logprobs = last.flatMap((t, i) =>
      Array.isArray(t) && typeof t[0] === 'number' && t[1] === answer[i] ? [t[0]] : [],
    );
  return logprobs.length === answer.length ? logprobs : undefined;
}

const tooLong = (): StudioError =>
  new StudioError(
    'policy.remote',
    `A model server's answer is larger than ${MOST_ANSWER_BYTES >> 20} MB.`,
    'Lower policy.vlm.maxTokens or policy.vlm.alternatives.',
  );
const ANOTHER = 'Check that policy.vlm.endpoints names a model server.';
const longPage = (url: string): StudioError =>
  new StudioError('policy.remote', `${url} answered with more than ${MOST_PAGE_BYTES >> 20} MB.`, ANOTHER);
