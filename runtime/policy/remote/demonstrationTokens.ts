/**
 * Demonstrations as the tokens a model would have been shown and would have said. The server's own tokenizer and chat
 * template make them; nothing is tokenised here (runtime/policy/README.md#tokens-of-demonstrations).
 */
import { StudioError, toRunError, type Action, type Size, type Trajectory } from '../../domain/index.js';
import { growingMs, pause, type Patience } from '../../concurrency/pause.js';
import { messagesOf, uiTarsPrompt, type Message, type PromptOptions, type Turn } from '../actions/prompt.js';
import { formatAnswer, type Coordinates } from '../actions/uiTars.js';
import type { ModelServer } from './modelServer.js';

/** A conversation, and the answer that is to be learned. */
export interface ShownAnswer {
  readonly messages: readonly Message[];
  readonly answer: string;
}
export interface DemonstrationOptions {
  readonly coordinates: Coordinates['mode'];
  readonly limits?: Coordinates['limits'];
  /** Newest screenshots kept in the prompt, the present one included. */
  readonly images: number;
  readonly prompt?: PromptOptions & { readonly template?: (instruction: string) => string };
}

/**
 * Step `index` of a demonstration as a conversation: what a policy that had acted so would have seen by then.
 * `urls` are the pictures of the newest screens up to this one, oldest first, `images` of them at most.
 */
export function demonstrated(
  t: Pick<Trajectory, 'instruction' | 'steps'>,
  index: number,
  urls: readonly string[],
  o: DemonstrationOptions,
): ShownAnswer {
  const said = (i: number): string => {
      const { thought, actions, frame } = t.steps[i]!;
      return spoken({ thought, actions }, frame, o);
    },
    first = index + 1 - urls.length;
  const turns = t.steps
    .slice(0, index)
    .map((_, i): Turn => ({ image: i >= first ? urls[i - first] : undefined, text: said(i) }));
  const prompt = o.prompt?.template?.(t.instruction) ?? uiTarsPrompt(t.instruction, o.prompt);
  return { messages: messagesOf(prompt, turns, urls.at(-1)!), answer: said(index) };
}
const spoken = (
  said: { readonly thought: string | undefined; readonly actions: readonly Action[] },
  screen: Size,
  o: DemonstrationOptions,
): string => formatAnswer(said, { mode: o.coordinates, screen, limits: o.limits, boxTokens: true });

const ONCE: Patience = { baseMs: 0, maxMs: 0, attempts: 0 };

export class ChatTokenizer {
  readonly #servers: readonly ModelServer[];
  readonly #model: string;
  readonly #patience: Patience;
  #tail: Promise<readonly number[]> | undefined;
  /** Tokens of a picture by its size. */
  readonly #sizes = new Map<string, Promise<number>>();

  /**
   * `model`: a name that the servers know; adapters share the tokenizer of their base. `patience`: with servers of which
   * none answers.
   */
  constructor(servers: readonly ModelServer[], model: string, patience: Patience = ONCE) {
    this.#servers = servers;
    this.#model = model;
    this.#patience = patience;
  }

  /**
   * Token ids of the prompt and of the answer, the token that ends it included. Rejects with `policy.remote` where the
   * server's template does not put an answer after its prompt.
   */
  async tokens(
    { messages, answer }: ShownAnswer,
    signal: AbortSignal,
  ): Promise<{ readonly prompt: readonly number[]; readonly answer: Int32Array }> {
    const [prompt, rest] = await this.#parts(messages, answer, signal),
      tail = await this.#tailOf(signal);
    return { prompt, answer: Int32Array.from(rest.slice(0, rest.length - tail.length + 1)) };
  }

  /**
   * Tokens that a picture takes in a prompt, for a tokenizer that leaves one for each (vLLM's): asked of the server with a
   * prompt that shows it. Pictures of one size take as many; `size` names it.
   */
  imageTokens(url: string, size: string, imageToken: number, signal: AbortSignal): Promise<number> {
    const there = this.#sizes.get(size);
    if (there) return there;
    const asked = this.#askImageTokens(url, imageToken, signal);
    this.#sizes.set(size, asked);
    asked.catch(() => this.#sizes.delete(size));
    return asked;
  }
  async #askImageTokens(url: string, imageToken: number, signal: AbortSignal): Promise<number> {
    const content = [{ type: 'image_url', image_url: { url } }],
      ask = { model: this.#model, messages: [{ role: 'user', content }], max_tokens: 1, return_token_ids: true },
      { prompt_token_ids: ids } = await this.#asked((server) => server.complete(ask, signal), signal),
      n = ids?.filter((t) => t === imageToken).length ?? 0;
    if (n === 0)
      throw unusable(`it does not say how many tokens ${imageToken} (policy.vlm.imageToken) a picture takes`);
    return n;
  }

  /** Asks for the tail once; a failure is not kept. */
  #tailOf(signal: AbortSignal): Promise<readonly number[]> {
    if (this.#tail) return this.#tail;
    const asked = this.#findTail(signal);
    this.#tail = asked;
    asked.catch(() => {
      this.#tail = undefined;
    });
    return asked;
  }
  /** The tokens that the template puts after every answer: the first of them ends the answer. */
  async #findTail(signal: AbortSignal): Promise<readonly number[]> {
    const ask: Message[] = [{ role: 'user', content: 'a' }],
      [, one] = await this.#parts(ask, 'yes', signal),
      [, other] = await this.#parts(ask, 'no', signal);
    let n = 0;
    while (n < Math.min(one.length, other.length) && one.at(-1 - n) === other.at(-1 - n)) n++;
    if (n === 0) throw unusable('nothing ends an answer in its chat template');
    return one.slice(one.length - n);
  }
  async #parts(
    messages: readonly Message[],
    answer: string,
    signal: AbortSignal,
  ): Promise<readonly [prompt: readonly number[], rest: readonly number[]]> {
    const ask = (m: readonly Message[], generation: boolean): Promise<readonly number[]> =>
      this.#asked(
        (server) => server.tokenize({ model: this.#model, messages: m, add_generation_prompt: generation }, signal),
        signal,
      );
    const prompt = await ask(messages, true),
      whole = await ask([...messages, { role: 'assistant', content: answer }], false);
    if (prompt.some((id, i) => whole[i] !== id))
      throw unusable('its chat template changes what comes before an answer when the answer is there');
    return [prompt, whole.slice(prompt.length)];
  }
  /** Asks the servers, which all serve the same model, until one answers. */
  async #asked<T>(ask: (server: ModelServer) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let asked = 0; ; asked++) {
      let lost: unknown;
      for (const server of this.#servers)
        try {
          return await ask(server);
        } catch (e) {
          if (toRunError(e).kind !== 'policy.lost') throw e;
          lost = e;
        }
      if (asked === this.#patience.attempts) throw lost;
      await pause(growingMs(this.#patience, asked), signal, cancelled);
    }
  }
}

const unusable = (why: string): StudioError =>
  new StudioError(
    'policy.remote',
    `Demonstrations cannot be shown to this model: ${why}.`,
    'Use a model whose chat template only adds to a conversation, as those of Qwen-VL and UI-TARS do, or set warmStart.steps and trainer.replay to 0.',
  );
const cancelled = (): StudioError =>
  new StudioError('cancelled', 'Demonstrations are not tokenised any more.', 'Start the run again when you are ready.');
