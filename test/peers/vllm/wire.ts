import { existsSync } from 'node:fs';
import { Agent, createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Completion } from '../../../runtime/policy/remote/completion.js';

/** What a model server was asked and what it answered: a relay in front of it that keeps both. */

/** Fields of requests that are looked at. */
export interface Asked {
  readonly model?: string;
  readonly max_tokens?: number;
  readonly messages?: readonly { readonly content: unknown }[];
  readonly lora_name?: string;
  readonly lora_path?: string;
}
export interface Exchange {
  readonly path: string;
  readonly asked: Asked;
  /** 0 where the connection ended before there was an answer. */
  readonly status: number;
  readonly answer: string;
  readonly began: number;
  readonly ended: number;
}
/** An adapter's end on a server. */
export interface Unload {
  readonly name: string;
  /** Completions of this adapter that the server had not answered. */
  readonly inFlight: number;
  /** Its files were there when it was unloaded. */
  readonly files: boolean;
}

export const isCompletion = (e: Exchange): boolean => e.path === '/v1/chat/completions';
/** A completion that a policy asked for: it shows a picture, and the proof of an adapter does not. */
export const isDecision = (e: Exchange): boolean =>
  isCompletion(e) && JSON.stringify(e.asked.messages).includes('image_url') && e.asked.max_tokens !== 1;
export const isProof = (e: Exchange): boolean =>
  isCompletion(e) && !JSON.stringify(e.asked.messages).includes('image_url');
export const completionIn = (e: Exchange): Completion => JSON.parse(e.answer) as Completion;

export class Wire {
  readonly exchanges: Exchange[] = [];
  readonly unloads: Unload[] = [];
  readonly #target: string;
  // A kept connection may end just as the next call goes out on it: a failure of this relay, not of the server.
  readonly #agent = new Agent({ keepAlive: false });
  readonly #inFlight = new Map<string, number>();
  readonly #paths = new Map<string, string>();
  #server: Server | undefined;
  #heard: (() => void)[] = [];

  /** `target`: where the server answers, e.g. http://127.0.0.1:8000 */
  static async to(target: string): Promise<Wire> {
    const wire = new Wire(target),
      server = createServer((q, r) => void wire.#relay(q, r));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    wire.#server = server;
    return wire;
  }
  private constructor(target: string) {
    this.#target = target;
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server!.address() as AddressInfo).port}`;
  }
  /** Resolves when it holds, or when nothing was asked for so long; it is looked at again after each exchange. */
  async until(holds: () => boolean, silenceMs: number): Promise<void> {
    let silent = false;
    while (!holds() && !silent)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          silent = true;
          resolve();
        }, silenceMs);
        this.#heard.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
  }
  /** Adapters that were loaded and not unloaded since. */
  loaded(): string[] {
    const there = new Set<string>();
    for (const { path, asked, status } of this.exchanges) {
      if (status !== 200 || asked.lora_name === undefined) continue;
      if (path.endsWith('/load_lora_adapter')) there.add(asked.lora_name);
      else there.delete(asked.lora_name);
    }
    return [...there];
  }
  close(): void {
    this.#agent.destroy();
    this.#server!.close();
    this.#server!.closeAllConnections();
  }

  async #relay(q: IncomingMessage, r: ServerResponse): Promise<void> {
    const body = await bytesOf(q),
      path = q.url ?? '/',
      asked = q.method === 'POST' ? (JSON.parse(body.toString('utf8')) as Asked) : {},
      began = performance.now();
    this.#arrives(path, asked);
    const done = (status: number, answer: string): void => {
      if (path === '/v1/chat/completions') this.#count(asked.model, -1);
      this.exchanges.push({ path, asked, status, answer, began, ended: performance.now() });
      for (const wake of this.#heard.splice(0)) wake();
    };
    const out = request(`${this.#target}${path}`, {
      method: q.method,
      agent: this.#agent,
      headers: { ...q.headers, host: new URL(this.#target).host },
    });
    // Whoever asked and went away is not waited for: the server hears of it too.
    r.on('close', () => r.writableFinished || out.destroy());
    out.on('error', () => {
      done(0, '');
      r.destroy();
    });
    out.on('response', (res) => {
      bytesOf(res).then(
        (answer) => {
          done(res.statusCode!, answer.toString('utf8'));
          r.writeHead(res.statusCode!, { 'content-type': res.headers['content-type'] ?? 'text/plain' }).end(answer);
        },
        () => {
          done(0, '');
          r.destroy();
        },
      );
    });
    out.end(body);
  }
  #arrives(path: string, { model, lora_name: name, lora_path: files }: Asked): void {
    if (path === '/v1/chat/completions') this.#count(model, 1);
    if (name === undefined) return;
    if (path.endsWith('/load_lora_adapter') && files !== undefined) this.#paths.set(name, files);
    if (path.endsWith('/unload_lora_adapter'))
      this.unloads.push({
        name,
        inFlight: this.#inFlight.get(name) ?? 0,
        files: existsSync(this.#paths.get(name) ?? ''),
      });
  }
  #count(model = '', by: number): void {
    this.#inFlight.set(model, (this.#inFlight.get(model) ?? 0) + by);
  }
}

async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}
