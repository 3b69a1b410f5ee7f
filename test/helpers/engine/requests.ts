import {
  decodeOutput,
  decodeSample,
  encodeRequest,
  jsonRequest,
  parseOutput,
  parseSample,
  polled,
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
  type SampleOutput,
} from '../../../runtime/trainer/remote/wire/index.js';
import type { AdamParams } from './learner.js';
import type { ReferenceServer } from './server.js';

/** The shortest client there can be, for tests of the server itself: no retries, no sessions kept alive. */
export class PlainClient {
  readonly server: ReferenceServer;
  readonly proto: boolean;
  model = '';
  session = '';
  seq = 0;
  constructor(server: ReferenceServer, proto = true) {
    this.server = server;
    this.proto = proto;
  }
  static async open(server: ReferenceServer, proto = true, rank = 0): Promise<PlainClient> {
    const c = new PlainClient(server, proto);
    c.session = ((await c.post('create_session', { tags: [], sdk_version: '0' })) as { session_id: string }).session_id;
    const made = (await c.wait(
      await c.post('create_model', {
        session_id: c.session,
        model_seq_id: 0,
        base_model: server.baseModel,
        lora_config: { rank },
      }),
    )) as { model_id: string };
    c.model = made.model_id;
    return c;
  }

  send(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const bytes = body instanceof Uint8Array;
    return fetch(`${this.server.url}${path.startsWith('/') ? path : `/api/v1/${path}`}`, {
      method: 'POST',
      body: bytes ? Buffer.from(body) : JSON.stringify(body),
      headers: { 'content-type': bytes ? 'application/x-protobuf' : 'application/json', ...headers },
    });
  }
  async post(path: string, body: unknown): Promise<unknown> {
    const r = await this.send(path, body);
    if (!r.ok) throw Object.assign(new Error(`${path}: ${r.status} ${await r.text()}`), { status: r.status });
    return r.json();
  }
  /** Fetches a future's answer; throws what it failed with. */
  async fetchFuture(id: string): Promise<Response> {
    return this.send('retrieve_future', { request_id: id }, this.proto ? { accept: 'application/x-protobuf' } : {});
  }
  async wait(future: unknown): Promise<unknown> {
    const r = await this.fetchFuture((future as { request_id: string }).request_id);
    if (r.headers.get('content-type') === 'application/x-protobuf') return new Uint8Array(await r.arrayBuffer());
    const p = polled(await r.json());
    if (p.kind === 'done') return p.json;
    throw new Error(p.kind === 'failed' ? p.message : 'not yet');
  }

  async pass(r: Omit<ForwardBackwardRequest, 'modelId' | 'seqId'>, seqId = ++this.seq): Promise<ForwardBackwardOutput> {
    const whole = { ...r, modelId: this.model, seqId };
    const future = this.proto
      ? await this.post('forward_backward', encodeRequest(whole))
      : await this.post(r.forwardOnly ? 'forward' : 'forward_backward', jsonRequest(whole));
    const out = await this.wait(future);
    return out instanceof Uint8Array ? decodeOutput(out) : parseOutput(out);
  }
  async step(params: Partial<AdamParams>, seqId = ++this.seq): Promise<unknown> {
    return this.wait(await this.post('optim_step', { model_id: this.model, seq_id: seqId, adam_params: params }));
  }
  async save(kind: 'save_weights' | 'save_weights_for_sampler', path: string): Promise<string> {
    const made = await this.wait(await this.post(kind, { model_id: this.model, seq_id: ++this.seq, path }));
    return (made as { path: string }).path;
  }
  async load(path: string, optimizer = true): Promise<void> {
    await this.wait(await this.post('load_weights', { model_id: this.model, path, optimizer }));
  }
  async sample(body: object): Promise<SampleOutput> {
    const out = await this.wait(await this.post('asample', body));
    return out instanceof Uint8Array ? decodeSample(out) : parseSample(out);
  }
}

/** AdamW that is plain gradient descent: the step is rate * gradient, as nearly as eps is above the gradient. */
export const DESCENT = (rate: number): Partial<AdamParams> => ({
  learning_rate: rate * 1e8,
  beta1: 0,
  beta2: 0,
  eps: 1e8,
  weight_decay: 0,
  grad_clip_norm: 0,
});
