import {
  createMessageConnection,
  ErrorCodes,
  ResponseError,
  type CancellationToken,
  type MessageConnection,
} from 'vscode-jsonrpc/node';
import type { RawData, WebSocket } from 'ws';
import { isObject } from '../foreign/json.js';
import { beyondBounds } from '../foreign/jsonBounds.js';
import { encodeScreen } from '../protocol/binary.js';
import * as methods from '../protocol/methods.js';
import { SocketReader, SocketWriter } from '../protocol/transport.js';
import type { RunEventType, RunPath } from '../protocol/types.js';
import { gone, type Broadcast, type EventQuery, type Handler, type StudioService } from '../service/types.js';
import { ServerFault, toResponseError, toWireError, unforeseen } from './faults.js';
import type { LogLevel } from './log.js';
import { Inbox } from './inbox.js';
import { Outbox } from './socket.js';

/** The parts of the daemon that a connection uses. */
export interface ConnectionHost {
  readonly service: StudioService;
  /** The service's, some with an addition of the daemon's. */
  readonly handlers: ReadonlyMap<string, Handler>;
  /** Throws when this client cannot be served. */
  greet(p: methods.HelloParams): methods.HelloResult;
  drain(): { readonly waitingFor: readonly RunPath[]; readonly busy?: boolean };
  /** Resolves when what was active is stopped. */
  shutdown(): Promise<void>;
  /** Why this method is not served now. */
  refuses(method: string): Error | undefined;
  log(level: LogLevel, message: string): void;
  /** A client that has not said hello by then is disconnected. */
  readonly helloMs: number;
}

const maxSubscriptions = 256,
  maxStreams = 32,
  /** Requests begun and not answered. */
  maxInFlight = 512,
  bounds = { depth: 64, values: 100_000 };
type Params = Readonly<Record<string, unknown>>;
type Own = (p: Params, signal: AbortSignal) => unknown;

/** One client: its requests, its subscriptions, its screens. All of them end with the socket. */
export class Connection {
  readonly #socket: WebSocket;
  readonly #host: ConnectionHost;
  readonly #out: Outbox;
  readonly #in: Inbox;
  readonly #rpc: MessageConnection;
  readonly #end = new AbortController();
  readonly #subscriptions = new Map<number, AbortController>();
  readonly #streams = new Map<number, AbortController>();
  readonly #own: ReadonlyMap<string, Own>;
  readonly #name: string;
  readonly #silent: NodeJS.Timeout;
  #client: string | undefined;
  #ids = 0;
  #inFlight = 0;
  /** Messages taken by the client when it was last pinged. */
  #sentBefore = -1;
  /** Answered the last ping. */
  alive = true;

  constructor(socket: WebSocket, id: number, host: ConnectionHost, closed: () => void) {
    this.#socket = socket;
    this.#host = host;
    this.#name = `client ${id}`;
    this.#out = new Outbox(socket, () => this.#in.eased());
    const reader = new SocketReader();
    this.#rpc = createMessageConnection(reader, new SocketWriter((text) => this.#out.send(text)), {
      error: (m) => {
        if (socket.readyState === socket.OPEN) host.log('warn', `${this.#name}: ${m}`);
      },
      warn: () => undefined,
      info: () => undefined,
      log: () => undefined,
    });
    this.#own = new Map<string, Own>([
      [methods.hello.method, (p) => this.#hello(p)],
      [methods.drain.method, () => host.drain()],
      [
        methods.shutdown.method,
        async () => {
          await host.shutdown();
          return {};
        },
      ],
      [methods.subscribe.method, (p) => this.#subscribe(p)],
      [methods.unsubscribe.method, (p) => this.#endOf(this.#subscriptions, p['subscription'])],
      [methods.watchDesktop.method, (p, signal) => this.#watch(p, signal)],
      [methods.unwatchDesktop.method, (p) => this.#endOf(this.#streams, p['stream'])],
    ]);
    this.#rpc.onRequest((method, params, token) => this.#serve(method, params, token));
    this.#rpc.onNotification(() => undefined); // clients have none; unknown ones are ignored, as JSON-RPC says
    this.#silent = setTimeout(() => {
      host.log('warn', `${this.#name}: no hello in ${host.helloMs} ms`);
      socket.terminate();
    }, host.helloMs);
    const foul = (code: 1003 | 1007): void => {
      host.log('warn', `${this.#name}: sent something that is not a JSON-RPC message`);
      this.#in.close();
      socket.close(code);
    };
    this.#in = new Inbox({
      deliver: (text) => {
        if (socket.readyState !== socket.OPEN) return;
        if (beyondBounds(text, bounds) !== undefined || !reader.push(text)) foul(1007);
      },
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      congested: () => this.#out.congested,
    });
    socket.on('message', (data: RawData, binary: boolean) => {
      if (socket.readyState !== socket.OPEN) return;
      if (binary) foul(1003);
      else this.#in.push((data as Buffer).toString());
    });
    socket.on('pong', () => {
      this.alive = true;
    });
    socket.on('error', (e) => host.log('warn', `${this.#name}: ${e.message}`)); // 'close' follows
    socket.on('close', (code) => {
      clearTimeout(this.#silent);
      this.#in.close();
      this.#end.abort();
      for (const c of [...this.#subscriptions.values(), ...this.#streams.values()]) c.abort();
      this.#rpc.dispose();
      if (this.#client !== undefined) host.log('info', `${this.#name} (${this.#client}) left (${code})`);
      closed();
    });
    this.#rpc.listen();
  }

  /** Newest state of something; skipped states are never seen by a client that is behind. */
  broadcast(b: Broadcast, text: () => string): void {
    if (this.#client === undefined) return;
    const p = b.params as { run?: unknown; rollout?: unknown; desktop?: unknown; session?: unknown };
    this.#out.state(`${b.method} ${String(p.session ?? p.desktop ?? p.run ?? '')} ${String(p.rollout ?? '')}`, text);
  }
  goingDown(reason: string, message?: string): void {
    void this.#notify(methods.goingDown.method, { reason, message: message || undefined });
  }
  ping(): void {
    // A pong may lie behind what is not read yet; who takes what was sent is there.
    if (!this.alive && this.#out.sent === this.#sentBefore) {
      this.#host.log('warn', `${this.#name}: no answer to a ping`);
      this.#socket.terminate();
      return;
    }
    this.alive = false;
    this.#sentBefore = this.#out.sent;
    this.#socket.ping();
  }
  /** Closes the connection; resolves when the client is gone, at the latest after a second. */
  close(): Promise<void> {
    return new Promise((done) => {
      if (this.#socket.readyState === this.#socket.CLOSED) {
        done();
        return;
      }
      const late = setTimeout(() => this.#socket.terminate(), 1000);
      this.#socket.once('close', () => {
        clearTimeout(late);
        done();
      });
      this.#socket.close(1001);
    });
  }

  async #serve(method: string, params: unknown, token: CancellationToken): Promise<unknown> {
    const cancel = new AbortController(),
      abort = (): void => cancel.abort(),
      left = (): void => cancel.abort(gone);
    const heard = token.onCancellationRequested(abort);
    if (token.isCancellationRequested) abort();
    this.#end.signal.addEventListener('abort', left);
    this.#inFlight++;
    try {
      if (this.#inFlight > maxInFlight)
        throw new ServerFault(
          'busy',
          `This window is already waiting for ${maxInFlight} answers.`,
          'Try again when some of them have arrived.',
        );
      if (firstWords.has(method)) clearTimeout(this.#silent);
      else if (this.#client === undefined)
        throw new ServerFault('params.invalid', `${method} came before ${methods.hello.method}.`, 'Say hello first.');
      if (!isObject(params))
        throw new ServerFault(
          'params.invalid',
          `${method} needs one parameter object.`,
          'This is a fault of the client: please report it.',
        );
      const no = this.#host.refuses(method);
      if (no) throw no;
      const own = this.#own.get(method),
        handler = this.#host.handlers.get(method);
      if (own) return await own(params as Params, cancel.signal);
      if (!handler)
        return new ResponseError<methods.ErrorData>(ErrorCodes.MethodNotFound, `The runtime does not know ${method}.`, {
          kind: 'not.found',
          remedy: 'Restart the runtime: it is older than this window.',
        });
      return await handler(params, {
        signal: cancel.signal,
        client: this.#end.signal,
        notify: (m, p) => {
          void this.#notify(m, p);
        },
      });
    } catch (e) {
      const stack = unforeseen(e);
      if (stack !== undefined) this.#host.log('error', `${this.#name}: ${method}: ${stack}`);
      return toResponseError(e);
    } finally {
      this.#inFlight--;
      heard.dispose();
      this.#end.signal.removeEventListener('abort', left);
    }
  }

  #hello(p: Params): methods.HelloResult {
    const build = p['build'] as { version?: unknown; time?: unknown } | undefined;
    if (
      !Number.isInteger(p['protocol']) ||
      typeof build?.version !== 'string' ||
      typeof build.time !== 'number' ||
      typeof p['client'] !== 'string'
    )
      throw new ServerFault(
        'params.invalid',
        'hello lacks protocol, build or client.',
        'This is a fault of the client: please report it.',
      );
    const result = this.#host.greet({
      protocol: p['protocol'] as number,
      build: { version: build.version, time: build.time },
      client: p['client'],
    });
    this.#client ??= p['client'].slice(0, 80);
    this.#host.log(
      'info',
      `${this.#name} is ${this.#client}, build ${build.version} of ${new Date(build.time).toISOString()}`,
    );
    return result;
  }

  async #subscribe(p: Params): Promise<unknown> {
    const { run, sinceSeq, types, rollout } = p;
    if (
      typeof run !== 'string' ||
      !Number.isSafeInteger(sinceSeq) ||
      (sinceSeq as number) < 0 ||
      (rollout !== undefined && typeof rollout !== 'string') ||
      (types !== undefined && !(Array.isArray(types) && types.every((t) => typeof t === 'string')))
    )
      throw new ServerFault(
        'params.invalid',
        'A subscription needs a run, a sequence number and, if any, a list of types.',
        'This is a fault of the client: please report it.',
      );
    if (this.#subscriptions.size >= maxSubscriptions)
      throw new ServerFault('busy', `This window already has ${maxSubscriptions} subscriptions.`, 'Close some views.');
    const headSeq = await this.#host.service.head(run),
      id = ++this.#ids,
      cancel = this.#track(this.#subscriptions, id);
    const q: EventQuery = {
      run,
      sinceSeq: sinceSeq as number,
      types: types as RunEventType[] | undefined,
      rollout,
    };
    setImmediate(() => void this.#pump(id, q, cancel.signal)); // after the answer, which tells the client this id
    return { subscription: id, headSeq };
  }
  /** Takes the next batch when the last one is on its way: a slow client slows this loop down and nothing else. */
  async #pump(id: number, q: EventQuery, signal: AbortSignal): Promise<void> {
    let nextSeq = q.sinceSeq;
    try {
      for await (const b of this.#host.service.events(q, signal)) {
        if (signal.aborted) return;
        nextSeq = b.nextSeq;
        await this.#rpc.sendNotification(methods.events, {
          subscription: id,
          run: q.run,
          events: b.events,
          nextSeq,
          live: b.live,
          ended: b.ended || undefined,
        });
      }
    } catch (e) {
      if (signal.aborted || this.#end.signal.aborted) return;
      this.#host.log('error', `${this.#name}: events of ${q.run}: ${unforeseen(e) ?? toWireError(e).message}`);
      void this.#notify(methods.events.method, {
        subscription: id,
        run: q.run,
        events: [],
        nextSeq,
        live: true,
        error: toWireError(e),
      });
    } finally {
      this.#subscriptions.delete(id);
    }
  }

  async #watch(p: Params, signal: AbortSignal): Promise<unknown> {
    const { desktop, maxFps } = p;
    if (
      typeof desktop !== 'string' ||
      (maxFps !== undefined && !(typeof maxFps === 'number' && maxFps > 0 && maxFps <= 60))
    )
      throw new ServerFault(
        'params.invalid',
        'Watching needs a desktop, and at most 60 pictures a second.',
        'This is a fault of the client: please report it.',
      );
    if (this.#streams.size >= maxStreams)
      throw new ServerFault('busy', `This window already watches ${maxStreams} desktops.`, 'Close some of them.');
    const stream = ++this.#ids,
      cancel = this.#track(this.#streams, stream),
      abort = (): void => cancel.abort();
    signal.addEventListener('abort', abort);
    try {
      const screen = await this.#host.service.watch(desktop, { maxFps: maxFps ?? 10 }, cancel.signal);
      setImmediate(() => void this.#show(stream, screen.patches, cancel.signal));
      return { stream, width: screen.width, height: screen.height };
    } catch (e) {
      this.#streams.delete(stream);
      throw e;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
  /** Asks for the next patch when the last one is sent: the service keeps the newest state meanwhile. */
  async #show(
    stream: number,
    patches: AsyncIterable<{
      readonly x: number;
      readonly y: number;
      readonly width: number;
      readonly height: number;
      readonly at: number;
      readonly png: Uint8Array;
    }>,
    signal: AbortSignal,
  ): Promise<void> {
    let fault: unknown;
    try {
      for await (const { png, ...at } of patches) {
        if (signal.aborted) return;
        await this.#out.send(encodeScreen({ stream, ...at }, png));
      }
    } catch (e) {
      fault = e;
    } finally {
      this.#streams.delete(stream);
    }
    if (!signal.aborted)
      void this.#notify(methods.streamEnded.method, {
        stream,
        error: fault === undefined ? undefined : toWireError(fault),
      });
  }

  #track(where: Map<number, AbortController>, id: number): AbortController {
    const cancel = new AbortController();
    if (this.#end.signal.aborted)
      cancel.abort(); // closed while the request waited
    else where.set(id, cancel);
    return cancel;
  }
  #endOf(where: Map<number, AbortController>, id: unknown): Record<string, never> {
    if (typeof id === 'number') {
      where.get(id)?.abort();
      where.delete(id);
    }
    return {};
  }
  /** A closed connection has no one to notify. */
  async #notify(method: string, params: unknown): Promise<void> {
    try {
      await this.#rpc.sendNotification(method, params);
    } catch {
      /* closed */
    }
  }
}
/** Before, or without, a hello that both sides can agree on. */
const firstWords: ReadonlySet<string> = new Set([methods.hello.method, methods.drain.method, methods.shutdown.method]);
