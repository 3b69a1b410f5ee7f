import {
  CancellationTokenSource,
  createMessageConnection,
  ResponseError,
  type MessageConnection,
} from 'vscode-jsonrpc/node';
import { WebSocket, type RawData } from 'ws';
import { decodeScreen, type ScreenHeader } from '../../runtime/protocol/binary.js';
import type { ErrorData } from '../../runtime/protocol/methods.js';
import type { Notice } from '../../runtime/protocol/notifications.js';
import type { HelloResult, Method, Params, Result } from '../../runtime/protocol/requests.js';
import { SocketReader, SocketWriter } from '../../runtime/protocol/transport.js';
import { protocolVersion, socketPath, type Build, type DiscoveryRecord } from '../../runtime/protocol/version.js';
import { DaemonError, lost, type GoingDown, type Log, asError } from './types.js';

const openMs = 10_000,
  maxPayload = 256 << 20;
/** The daemon pings every 30 s. After this silence it is pinged, and after `answerMs` more it counts as dead. */
const silenceMs = 75_000,
  answerMs = 15_000;

/**
 * One WebSocket to one daemon. When it closes, every pending request is rejected with `connection.lost`; it is never
 * reopened.
 */
export class Session {
  readonly record: DiscoveryRecord;
  /** Resolves when the connection is over; with the daemon's reason, where it gave one. */
  readonly closed: Promise<GoingDown | undefined>;
  onNotification: (n: Notice) => void = () => undefined;
  onScreen: (header: ScreenHeader, png: Uint8Array) => void = () => undefined;
  readonly #socket: WebSocket;
  readonly #rpc: MessageConnection;
  #over = false;

  /**
   * `port`: here, where the daemon's own is forwarded to this machine. Rejects with `daemon.stopped` when there is no
   * answer, or another program answers.
   */
  static open(record: DiscoveryRecord, log: Log, port = record.port): Promise<Session> {
    return new Promise((done, fail) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${socketPath}`, {
        // The daemon checks by Host that it is meant, and knows its own port alone.
        headers: { Authorization: `Bearer ${record.token}`, Host: `127.0.0.1:${record.port}` },
        perMessageDeflate: false,
        maxPayload,
        handshakeTimeout: openMs,
        followRedirects: false,
      });
      socket.once('error', (e) =>
        fail(
          new DaemonError('daemon.stopped', `No runtime answers on port ${port}: ${e.message}`, 'Start the runtime.'),
        ),
      );
      // Created in the event, not after the promise: the first message may be in the same packet.
      socket.once('open', () => done(new Session(socket, record, log)));
    });
  }
  private constructor(socket: WebSocket, record: DiscoveryRecord, log: Log) {
    this.#socket = socket;
    this.record = record;
    let last: GoingDown | undefined,
      waiting = 0,
      shut = false,
      finish: (g: GoingDown | undefined) => void = () => undefined;
    this.closed = new Promise((done) => {
      finish = done;
    });
    const reader = new SocketReader();
    // Messages that arrived before the close are still handled: an answer that made it here counts.
    const settle = (): void => {
      if (!shut || waiting > 0 || this.#over) return;
      this.#over = true;
      this.#rpc.dispose();
      finish(last);
    };
    this.#rpc = connect(socket, reader, {
      failed: (m) => {
        if (!shut) log('warn', `daemon connection: ${m}`);
      },
      handled: () => {
        waiting--;
        if (shut) setImmediate(settle);
      },
    });
    // The one place where a notification's params are taken for what the protocol says of its method.
    this.#rpc.onNotification((method: string, params) => {
      const n = { method, params } as Notice;
      if (n.method === 'daemon/goingDown') last = n.params;
      this.onNotification(n);
    });
    const alive = watchSilence(socket, log);
    socket.on('message', (data: RawData, binary: boolean) => {
      alive.heard();
      if (binary) {
        const s = decodeScreen(data as Buffer);
        if (s) this.onScreen(s.header, s.png);
      } else if (reader.push(data.toString())) waiting++;
      else log('warn', 'the runtime sent something that is not a JSON-RPC message');
    });
    socket.on('error', (e) => log('warn', `daemon connection: ${e.message}`));
    socket.on('close', () => {
      shut = true;
      alive.stop();
      settle();
    });
    this.#rpc.listen();
  }

  /** Rejects with `protocol.mismatch` when the two cannot speak, `draining` when the daemon is going away. */
  async greet(build: Build, client: string): Promise<HelloResult> {
    const late = AbortSignal.timeout(openMs);
    const hello = await this.request('daemon/hello', { protocol: protocolVersion, build, client }, late).catch(
      (e: unknown) => {
        throw late.aborted
          ? new DaemonError('timeout', `The runtime (pid ${this.record.pid}) does not answer.`, 'Restart the runtime.')
          : e;
      },
    );
    if (hello.protocol < protocolVersion)
      throw new DaemonError(
        'protocol.mismatch',
        `The runtime speaks protocol ${hello.protocol}, this window ${protocolVersion}.`,
        'Restart the runtime when its run has ended.',
      );
    return hello;
  }
  /**
   * Rejects with DaemonError, `cancelled` at once when the signal fires; `patient`: the daemon is told, and its answer
   * is awaited. The answer's type is trusted: the daemon speaks the same version.
   */
  async request<M extends Method>(
    method: M,
    params: Params<M>,
    signal?: AbortSignal,
    patient = false,
  ): Promise<Result<M>> {
    if (this.#over) throw lost();
    if (signal?.aborted) throw cancelled();
    const cancel = new CancellationTokenSource();
    let stop: () => void = () => undefined;
    const stopped = new Promise<never>((_done, fail) => {
      stop = () => {
        cancel.cancel();
        if (!patient) fail(cancelled());
      };
    });
    signal?.addEventListener('abort', stop);
    try {
      const answer = this.#rpc.sendRequest<Result<M>>(method, params, cancel.token);
      return await (signal ? Promise.race([answer, stopped]) : answer);
    } catch (e) {
      throw e instanceof DaemonError ? e : this.#fault(e);
    } finally {
      signal?.removeEventListener('abort', stop);
      cancel.dispose();
    }
  }
  close(): void {
    this.#socket.close();
  }
  /** Ends the connection without a closing handshake. */
  terminate(): void {
    this.#socket.terminate();
  }

  #fault(e: unknown): DaemonError {
    const data = e instanceof ResponseError ? (e.data as ErrorData | undefined) : undefined;
    if (typeof data?.kind === 'string') return new DaemonError(data.kind, (e as Error).message, data.remedy);
    return this.#over || this.#socket.readyState !== WebSocket.OPEN ? lost() : asError(e);
  }
}
const cancelled = (): DaemonError =>
  new DaemonError('cancelled', 'The operation was cancelled.', 'Start it again when you want it.');

/** JSON-RPC over the socket's text messages. */
function connect(
  socket: WebSocket,
  reader: SocketReader,
  on: {
    readonly failed: (message: string) => void;
    /** A message that arrived was dealt with. */
    readonly handled: () => void;
  },
): MessageConnection {
  const send = (text: string): Promise<void> =>
    new Promise((done, fail) =>
      socket.send(text, (e) => {
        if (e) fail(e);
        else done();
      }),
    );
  return createMessageConnection(
    reader,
    new SocketWriter(send),
    { error: on.failed, warn: () => undefined, info: () => undefined, log: () => undefined },
    {
      messageStrategy: {
        handleMessage: (m, next) => {
          const r = next(m);
          on.handled();
          return r;
        },
      },
    },
  );
}
/** Pings a daemon that has been silent for `silenceMs`, and ends the connection when that is not answered. */
function watchSilence(socket: WebSocket, log: Log): { heard(): void; stop(): void } {
  let heardAt = Date.now(),
    alarm: NodeJS.Timeout | undefined;
  const listen = (ms: number): void => {
    alarm = setTimeout(() => {
      if (Date.now() - heardAt < silenceMs) listen(silenceMs);
      else if (ms === answerMs) {
        log('warn', 'the runtime does not answer pings: the connection is given up');
        socket.terminate();
      } else {
        socket.ping();
        listen(answerMs);
      }
    }, ms);
  };
  listen(silenceMs);
  const heard = (): void => {
    heardAt = Date.now();
  };
  socket.on('ping', heard).on('pong', heard);
  return { heard, stop: () => clearTimeout(alarm) };
}
