/**
 * `policy: openai`: a vision-language model behind OpenAI-compatible endpoints (vLLM, SGLang, ...), speaking the
 * UI-TARS grammar. Each decision is one chat completion with the newest screenshots and every text of the episode;
 * log-probs are recorded as sampled.
 */
import type { Action, Frame, PolicyVersion, ReplicaId, Size } from '../../domain/index.js';
import { StudioError, hash32, id } from '../../domain/index.js';
import type { CoordinateMode, ResizeLimits } from '../actions/coordinates.js';
import { GrammarError } from '../actions/parse.js';
import type { Coordinates } from '../actions/uiTars.js';
import { formatAnswer, parseActions } from '../actions/uiTars.js';
import type { Decision, Policy, PolicySession, Sampling } from '../types.js';
import type { Completion } from './completion.js';
import { traceOf, versionOf } from './completion.js';
import type { EndpointOptions } from './endpoints.js';
import { Endpoints } from './endpoints.js';
import { type PromptOptions, type Turn, addBoxTokens, messagesOf, uiTarsPrompt } from '../actions/prompt.js';

export interface OpenAiPolicyOptions extends EndpointOptions {
  readonly model: string;
  readonly encodePng: (f: Frame) => Promise<Uint8Array>;
  readonly coordinates: CoordinateMode;
  readonly limits?: ResizeLimits;
  /** Newest screenshots kept in the prompt, the present one included. Default 5 (paper). */
  readonly images?: number;
  /** Default 512. */
  readonly maxTokens?: number;
  /** Alternatives asked per token, for the entropy bound; 0 asks none. Default 8. */
  readonly topLogprobs?: number;
  /** Version of the weights when neither the server nor the model's name tells it. Default 0. */
  readonly version?: PolicyVersion;
  readonly prompt?: PromptOptions & {
    /** Replaces the UI-TARS prompt. */
    readonly template?: (instruction: string) => string;
  };
}

/**
 * Sampling must use the model's own distribution, or the recorded log-probs are not those sampled from; without these
 * fields a server applies the truncation and penalties of the model's generation_config
 * (runtime/policy/README.md#log-probs-of-remote-models).
 */
const UNTRUNCATED = { top_k: -1, min_p: 0, repetition_penalty: 1, return_token_ids: true };

export function createOpenAiPolicy(o: OpenAiPolicyOptions): Policy {
  const endpoints = new Endpoints(o);
  return { open: (s) => new OpenAiSession(o, endpoints, s.rollout, s.instruction, s.screen, s.sampling) };
}

class OpenAiSession implements PolicySession {
  readonly #o: OpenAiPolicyOptions;
  readonly #endpoints: Endpoints;
  readonly #session: string;
  readonly #prompt: string;
  readonly #coordinates: Coordinates;
  readonly #sampling: Sampling;
  readonly #turns: Turn[] = [];
  /** Screenshots that the newest turn displaced. */
  #dropped: { readonly turn: Turn; readonly image: string }[] = [];
  #asked = 0;

  constructor(
    o: OpenAiPolicyOptions,
    endpoints: Endpoints,
    session: string,
    instruction: string,
    screen: Size,
    sampling: Sampling,
  ) {
    this.#o = o;
    this.#endpoints = endpoints;
    this.#session = session;
    this.#sampling = sampling;
    this.#prompt = o.prompt?.template?.(instruction) ?? uiTarsPrompt(instruction, o.prompt);
    this.#coordinates = { mode: o.coordinates, screen, limits: o.limits };
  }

  async decide(frame: Frame, signal: AbortSignal): Promise<Decision> {
    const o = this.#o,
      sampling = this.#sampling;
    const image = `data:image/png;base64,${Buffer.from(await o.encodePng(frame)).toString('base64')}`;
    const top = o.topLogprobs ?? 8;
    const reply = await this.#endpoints.post(
      this.#session,
      '/chat/completions',
      {
        model: o.model,
        messages: messagesOf(this.#prompt, this.#turns, image),
        max_tokens: o.maxTokens ?? 512,
        n: 1,
        stream: false,
        temperature: sampling.greedy ? 0 : sampling.temperature,
        top_p: 1,
        seed: hash32(`${sampling.seed}/${this.#asked++}`) & 0x7fffffff,
        logprobs: true,
        top_logprobs: top > 0 ? top : undefined,
      },
      UNTRUNCATED,
      signal,
    );
    const completion = (reply.json ?? {}) as Completion;
    const text = completion.choices?.[0]?.message?.content;
    if (typeof text !== 'string')
      throw new StudioError(
        'policy.remote',
        `${reply.endpoint} answered without a message: ${JSON.stringify(reply.json).slice(0, 300)}`,
        'Check that the endpoint serves chat completions.',
      );
    const tokens = traceOf(completion),
      version = versionOf(completion, o.version ?? 0);
    const said = this.#parse(text, { tokens, version });
    this.#remember({ image, text: addBoxTokens(text) });
    return {
      actions: said.actions,
      thought: said.thought,
      tokens,
      entropy: tokens ? 'lower-bound' : undefined,
      version,
      replica: id<ReplicaId>(reply.endpoint),
      queueMs: reply.waited,
      computeMs: reply.ms,
    };
  }

  acted(actions: readonly Action[]): void {
    this.#remember({ image: undefined, text: formatAnswer({ actions }, { ...this.#coordinates, boxTokens: true }) });
  }

  retract(): void {
    this.#turns.pop();
    for (const { turn, image } of this.#dropped.splice(0)) turn.image = image;
  }

  close(): void {
    this.#endpoints.end(this.#session);
  }

  /** The error of an answer outside the grammar keeps its text and tokens, so that training can make it less likely. */
  #parse(text: string, sampled: Record<string, unknown>): ReturnType<typeof parseActions> {
    try {
      return parseActions(text, this.#coordinates);
    } catch (e) {
      if (e instanceof GrammarError)
        throw new StudioError('policy.invalid', e.message, e.error.remedy, {
          details: { ...e.error.details, ...sampled },
          cause: e,
        });
      throw e;
    }
  }

  /** Screenshots older than the newest `images` (the one to come included) are dropped; texts stay. */
  #remember(turn: Turn): void {
    this.#turns.push(turn);
    const keep = Math.max(1, this.#o.images ?? 5) - 1;
    const withImage = this.#turns.filter((t) => t.image !== undefined);
    this.#dropped = withImage
      .slice(0, Math.max(0, withImage.length - keep))
      .map((turn) => ({ turn, image: turn.image! }));
    for (const { turn } of this.#dropped) turn.image = undefined;
  }
}
