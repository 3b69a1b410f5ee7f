import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { random } from '../../../runtime/domain/index.js';
import type { Chunk } from '../../../runtime/trainer/remote/wire/types.js';
import type { Fault } from './faults.js';
import { SPECIAL, type TinyPolicy } from './policy.js';
import { HttpError, reported, type Tinker } from './tinker.js';

/** The OpenAI half of the reference server, as vLLM 0.32 answers: images, log-probs, token ids, adapters by name. */

export interface Message {
  readonly role: string;
  readonly content: string | readonly { type: string; text?: string; image_url?: { url: string } }[];
}
export interface ChatBody {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly temperature?: number;
  readonly seed?: number | null;
  readonly n?: number;
  readonly logprobs?: boolean;
  readonly top_logprobs?: number;
  readonly return_token_ids?: boolean;
  readonly logit_bias?: Readonly<Record<number, number>>;
}
export interface Adapter {
  readonly path: string;
  readonly weights: Float64Array;
}
export interface OpenAiOptions {
  readonly policy: TinyPolicy;
  readonly faults: ReadonlySet<Fault>;
  readonly baseModel: string;
  readonly maxImages: number;
  /** It sees no file of this machine. */
  readonly apart: boolean;
  /** `/tokenize` leaves one pad for each image, as vLLM's does. */
  readonly onePad: boolean;
  /** Log-probs that are told: the model's own (default), or those sampled from, with temperature and bias. */
  readonly tells?: 'raw' | 'processed';
  /** While a completion is made; an abort ends it. */
  readonly beforeSample: (signal: AbortSignal) => Promise<void>;
}

export class OpenAi {
  protected readonly o: OpenAiOptions;
  readonly #weights: (path: string) => Float64Array;
  protected readonly adapters = new Map<string, Adapter>();
  /** Weights by the first use of a name and path: what a cache that forgets nothing answers with. */
  readonly #seen = new Map<string, Float64Array>();
  protected inFlight = 0;
  #finished = 0;
  #drawn = 0;
  constructor(o: OpenAiOptions, tinker: Tinker) {
    this.o = o;
    this.#weights = (path) => tinker.adapter(path);
  }
  /** Calls in flight. */
  get running(): number {
    return this.inFlight;
  }

  load(b: { lora_name: string; lora_path: string; load_inplace?: boolean }): string {
    if (this.adapters.has(b.lora_name) && !b.load_inplace)
      throw new HttpError(400, `The lora adapter '${b.lora_name}' has already been loaded.`);
    this.#refuseUnfit(b.lora_path);
    const weights = this.#weights(b.lora_path),
      key = `${b.lora_name}\n${b.lora_path}`,
      first = this.#seen.get(key) ?? weights.slice();
    this.#seen.set(key, first);
    this.adapters.set(b.lora_name, {
      path: b.lora_path,
      weights: this.o.faults.has('stale-adapter') ? first : weights,
    });
    return `Success: LoRA adapter '${b.lora_name}' added successfully.`;
  }
  /** As vLLM 0.32 does, before it looks for weights. */
  #refuseUnfit(folder: string): void {
    const config = join(folder, 'adapter_config.json');
    if (this.o.apart || !existsSync(config)) return;
    const { modules_to_save: saved } = JSON.parse(readFileSync(config, 'utf8')) as { modules_to_save?: string[] };
    if (saved)
      throw new HttpError(
        500,
        `Call to add_lora method failed: vLLM only supports modules_to_save being either None or ["classifier", "score"] for classification models. Unsupported modules_to_save: ['${saved.join("', '")}']`,
      );
  }
  unload(b: { lora_name: string }): string {
    if (!this.adapters.delete(b.lora_name))
      throw new HttpError(404, `The lora adapter '${b.lora_name}' cannot be found.`);
    return `Success: LoRA adapter '${b.lora_name}' removed successfully.`;
  }
  models(): object {
    const base = {
      id: this.o.baseModel,
      object: 'model',
      owned_by: 'vllm',
      root: this.o.baseModel,
      parent: null,
    };
    const loaded = [...this.adapters].map(([id, a]) => ({
      id,
      object: 'model',
      owned_by: 'vllm',
      root: a.path,
      parent: this.o.baseModel,
    }));
    return { object: 'list', data: [base, ...loaded] };
  }
  metrics(): string {
    return [
      `vllm:num_requests_running{engine="0"} ${this.inFlight}`,
      'vllm:num_requests_waiting{engine="0"} 0',
      'vllm:kv_cache_usage_perc{engine="0"} 0.1',
      'vllm:prefix_cache_queries_total{engine="0"} 0',
      'vllm:prefix_cache_hits_total{engine="0"} 0',
      'vllm:num_preemptions_total{engine="0"} 0',
      `vllm:request_success_total{engine="0",finished_reason="stop"} ${this.#finished}`,
      '',
    ].join('\n');
  }

  /** Weights that a model's name means; 404 for a name that is not there. */
  protected weightsOf(model: string): Float64Array {
    if (model === this.o.baseModel) return new Float64Array(this.o.policy.parameters);
    const a = this.adapters.get(model);
    if (!a) throw new HttpError(404, `The model \`${model}\` does not exist.`);
    return a.weights;
  }

  async chat(b: ChatBody, signal: AbortSignal): Promise<object> {
    const weights = this.weightsOf(b.model),
      chunks = this.#template(b.messages);
    this.inFlight++;
    try {
      await this.o.beforeSample(signal);
      const answer = this.#complete(b, weights, chunks);
      this.#finished++;
      return answer;
    } finally {
      this.inFlight--;
    }
  }

  /** One token behind a prompt, of those that are allowed; its log-prob is the model's own, whatever is allowed. */
  complete(b: { model: string; prompt: readonly number[]; allowed_token_ids: readonly number[] }): object {
    const { policy, tells } = this.o,
      [token] = b.allowed_token_ids,
      last = policy.read([{ type: 'encoded_text', tokens: [...b.prompt] }]).positions.at(-1)!,
      own = policy.logProbs(this.weightsOf(b.model), last)[token!] ?? null;
    return {
      id: `cmpl-${++this.#drawn}`,
      object: 'text_completion',
      model: b.model,
      choices: [{ index: 0, token_ids: [token], logprobs: { token_logprobs: [tells === 'processed' ? 0 : own] } }],
    };
  }

  tokenize(b: { messages: readonly Message[]; add_generation_prompt?: boolean }): object {
    const chunks = this.#template(b.messages, b.add_generation_prompt ?? true),
      all = this.o.policy.read(chunks).positions.map((p) => p.token),
      inRun = (t: number, i: number): boolean => t === SPECIAL.imagePad && all[i - 1] === t,
      tokens = this.o.onePad ? all.filter((t, i) => !inRun(t, i)) : all;
    return { tokens, count: tokens.length, max_model_len: 1 << 16 };
  }

  /** The prompt of a conversation: images between their own two tokens, each as many pads as it has tokens. */
  #template(messages: readonly Message[], generation = true): Chunk[] {
    const { policy } = this.o,
      chunks: Chunk[] = [];
    let text: number[] = [],
      images = 0;
    const image = (url: string): void => {
      const data = /^data:image\/(png|jpeg);base64,(.+)$/s.exec(url);
      if (!data) throw new HttpError(400, 'an image is no data URL');
      if (++images > this.o.maxImages)
        throw new HttpError(400, `At most ${this.o.maxImages} image(s) may be provided.`);
      chunks.push({ type: 'encoded_text', tokens: [...text, SPECIAL.visionStart] });
      chunks.push({
        type: 'image',
        data: new Uint8Array(Buffer.from(data[2]!, 'base64')),
        format: data[1] as 'png' | 'jpeg',
      });
      text = [SPECIAL.visionEnd];
    };
    for (const m of messages) {
      text.push(SPECIAL.imStart, ...policy.encode(`${m.role}\n`));
      for (const part of typeof m.content === 'string' ? [{ type: 'text', text: m.content }] : m.content)
        if (part.type === 'text') text.push(...policy.encode(part.text ?? ''));
        else image((part as { image_url: { url: string } }).image_url.url);
      text.push(SPECIAL.eos, ...policy.encode('\n'));
    }
    if (generation) text.push(SPECIAL.imStart, ...policy.encode('assistant\n'));
    chunks.push({ type: 'encoded_text', tokens: text });
    return chunks;
  }

  #complete(b: ChatBody, weights: Float64Array, chunks: readonly Chunk[]): object {
    const { policy, faults } = this.o,
      blind = faults.has('drop-images'),
      prompt = policy.read(chunks).positions.map((p) => p.token),
      rng = random(typeof b.seed === 'number' ? `chat/${b.seed}` : `chat/free/${++this.#drawn}`);
    let completion = 0;
    const choices = Array.from({ length: b.n ?? 1 }, (_, index) => {
      const s = policy.sample(weights, policy.read(chunks, blind), {
        maxTokens: b.max_tokens ?? b.max_completion_tokens ?? 16,
        temperature: b.temperature ?? 1,
        rng,
        bias: b.logit_bias,
      });
      completion += s.tokens.length;
      return {
        index,
        message: { role: 'assistant', content: s.tokens.map((t) => policy.text(t)).join('') },
        finish_reason: s.stopped ? 'stop' : 'length',
        logprobs: b.logprobs
          ? { content: s.tokens.map((t, i) => this.#token(t, this.#told(s.logProbs[i]!, b), b.top_logprobs ?? 0)) }
          : null,
        ...(b.return_token_ids ? { token_ids: s.tokens } : {}),
      };
    });
    return {
      id: `chatcmpl-${++this.#drawn}`,
      object: 'chat.completion',
      created: 0,
      model: b.model,
      choices,
      usage: { prompt_tokens: prompt.length, completion_tokens: completion, total_tokens: prompt.length + completion },
      ...(b.return_token_ids ? { prompt_token_ids: prompt } : {}),
    };
  }
  #told(lp: Float64Array, { logit_bias: bias, temperature = 1 }: ChatBody): Float64Array {
    if (this.o.tells !== 'processed') return lp;
    const logits = lp.map((x, v) => (x + (bias?.[v] ?? 0)) / (temperature || 1)),
      norm = Math.log(logits.reduce((sum, x) => sum + Math.exp(x), 0));
    return logits.map((x) => x - norm);
  }
  #token(token: number, lp: Float64Array, top: number): object {
    const one = (t: number): object => ({
      token: this.o.policy.text(t),
      logprob: reported(lp[t]!, this.o.faults),
      bytes: [...Buffer.from(this.o.policy.text(t))],
    });
    const best = Array.from(lp.keys()).sort((x, y) => lp[y]! - lp[x]!);
    return { ...one(token), top_logprobs: best.slice(0, top).map(one) };
  }
}
