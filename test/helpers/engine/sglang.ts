import { LAYERS } from '../../../runtime/service/runChecks/flags.js';
import { OpenAi, type ChatBody } from './openai.js';
import { HttpError } from './tinker.js';

/**
 * The reference server's other face as SGLang's, by its sources of 0.5.17 and 0.5.23 (srt/entrypoints/http_server.py,
 * openai/serving_base.py, openai/serving_chat.py, managers/tokenizer_manager.py, managers/tokenizer_control_mixin.py,
 * lora/lora_manager.py). None of it was held against a server that runs.
 */
export interface SglangOptions {
  /** Default 0.5.23. Before 0.5.17 token ids are never given; 0.5.17 calls those of the answer as vLLM does. */
  readonly version?: string;
  /** Started with --enable-lora. Default true. */
  readonly lora?: boolean;
  /** Data-parallel replicas: adapters cannot be loaded where there are several. */
  readonly dp?: number;
  /** --lora-target-modules. Default: those that our remedies name. */
  readonly modules?: readonly string[];
}
/** Layers of the engine's adapters, by its defaults (dart_engine/lora.py). */
const TRAINED = [...['q_proj', 'k_proj', 'v_proj', 'o_proj'], ...['gate_proj', 'up_proj', 'down_proj'], 'lm_head'];
export interface LoadBody {
  readonly lora_name: string;
  readonly lora_path: string;
}
interface Answer {
  readonly model: string;
  readonly prompt_token_ids?: readonly number[];
  readonly choices: readonly { readonly token_ids?: readonly number[]; readonly finish_reason: string }[];
}
export interface GenerateBody {
  readonly input_ids: readonly number[];
  readonly lora_path?: string | null;
  readonly logprob_start_len?: number;
}

export class Sglang extends OpenAi {
  server: Required<SglangOptions> = { version: '0.5.23', lora: true, dp: 1, modules: LAYERS.split(' ') };
  /** Every adapter that was ever loaded: one that is asked for after it was unloaded is loaded again. */
  readonly #known = new Map<string, string>();
  readonly #calls = new Map<string, number>();
  readonly #idle = new Map<string, (() => void)[]>();

  override models(): object {
    const card = (id: string, root: string, parent: string | null, length: number | null): object => ({
        ...{ id, object: 'model', created: 0, owned_by: 'sglang' },
        ...{ root, parent, max_model_len: length },
      }),
      base = this.o.baseModel;
    return {
      object: 'list',
      data: [card(base, base, null, 1 << 16), ...[...this.adapters].map(([id, a]) => card(id, a.path, base, null))],
    };
  }
  info(): object {
    return { model_path: this.o.baseModel, api_key: 'secret', version: this.server.version, internal_states: [{}] };
  }
  override metrics(): string {
    const labels = `{model_name="${this.o.baseModel}"}`;
    return [
      `sglang:num_running_reqs${labels} ${this.running}`,
      `sglang:num_queue_reqs${labels} 0.0`,
      `sglang:token_usage${labels} 0.1`,
      `sglang:num_retracted_requests_total${labels} 0.0`,
      '',
    ].join('\n');
  }

  loadAdapter(b: LoadBody): object | Promise<object> {
    this.#allowed();
    const failed = (why: string): HttpError => new HttpError(400, why, this.#result(false, why));
    if (this.adapters.has(b.lora_name))
      throw failed(`Failed to load LoRA adapter ${b.lora_name} because it is already loaded`);
    // lora_manager.py, validate_new_adapter; mem_pool.py, can_support.
    if (!TRAINED.every((m) => this.server.modules.includes(m)))
      throw failed(
        `LoRA adapter ${b.lora_name} with rank 4 is incompatible with the current LoRA memory pool configuration.`,
      );
    try {
      this.load(b);
    } catch (e) {
      throw failed(e instanceof Error ? e.message : String(e));
    }
    this.#known.set(b.lora_name, b.lora_path);
    return this.#result(true, '');
  }
  /** Ends when the last call with the adapter has; no new one begins meanwhile. */
  async unloadAdapter({ lora_name: name }: { readonly lora_name: string }): Promise<object> {
    this.#allowed();
    const missing = `LoRA with name ${name} does not exist. Loaded LoRAs: odict_keys([])`;
    if (!this.adapters.delete(name)) throw new HttpError(400, missing, this.#result(false, missing));
    if ((this.#calls.get(name) ?? 0) > 0)
      await new Promise<void>((done) => this.#idle.set(name, [...(this.#idle.get(name) ?? []), done]));
    return this.#result(true, '');
  }
  /** As after a start: no adapter is there, and none was. */
  forget(): void {
    this.adapters.clear();
    this.#known.clear();
  }
  #allowed(): void {
    const off = 'LoRA is not enabled. Please set `--enable-lora` to enable LoRA.';
    if (!this.server.lora) throw new HttpError(400, off, this.#result(false, off));
    // An assertion that nobody catches.
    if (this.server.dp > 1) throw new Error('Internal Server Error');
  }
  #result(success: boolean, error: string): object {
    const loaded = Object.fromEntries([...this.adapters].map(([name, a]) => [name, a.path]));
    return { success, error_message: error, loaded_adapters: loaded };
  }

  override async chat(b: ChatBody, signal: AbortSignal): Promise<object> {
    const adapter = this.#adapterOf(b.model);
    this.#resolve(adapter);
    // The seed counts with --enable-deterministic-inference alone.
    const body = { ...b, model: adapter ?? this.o.baseModel, seed: null },
      answer = (await this.#during(adapter, () => super.chat(body, signal))) as Answer;
    return this.#dressed(answer, b);
  }
  /** A name without a colon is the base model, whatever it says. */
  #adapterOf(model: string): string | undefined {
    const base = this.o.baseModel;
    if (model === base || !model.includes(':')) return undefined;
    const name = model.startsWith(`${base}:`) ? model.slice(base.length + 1) : model.slice(model.indexOf(':') + 1);
    return name === '' ? undefined : name;
  }
  #resolve(adapter: string | undefined): void {
    if (adapter === undefined || this.adapters.has(adapter)) return;
    const bad = (message: string): HttpError =>
      new HttpError(400, message, { object: 'error', message, type: 'BadRequest', param: null, code: 400 });
    if (!this.server.lora) throw bad(`LoRA adapter '${adapter}' was requested, but LoRA is not enabled. ...`);
    const path = this.#known.get(adapter);
    if (path === undefined) throw bad(`Got LoRA adapter that has never been loaded: ${adapter}\nAll loaded adapters: `);
    this.load({ lora_name: adapter, lora_path: path });
  }
  async #during<T>(adapter: string | undefined, work: () => Promise<T>): Promise<T> {
    if (adapter === undefined) return work();
    const change = (by: number): number => {
      const n = (this.#calls.get(adapter) ?? 0) + by;
      this.#calls.set(adapter, n);
      return n;
    };
    change(1);
    try {
      return await work();
    } finally {
      if (change(-1) === 0) for (const done of this.#idle.get(adapter)?.splice(0) ?? []) done();
    }
  }
  /** Both kinds of token ids stand in each choice, where the version gives any. */
  #dressed(a: Answer, b: ChatBody): object {
    const { prompt_token_ids: prompt, ...rest } = a,
      [, , patch = 0] = this.server.version.split('.').map(Number),
      ids = b.return_token_ids && patch >= 17;
    return {
      ...rest,
      model: b.model,
      choices: a.choices.map(({ token_ids: answer, ...choice }) => ({
        ...choice,
        matched_stop: choice.finish_reason === 'stop' ? answer?.at(-1) : null,
        ...(ids ? { prompt_token_ids: prompt, [patch === 17 ? 'token_ids' : 'response_token_ids']: answer } : {}),
      })),
      metadata: { weight_version: 'default' },
    };
  }

  /** Log-probs of the tokens of a prompt from `logprob_start_len` on; none of the first of them. */
  generate(b: GenerateBody): object {
    const adapter = b.lora_path ?? undefined,
      start = b.logprob_start_len ?? -1;
    this.#resolve(adapter);
    const weights = this.weightsOf(adapter ?? this.o.baseModel),
      { positions } = this.o.policy.read([{ type: 'encoded_text', tokens: [...b.input_ids] }]),
      logprobs = b.input_ids.slice(start).map((t, i) => {
        const before = i === 0 ? undefined : positions[start + i - 1];
        return [before ? this.o.policy.logProbs(weights, before)[t] : null, t, null];
      });
    return { text: '', output_ids: [0], meta_info: { id: 'r', input_token_logprobs: logprobs } };
  }

  /** What SGLang serves beside chat completions and the list of models; undefined where it serves nothing. */
  async other(
    path: string,
    body: () => unknown,
  ): Promise<{ readonly json: object } | { readonly text: string } | undefined> {
    switch (path) {
      case '/health':
      case '/health_generate':
        return { text: '' };
      case '/metrics':
        return { text: this.metrics() };
      case '/server_info':
      case '/get_server_info':
        return { json: this.info() };
      case '/tokenize':
      case '/v1/tokenize':
        return { json: this.tokenize(body() as Parameters<OpenAi['tokenize']>[0]) };
      case '/generate':
        return { json: this.generate(body() as GenerateBody) };
      case '/load_lora_adapter':
        return { json: await this.loadAdapter(body() as LoadBody) };
      case '/unload_lora_adapter':
        return { json: await this.unloadAdapter(body() as { lora_name: string }) };
      default:
        return undefined;
    }
  }
}
