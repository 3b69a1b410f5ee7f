import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import * as zlib from 'node:zlib';
import type { ForwardBackwardRequest } from '../../../runtime/trainer/remote/wire/types.js';
import type { Fault } from './faults.js';
import { OpenAi, type OpenAiOptions } from './openai.js';
import { Sglang, type SglangOptions } from './sglang.js';
import { TinyPolicy, UserError, type PolicyOptions } from './policy.js';
import {
  readJsonRequest,
  readProtoRequest,
  writeJsonOutput,
  writeJsonSample,
  writeProtoOutput,
  writeProtoSample,
} from './serverWire.js';
import { HttpError, Tinker, type Disk, type Value } from './tinker.js';

/**
 * A small training and rollout server that keeps to the protocols exactly, or breaks them as asked: Tinker's under
 * /api/v1 in protobuf and JSON, vLLM's OpenAI face under /v1. Stands for an engine where there is no GPU.
 */

export interface ReferenceServerOptions {
  readonly faults?: readonly Fault[];
  readonly policy?: Partial<PolicyOptions>;
  readonly baseModel?: string;
  /** Default: a free one. */
  readonly port?: number;
  /** Weights that outlive the process; give the same to a server that takes its place. */
  readonly disk?: Disk;
  /** What forward_backward is spoken in. */
  readonly speaks?: 'both' | 'proto' | 'json';
  /** What it answers to another; default 415. */
  readonly foreign?: 415 | 422 | 500;
  readonly config?: Readonly<Record<string, unknown>>;
  /** The key that every call must have. */
  readonly apiKey?: string;
  readonly maxImages?: number;
  /** It sees no file of this machine, as in a container without the folder of adapters. */
  readonly apart?: boolean;
  /** Version of vLLM that it says it is. Default 0.32.0. */
  readonly vllm?: string;
  /** Default: the model's own log-probs. */
  readonly tells?: OpenAiOptions['tells'];
  /** Its other face is SGLang's instead of vLLM's. */
  readonly sglang?: SglangOptions;
  /** `/tokenize` leaves one pad for each image, as vLLM's does. */
  readonly onePad?: boolean;
  /** Standard deviation of what its arithmetic adds to every log-prob: 1e-6 is like fp32, 1e-2 like bf16. */
  readonly noise?: number;
  /** The same of what differs with the weights alone: 1e-2 is like bf16 through 30 layers. */
  readonly grain?: number;
  /** A number that was used before is a conflict, also for the same request. */
  readonly refusesRepeats?: boolean;
  /** A number that is not the next of its model is a conflict. */
  readonly strict?: boolean;
  /** The largest eps of an optimizer step. */
  readonly mostEps?: number;
  /** How long `retrieve_future` waits before it says 408. */
  readonly pollMs?: number;
  /** What each piece of work waits for first, by name ("optim_step"); how a test makes a server slow. */
  readonly beforeWork?: (what: string) => Promise<void>;
  /** Called as a pass begins; may throw in its place: a UserError refuses it, any other is the server's own. */
  readonly beforePass?: (r: ForwardBackwardRequest) => void;
  readonly beforeSample?: (signal: AbortSignal) => Promise<void>;
}
/** What the next call of a path gets instead of its answer. `after` = it is done all the same. */
export type Trouble =
  | {
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
      readonly after?: boolean;
    }
  /** The connection breaks. */
  | { readonly drop: 'before' | 'after' }
  /** The process is killed: what is not on disk is gone. */
  | { readonly die: 'before' | 'after' }
  /** Bytes of no protocol. */
  | { readonly garbage: string }
  /** No answer until the client gives up. */
  | { readonly hang: true };
export interface Call {
  readonly path: string;
  readonly method?: string | undefined;
  readonly body: Buffer;
  readonly headers: IncomingMessage['headers'];
}
interface Answer {
  readonly status: number;
  readonly type: string;
  readonly bytes: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}
const PROTO = 'application/x-protobuf';
const json = (value: unknown, status = 200): Answer => ({
  status,
  type: 'application/json',
  bytes: JSON.stringify(value),
});

export class ReferenceServer {
  readonly policy: TinyPolicy;
  readonly disk: Disk;
  readonly calls: Call[] = [];
  readonly #o: ReferenceServerOptions;
  readonly #faults: ReadonlySet<Fault>;
  readonly #trouble = new Map<string, Trouble[]>();
  readonly #sockets = new Set<Socket>();
  #http: Server | undefined;
  #port = 0;
  #tinker!: Tinker;
  #openAi!: OpenAi;

  private constructor(o: ReferenceServerOptions) {
    this.#o = o;
    this.#faults = new Set(o.faults);
    this.policy = new TinyPolicy(o.policy);
    this.disk = o.disk ?? new Map();
    this.#port = o.port ?? 0;
  }
  static async start(o: ReferenceServerOptions = {}): Promise<ReferenceServer> {
    const s = new ReferenceServer(o);
    await s.#listen();
    return s;
  }
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }
  get baseModel(): string {
    return this.#o.baseModel ?? 'tiny';
  }
  get tinker(): Tinker {
    return this.#tinker;
  }
  get openAi(): OpenAi {
    return this.#openAi;
  }
  /** Trouble of the next calls whose path ends so, one each. */
  next(path: string, ...trouble: Trouble[]): void {
    this.#trouble.set(path, [...(this.#trouble.get(path) ?? []), ...trouble]);
  }
  count(path: string): number {
    return this.calls.filter((c) => c.path.endsWith(path)).length;
  }

  /** `fetch` without a socket, for tests that make thousands of calls; `next` and `kill` do not touch it. */
  readonly direct: typeof fetch = async (input, init) => {
    const path = new URL(input instanceof Request ? input.url : input).pathname,
      body = await bytesOf(init?.body),
      headers = Object.fromEntries(new Headers(init?.headers).entries());
    const a = await this.#answer(
      { path, body, headers, method: init?.method },
      init?.signal ?? new AbortController().signal,
    );
    return new Response(a.status === 204 ? null : a.bytes, {
      status: a.status,
      headers: { 'content-type': a.type, ...a.headers },
    });
  };

  /** As kill -9: every connection breaks, and memory is gone. */
  kill(): void {
    this.#http?.close();
    this.#http = undefined;
    for (const s of this.#sockets) s.destroy();
    this.#sockets.clear();
  }
  /** Starts again after a kill, at the same address, with what is on disk. */
  async restart(): Promise<void> {
    this.kill();
    await this.#listen();
  }
  close(): void {
    this.kill();
  }

  async #listen(): Promise<void> {
    const core = { policy: this.policy, faults: this.#faults, baseModel: this.baseModel };
    this.#tinker = new Tinker({
      ...core,
      disk: this.disk,
      refusesRepeats: this.#o.refusesRepeats,
      strict: this.#o.strict,
      mostEps: this.#o.mostEps,
      noise: this.#o.noise ?? 0,
      grain: this.#o.grain ?? 0,
      beforeWork: this.#o.beforeWork ?? (() => Promise.resolve()),
      beforePass: this.#o.beforePass,
    });
    this.#openAi = this.#otherFace({
      ...core,
      maxImages: this.#o.maxImages ?? 16,
      apart: this.#o.apart ?? false,
      onePad: this.#o.onePad ?? false,
      tells: this.#o.tells,
      beforeSample: this.#o.beforeSample ?? (() => Promise.resolve()),
    });
    const http = createServer((q, r) => void this.#serve(q, r));
    http.on('connection', (s) => {
      this.#sockets.add(s);
      s.on('close', () => this.#sockets.delete(s));
    });
    await new Promise<void>((resolve, reject) => {
      http.once('error', reject);
      http.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#http = http;
    this.#port = (http.address() as AddressInfo).port;
  }

  #otherFace(o: OpenAiOptions): OpenAi {
    const { sglang } = this.#o;
    if (!sglang) return new OpenAi(o, this.#tinker);
    const face = new Sglang({ ...o, onePad: true, tells: 'processed' }, this.#tinker);
    face.server = { ...face.server, ...sglang };
    return face;
  }

  async #serve(q: IncomingMessage, r: ServerResponse): Promise<void> {
    const gone = new AbortController();
    r.on('close', () => {
      gone.abort();
    });
    const parts: Buffer[] = [];
    try {
      for await (const part of q) parts.push(part as Buffer);
    } catch {
      return; // The client went away in the middle of its request.
    }
    const path = new URL(q.url ?? '/', this.url).pathname,
      call: Call = { path, body: Buffer.concat(parts), headers: q.headers, method: q.method };
    this.calls.push(call);
    const trouble = this.#takeTrouble(path);
    if (trouble && !(await this.#survives(trouble, call, gone.signal, r))) return;
    const a = await this.#answer(call, gone.signal);
    if (!r.destroyed) r.writeHead(a.status, { 'content-type': a.type, ...a.headers }).end(a.bytes);
  }
  #takeTrouble(path: string): Trouble | undefined {
    for (const [end, list] of this.#trouble) if (path.endsWith(end) && list.length > 0) return list.shift();
    return undefined;
  }
  /** Makes the trouble; false, for it takes the place of the answer. */
  async #survives(t: Trouble, call: Call, signal: AbortSignal, r: ServerResponse): Promise<boolean> {
    const done = ('after' in t && t.after) || ('drop' in t && t.drop === 'after') || ('die' in t && t.die === 'after');
    if (done) {
      const a = await this.#answer(call, signal);
      // What was asked for is really done before the connection breaks.
      const id =
        a.type === 'application/json' ? (JSON.parse(String(a.bytes)) as { request_id?: string }).request_id : '';
      if (id) await Promise.allSettled([this.#tinker.future(id).promise]);
    }
    if ('status' in t) {
      const a = json(t.body ?? { detail: 'trouble' }, t.status);
      r.writeHead(a.status, { 'content-type': a.type, ...t.headers }).end(a.bytes);
    } else if ('drop' in t) r.destroy();
    else if ('die' in t) this.kill();
    else if ('garbage' in t) r.writeHead(200, { 'content-type': PROTO }).end(t.garbage);
    else await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return false;
  }

  #deleted(path: string): Answer {
    const [, model, kind, name] = /training_runs\/([^/]+)\/checkpoints\/(\w+)\/([^/]+)$/.exec(path) ?? [],
      there = this.disk.delete(`tinker://${decodeURIComponent(model ?? '')}/${kind}/${decodeURIComponent(name ?? '')}`);
    return there ? { status: 204, type: 'text/plain', bytes: '' } : json({ detail: 'no such checkpoint' }, 404);
  }
  async #answer(call: Call, signal: AbortSignal): Promise<Answer> {
    const { path } = call;
    const given = call.headers['x-api-key'] ?? call.headers.authorization?.replace(/^Bearer /, '');
    if (this.#o.apiKey !== undefined && given !== this.#o.apiKey) return json({ detail: 'wrong or missing key' }, 401);
    try {
      if (call.method === 'DELETE') return this.#deleted(path);
      if (path.startsWith('/api/v1/')) return await this.#tinkerCall(path.slice('/api/v1/'.length), call);
      return await this.#openAiCall(path, call, signal);
    } catch (e) {
      if (e instanceof HttpError) return json(e.body, e.status);
      if (e instanceof UserError) return json({ detail: e.message }, 400);
      if (e instanceof SyntaxError) return json({ detail: 'no JSON' }, 400);
      return json({ detail: e instanceof Error ? e.message : String(e) }, 500);
    }
  }

  async #tinkerCall(path: string, call: Call): Promise<Answer> {
    if (path === 'healthz') return json({ status: 'ok' });
    if (path === 'get_server_capabilities') return json({ supported_models: [{ model_name: this.baseModel }] });
    if (path === 'client/config') return json({ pjwt_auth_enabled: false, ...this.#o.config });
    if (path === 'client/dynamic_config') return json({});
    if (path === 'forward_backward' || path === 'forward')
      return json(this.#tinker.forwardBackward(this.#request(path, call)));
    const body = JSON.parse(call.body.toString()) as Record<string, unknown>;
    if (path === 'retrieve_future') return this.#retrieve(String(body.request_id), call);
    const value = this.#tinker.call(path, body);
    if (!value) throw new HttpError(404, `there is no ${path}`);
    return json(value);
  }
  #request(path: string, call: Call): ReturnType<typeof readProtoRequest> {
    const speaks = this.#o.speaks ?? 'both',
      proto = call.headers['content-type'] === PROTO;
    if (speaks !== 'both' && proto !== (speaks === 'proto'))
      throw new HttpError(this.#o.foreign ?? 415, `send ${speaks}`);
    if (path === 'forward' && speaks === 'proto') throw new HttpError(404, 'there is no forward');
    if (!proto) return readJsonRequest(JSON.parse(call.body.toString()));
    return readProtoRequest(inflated(call));
  }
  /** Long poll: the value, the error in a 200, or 408. */
  async #retrieve(id: string, call: Call): Promise<Answer> {
    const { promise } = this.#tinker.future(id);
    const late = Symbol();
    let timer: NodeJS.Timeout | undefined;
    const waited = new Promise<typeof late>((resolve) => {
      timer = setTimeout(() => {
        resolve(late);
      }, this.#o.pollMs ?? 10_000);
    });
    try {
      const v = await Promise.race([promise, waited]);
      if (v === late) return json({ type: 'try_again', request_id: id, queue_state: 'active' }, 408);
      return written(v, call.headers.accept === PROTO);
    } catch (e) {
      if (e instanceof HttpError) throw e;
      const user = e instanceof UserError;
      return json({ error: e instanceof Error ? e.message : String(e), category: user ? 'user' : 'server' });
    } finally {
      clearTimeout(timer);
    }
  }

  async #openAiCall(path: string, call: Call, signal: AbortSignal): Promise<Answer> {
    const body = (): unknown => JSON.parse(call.body.toString());
    if (path === '/v1/models') return json(this.#openAi.models());
    if (path === '/v1/chat/completions')
      return json(await this.#openAi.chat(body() as Parameters<OpenAi['chat']>[0], signal));
    if (this.#openAi instanceof Sglang) {
      const said = await this.#openAi.other(path, body);
      if (!said) throw new HttpError(404, 'Not Found');
      return 'json' in said ? json(said.json) : { status: 200, type: 'text/plain', bytes: said.text };
    }
    switch (path) {
      case '/v1/completions':
        return json(this.#openAi.complete(body() as Parameters<OpenAi['complete']>[0]));
      case '/health':
        return { status: 200, type: 'text/plain', bytes: '' };
      case '/metrics':
        return { status: 200, type: 'text/plain', bytes: this.#openAi.metrics() };
      case '/version':
        return json({ version: this.#o.vllm ?? '0.32.0' });
      case '/tokenize':
        return json(this.#openAi.tokenize(body() as Parameters<OpenAi['tokenize']>[0]));
      case '/v1/load_lora_adapter':
        return { status: 200, type: 'text/plain', bytes: this.#openAi.load(body() as Parameters<OpenAi['load']>[0]) };
      case '/v1/unload_lora_adapter':
        return { status: 200, type: 'text/plain', bytes: this.#openAi.unload(body() as { lora_name: string }) };
      default:
        throw new HttpError(404, 'Not Found');
    }
  }
}

async function bytesOf(body: RequestInit['body']): Promise<Buffer> {
  if (body instanceof Blob) return Buffer.from(await body.arrayBuffer());
  return typeof body === 'string' ? Buffer.from(body) : ((body ?? Buffer.alloc(0)) as Buffer);
}
function inflated(call: Call): Uint8Array {
  if (call.headers['content-encoding'] !== 'zstd') return call.body;
  const { zstdDecompressSync } = zlib as { readonly zstdDecompressSync?: (b: Uint8Array) => Buffer };
  if (!zstdDecompressSync) throw new HttpError(415, 'this Node has no zstd');
  return zstdDecompressSync(call.body);
}
function written(v: Value, proto: boolean): Answer {
  if (v.kind === 'json') return json(v.value);
  if (!proto) return json(v.kind === 'output' ? writeJsonOutput(v.value) : writeJsonSample(v.value));
  return {
    status: 200,
    type: PROTO,
    bytes: v.kind === 'output' ? writeProtoOutput(v.value) : writeProtoSample(v.value),
  };
}
