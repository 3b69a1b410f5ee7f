import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { WebSocket } from 'ws';
import { messageOf, StudioError } from '../../../domain/index.js';
import { withDeadline } from '../../../concurrency/deadline.js';
import { foreignJson } from '../../../foreign/json.js';
import { LineTooLong, linesOf } from '../../../files/boundedLines.js';
import { GrowingBuffer } from '../../../files/growingBuffer.js';
import type { ClusterAccess } from './access.js';
import { ExecChannel, PROTOCOL } from './execChannel.js';
import { answerFault, awayFault, parseStatus } from './faults.js';
import type { ChannelEvents } from './link.js';

const CALL_MS = 20_000,
  HANDSHAKE_MS = 10_000;
/** A watch ends by itself after this long and is begun again where it was. */
const WATCH_S = 290;
const MAX_BODY = 64 << 20,
  MAX_LINE = 4 << 20;
const BOUNDS = { depth: 64, values: 1 << 20 };

export type Query = Readonly<Record<string, string | number | boolean | readonly string[]>>;
export interface CallOptions {
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** Name of the call in messages: "create a pod". */
  readonly what: string;
}

/** Thin calls to the Kubernetes API: JSON, watches and exec channels, each with its fault as a StudioError. */
export class Api {
  readonly access: ClusterAccess;
  constructor(access: ClusterAccess) {
    this.access = access;
  }

  /**
   * Makes one call. An overloaded server (429) is asked again when it says so. Rejects with `answerFault` of any other
   * answer than success, and with `desktop.unavailable` when there is none.
   */
  call<T>(method: string, path: string, o: CallOptions): Promise<T> {
    return withDeadline(CALL_MS, [o.signal], (limit) => this.#call<T>(method, path, o, limit));
  }
  async #call<T>(method: string, path: string, o: CallOptions, limit: AbortSignal): Promise<T> {
    for (;;) {
      const res = await this.#send(method, path, o, limit);
      let text: string;
      try {
        text = await bodyOf(res);
      } catch (e) {
        throw awayFault(this.access.name, e);
      }
      const status = res.statusCode ?? 0;
      if (status < 300) return (text === '' ? undefined : this.#parsed(text)) as T;
      const again = Number(res.headers['retry-after']);
      if (status !== 429 || !(again >= 0) || limit.aborted)
        throw answerFault(status, parseStatus(text), o.what, this.access.name);
      await wait(again * 1000 + Math.random() * 500, limit);
    }
  }

  /** Events of a watch, one at a time, until the server or the signal ends it. */
  async *watch<T>(path: string, o: CallOptions & { readonly signal: AbortSignal }): AsyncGenerator<WatchEvent<T>> {
    const query = { ...o.query, watch: true, allowWatchBookmarks: true, timeoutSeconds: WATCH_S };
    const res = await this.#send('GET', path, { ...o, query }, o.signal);
    if (res.statusCode !== 200)
      throw answerFault(res.statusCode ?? 0, parseStatus(await bodyOf(res)), o.what, this.access.name);
    res.socket.setKeepAlive(true, 30_000);
    try {
      for await (const l of linesOf(res, MAX_LINE)) if (l.trim() !== '') yield this.#parsed(l) as WatchEvent<T>;
    } catch (e) {
      throw e instanceof LineTooLong ? awayFault(this.access.name, e) : e;
    }
  }

  #parsed(text: string): unknown {
    return foreignJson(text, BOUNDS, (why) => awayFault(this.access.name, new Error(`an answer that ${why}`)));
  }

  /** A program in a pod's container with its standard input and output. */
  async exec(
    pod: { readonly namespace: string; readonly name: string; readonly container: string },
    command: readonly string[],
    on: ChannelEvents,
    signal: AbortSignal,
  ): Promise<ExecChannel> {
    const path = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}/exec`;
    const query: Query = { container: pod.container, command, stdin: true, stdout: true, stderr: true };
    const url = this.#url(path, query);
    url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:';
    const options = await this.access.options();
    return new Promise<ExecChannel>((resolve, reject) => {
      const ws = new WebSocket(url, PROTOCOL, {
        ...(options as object),
        handshakeTimeout: HANDSHAKE_MS,
        maxPayload: MAX_LINE,
        perMessageDeflate: false,
      });
      const stop = (): void => ws.terminate();
      signal.addEventListener('abort', stop, { once: true });
      const stream = new ExecChannel(ws, on);
      ws.on('unexpected-response', (req: ClientRequest, res: IncomingMessage) => {
        const refuse = (text: string): void => {
          req.destroy();
          const status = res.statusCode ?? 0,
            fault = answerFault(status, parseStatus(text), 'open a channel into a desktop', this.access.name);
          if (status === 401) this.access.refused?.(options);
          reject(isPassing(status) ? new Error(fault.message) : fault);
        };
        bodyOf(res).then(refuse, () => refuse(''));
      });
      ws.on('open', () => {
        if (signal.aborted) stop();
        else resolve(stream);
      });
      ws.on('error', (e) => {
        stream.end(e);
        reject(e);
      });
      ws.on('close', (code: number) => {
        signal.removeEventListener('abort', stop);
        const why = new Error(`it closed with ${code}`);
        stream.end(why);
        reject(why);
      });
    });
  }

  #url(path: string, query: Query = {}): URL {
    const url = new URL(this.access.server.pathname.replace(/\/$/, '') + path, this.access.server);
    for (const [k, v] of Object.entries(query))
      for (const one of Array.isArray(v) ? (v as readonly string[]) : [String(v)]) url.searchParams.append(k, one);
    return url;
  }

  async #send(method: string, path: string, o: CallOptions, signal: AbortSignal): Promise<IncomingMessage> {
    const url = this.#url(path, o.query),
      options = await this.access.options(),
      body = o.body === undefined ? undefined : JSON.stringify(o.body);
    return new Promise((resolve, reject) => {
      const req = (url.protocol === 'http:' ? httpRequest : httpsRequest)(url, {
        ...options,
        method,
        signal,
        headers: {
          ...(options.headers as object),
          accept: 'application/json',
          'user-agent': 'dart-studio',
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        },
      });
      req.once('response', (res) => {
        if (res.statusCode === 401) this.access.refused?.(options);
        resolve(res);
      });
      req.once('error', (e: NodeJS.ErrnoException) => {
        // The server had closed a connection that was kept: nothing was done yet.
        if (req.reusedSocket && e.code === 'ECONNRESET' && !signal.aborted)
          this.#send(method, path, o, signal).then(resolve, reject);
        else reject(o.signal?.aborted ? e : awayFault(this.access.name, e));
      });
      req.end(body);
    });
  }
}

/** The container or its node is not ready, or the server is busy: the same may succeed in a moment. */
const isPassing = (status: number): boolean => status === 408 || status === 429 || status <= 400 || status >= 500;

export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: T;
}

async function bodyOf(res: IncomingMessage): Promise<string> {
  const body = new GrowingBuffer();
  for await (const d of res) {
    body.add(d as Buffer);
    if (body.length > MAX_BODY) throw new Error('the answer is too long');
  }
  return body.take().toString('utf8');
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(
        new StudioError(
          'desktop.unavailable',
          `The Kubernetes API server is overloaded (429): ${messageOf(signal.reason)}`,
          'Start fewer desktops at once (desktops.count) if this goes on. A run tries again.',
        ),
      );
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}
