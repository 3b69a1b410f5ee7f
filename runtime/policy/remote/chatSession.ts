/**
 * Episodes of a vision-language model in the UI-TARS grammar: each decision is one chat completion with the newest
 * screenshots and every text of the episode. Log-probs are recorded as sampled, and so is the prompt, token by token,
 * where the server says it.
 */
import type { Action, Frame, PolicyVersion, ReplicaId, Screenshot, Size } from '../../domain/index.js';
import { StudioError, hash32, isEncoded } from '../../domain/index.js';
import { checkPerformable } from '../../domain/performable.js';
import { digestOf } from '../../files/digest.js';
import type { CoordinateMode, ResizeLimits } from '../actions/coordinates.js';
import type { Coordinates } from '../actions/uiTars.js';
import { MOST_CHARACTERS } from '../actions/parse.js';
import { formatAnswer, parseActions } from '../actions/uiTars.js';
import type { Decision, InvalidAnswer, PolicySession, Sampling } from '../types.js';
import type { Said } from './completion.js';
import { type PromptOptions, type Turn, addBoxTokens, messagesOf, uiTarsPrompt } from '../actions/prompt.js';
import { Picture, type KeptFile } from './picture.js';
import { recordPrompt, type SentImage } from './promptRecord.js';

export interface ChatOptions {
  /** Encodes screens that their desktop did not encode. */
  readonly encodePng: (f: Frame) => Promise<Uint8Array>;
  /** The file of a screen that its desktop encoded, by its SHA-256, once it is on disk; sessions hold it in memory until then. */
  readonly kept?: (sha256: string) => KeptFile | undefined;
  readonly coordinates: CoordinateMode;
  readonly limits?: ResizeLimits;
  /** Newest screenshots kept in the prompt, the present one included. Default 5 (paper). */
  readonly images?: number;
  /** Default 512. */
  readonly maxTokens?: number;
  /** Alternatives asked per token, for the entropy bound and the inspector; 0 asks none. Default 8. */
  readonly topLogprobs?: number;
  /** Token id that stands for a part of an image in prompts; without it prompts are not recorded. */
  readonly imageToken?: number;
  readonly prompt?: PromptOptions & {
    /** Replaces the UI-TARS prompt. */
    readonly template?: (instruction: string) => string;
  };
}

/** Whoever answers chat completions: somebody's endpoints, or a pool of replicas with our weights. */
export interface ChatTransport {
  /**
   * The answer to a request without its `model`. Rejects with `policy.remote`, `policy.lost`, or `cancelled` as soon as
   * the signal fires.
   */
  complete(
    request: ChatRequest,
    o: {
      /** Calls of one session go to one server while that costs no waiting. */
      readonly session: string;
      readonly signal: AbortSignal;
    },
  ): Promise<ChatReply>;
  /** The session is over; forget where it was routed. */
  end(session: string): void;
}
export interface ChatRequest {
  /** Fields of every OpenAI-compatible server. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Fields beyond OpenAI's own, left out for a server that refuses them. */
  readonly extras: Readonly<Record<string, unknown>>;
}
export interface ChatReply {
  readonly said: Said;
  readonly version: PolicyVersion;
  readonly replica: ReplicaId;
  readonly queueMs: number;
  readonly computeMs: number;
}

/**
 * Sampling must use the model's own distribution, or the recorded log-probs are not those sampled from; without these
 * fields a server applies the truncation and penalties of the model's generation_config
 * (runtime/policy/README.md#log-probs-of-remote-models).
 */
const UNTRUNCATED = { top_k: -1, min_p: 0, repetition_penalty: 1, return_token_ids: true };

/** The sequence sampled so far, for the records of prompts. */
interface Recorded {
  /** Prompt and answer of the latest completion. */
  readonly sequence: Int32Array;
  /** Images that records have named. */
  readonly images: number;
}
/** A turn, and its screenshot as the records of prompts know it. */
interface ShownTurn extends Turn<Picture> {
  readonly sent?: SentImage;
  /** The desktop encoded the screen: the store names the file by its bytes. */
  readonly byFile?: boolean;
}
/** The screen that is being decided on, and how things stood before it was. */
interface Screen {
  readonly frame: Screenshot;
  readonly picture: Picture;
  readonly image: SentImage;
  readonly before: Recorded;
}

export class ChatSession implements PolicySession {
  readonly #o: ChatOptions;
  readonly #transport: ChatTransport;
  readonly #session: string;
  readonly #prompt: string;
  readonly #coordinates: Coordinates;
  readonly #sampling: Sampling;
  readonly #turns: ShownTurn[] = [];
  /** Screenshots that the newest turn displaced. */
  #dropped: { readonly turn: ShownTurn; readonly image: Picture }[] = [];
  #recorded: Recorded = { sequence: new Int32Array(), images: 0 };
  #screen: Screen | undefined;
  /** The server left out what it was shown once: this episode has no further records. */
  #unrecorded = false;
  /** The latest call of `decide` added a turn. */
  #answered = false;
  #asked = 0;

  constructor(
    o: ChatOptions,
    transport: ChatTransport,
    s: {
      readonly rollout: string;
      readonly instruction: string;
      readonly screen: Size;
      readonly sampling: Sampling;
    },
  ) {
    this.#o = o;
    this.#transport = transport;
    this.#session = s.rollout;
    this.#sampling = s.sampling;
    this.#prompt = o.prompt?.template?.(s.instruction) ?? uiTarsPrompt(s.instruction, o.prompt);
    this.#coordinates = { mode: o.coordinates, screen: s.screen, limits: o.limits };
  }

  async decide(frame: Screenshot, signal: AbortSignal): Promise<Decision> {
    const screen = await this.#show(frame);
    this.#leaveToDisk();
    this.#answered = false;
    const reply = await this.#transport.complete(this.#request(screen), { session: this.#session, signal });
    const { version } = reply,
      { text, tokens, promptIds, instead, labels, alternatives } = reply.said;
    if (text === undefined)
      throw new StudioError(
        'policy.remote',
        `${reply.replica} answered without a message: ${instead}`,
        'Check that the endpoint serves chat completions.',
      );
    const prompt = this.#record(promptIds, tokens?.ids, screen),
      words = labels ? { labels, alternatives } : {},
      said = this.#parse(text, { text: text.slice(0, MOST_CHARACTERS), tokens, prompt, version, ...words });
    this.#remember({
      image: screen.picture,
      text: addBoxTokens(text),
      sent: screen.image,
      byFile: isEncoded(screen.frame),
    });
    this.#answered = true;
    return {
      actions: said.actions,
      thought: said.thought,
      tokens,
      prompt,
      version,
      replica: reply.replica,
      queueMs: reply.queueMs,
      computeMs: reply.computeMs,
      ...words,
    };
  }

  acted(actions: readonly Action[]): void {
    this.#screen = undefined;
    this.#remember({ image: undefined, text: formatAnswer({ actions }, { ...this.#coordinates, boxTokens: true }) });
  }

  retract(): void {
    if (this.#screen) this.#recorded = this.#screen.before;
    this.#screen = undefined;
    if (!this.#answered) return;
    this.#answered = false;
    this.#turns.pop();
    for (const { turn, image } of this.#dropped.splice(0)) turn.image = image;
  }

  close(): void {
    this.#transport.end(this.#session);
  }

  /** The screen as an image of the prompt; a screen that looks like an earlier one is the same image, and so is one asked about again. */
  async #show(frame: Screenshot): Promise<Screen> {
    if (this.#screen?.frame === frame && !this.#answered) return this.#screen;
    const png = isEncoded(frame) ? frame.png : await this.#o.encodePng(frame),
      sha256 = digestOf(png),
      number = this.#turns.find((t) => t.sent?.sha256 === sha256)?.sent?.number ?? this.#recorded.images;
    this.#screen = {
      frame,
      picture: new Picture(png),
      image: { number, sha256, format: 'png' },
      before: this.#recorded,
    };
    return this.#screen;
  }

  /** Screens of earlier turns that are on disk by now are read from there: in memory, a thousand sessions would hold five each. */
  #leaveToDisk(): void {
    const { kept } = this.#o;
    if (!kept) return;
    for (const { image, sent, byFile } of this.#turns) {
      if (!image?.inMemory || !sent || !byFile) continue;
      const file = kept(sent.sha256);
      if (file) image.leaveTo(file);
    }
  }

  #request({ picture }: Screen): ChatRequest {
    const o = this.#o,
      sampling = this.#sampling,
      { imageToken } = o,
      top = o.topLogprobs ?? 8;
    return {
      body: {
        messages: messagesOf<Picture>(this.#prompt, this.#turns, picture),
        max_tokens: o.maxTokens ?? 512,
        n: 1,
        stream: false,
        temperature: sampling.greedy ? 0 : sampling.temperature,
        top_p: 1,
        seed: hash32(`${sampling.seed}/${this.#asked++}`) & 0x7fffffff,
        logprobs: true,
        top_logprobs: top > 0 ? top : undefined,
      },
      // An image token in an answer is one that no trainer can take.
      extras: imageToken === undefined ? UNTRUNCATED : { ...UNTRUNCATED, logit_bias: { [imageToken]: -100 } },
    };
  }

  /** The prompt of this completion as a record; undefined where the server does not say its tokens. */
  #record(ids: Int32Array | undefined, answer: Int32Array | undefined, screen: Screen): Decision['prompt'] {
    const { imageToken } = this.#o;
    // A record tells a prompt by the one before it, and names each screen in its own step: after a gap there are none.
    if (!ids || !answer || imageToken === undefined || answer.includes(imageToken)) this.#unrecorded = true;
    if (this.#unrecorded) return undefined;
    const { delta, sequence } = recordPrompt(this.#recorded.sequence, ids!, answer!, {
      pad: imageToken!,
      sent: [...this.#turns.flatMap((t) => (t.image !== undefined && t.sent ? [t.sent] : [])), screen.image],
      known: this.#recorded.images,
    });
    this.#recorded = { sequence, images: this.#recorded.images + delta.images.length };
    return delta;
  }

  /**
   * The error of an answer outside the grammar keeps its text, as far as that is read, and its tokens: they were sampled,
   * and are trained like all others.
   */
  #parse(text: string, sampled: InvalidAnswer): ReturnType<typeof parseActions> {
    try {
      const parsed = parseActions(text, this.#coordinates);
      checkPerformable(parsed.actions);
      return parsed;
    } catch (e) {
      if (e instanceof StudioError && e.kind === 'policy.invalid')
        throw new StudioError('policy.invalid', e.message, e.error.remedy, {
          details: { ...e.error.details, ...sampled },
          cause: e,
        });
      throw e;
    }
  }

  /** Screenshots older than the newest `images` (the one to come included) are dropped; texts stay. */
  #remember(turn: ShownTurn): void {
    this.#turns.push(turn);
    const keep = Math.max(1, this.#o.images ?? 5) - 1;
    const withImage = this.#turns.filter((t) => t.image !== undefined);
    this.#dropped = withImage
      .slice(0, Math.max(0, withImage.length - keep))
      .map((turn) => ({ turn, image: turn.image! }));
    for (const { turn } of this.#dropped) turn.image = undefined;
  }
}
