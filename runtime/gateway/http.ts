import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AddressInfo, Socket } from 'node:net';
import { createHash, timingSafeEqual } from 'node:crypto';
import { StudioError, messageOf } from '../domain/index.js';
import { brisk, Lobby } from '../foreign/lobby.js';

/** A route's answer. */
export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer | string;
  readonly headers?: Readonly<Record<string, string>>;
}
export const jsonReply = (value: unknown, status = 200): Reply => ({
  status,
  type: 'application/json',
  body: JSON.stringify(value),
});
export const textReply = (text: string, status = 200): Reply => ({
  status,
  type: 'text/html; charset=utf-8',
  body: text,
});

/** A request whose body has arrived whole. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly contentType: string;
  readonly body: Buffer;
  readonly signal: AbortSignal;
}
export type Handler = (r: Request) => Promise<Reply>;

export interface FaceOptions {
  /** 127.0.0.1 by default; any other address needs a token. */
  readonly host?: string;
  /** 0: a free one. */
  readonly port: number;
  /** Clients send it as `Authorization: Bearer TOKEN`. */
  readonly token?: string | undefined;
  readonly handle: Handler;
  /** Takes a connection that asks for WebSocket; it has passed the checks of any request. */
  readonly upgrade?: (req: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Connections at once of those who may use it; default 64. One more is told to come later. */
  readonly connections?: number;
  /** Most bytes of a request; default 256 MiB. */
  readonly mostBytes?: number;
}
export interface Face {
  readonly port: number;
  close(): Promise<void>;
}

/** Largest request; OSWorld uploads documents and small films. */
const MOST_BYTES = 256 * 2 ** 20;
/** Bytes of all requests that are being received; a shared machine's memory is not a client's to fill. */
const MOST_BYTES_AT_ONCE = 512 * 2 ** 20;
/** A client that has not sent its whole request by then is cut off, ms. */
const REQUEST_MS = 120_000;
/** Connections at once of those who may use it. */
const MOST_CONNECTIONS = 64;
const LOOPBACK = '127.0.0.1';

/** Listens; rejects with `config.invalid` where another address has no token, or where the port is taken. */
export async function listen(o: FaceOptions): Promise<Face> {
  const host = o.host ?? LOOPBACK;
  if (host !== LOOPBACK && !o.token)
    throw new StudioError(
      'config.invalid',
      `Desktops are not served at ${host} without a token: whoever reaches that address could run commands on them.`,
      'Add --token-file FILE or set DART_STUDIO_SERVE_TOKEN, or leave --host out and forward the port.',
    );
  const guests = new Guests(o.connections ?? MOST_CONNECTIONS),
    checked = (req: IncomingMessage): Refused | undefined =>
      refusal(o, host, req) ?? (guests.admit(req.socket) ? undefined : TOO_MANY);
  const server = createServer({ ...brisk, requestTimeout: REQUEST_MS }, (req, res) => {
    void answer(o, checked(req), req, res);
  });
  server.on('connection', (socket: Socket) => guests.enter(socket));
  const { upgrade } = o;
  if (upgrade)
    server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
      // Node has taken its own listener away: without one, a client that resets the connection would end the process.
      socket.on('error', () => socket.destroy());
      const refused = checked(req);
      if (refused) refuse(socket, refused.status);
      else upgrade(req, socket, head);
    });
  await started(server, o.port, host);
  const port = (server.address() as AddressInfo).port;
  return {
    port,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** Ends a connection that may not be upgraded, whether or not its client closes it. */
export function refuse(socket: Duplex, status: number): void {
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () =>
    socket.destroy(),
  );
}

const started = (server: Server, port: number, host: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (e: NodeJS.ErrnoException) => {
      reject(
        new StudioError(
          'config.invalid',
          `Port ${port} at ${host} cannot be used: ${e.code === 'EADDRINUSE' ? 'something else listens there' : e.message}.`,
          'Choose another with --port.',
          { cause: e },
        ),
      );
    });
    server.listen(port, host, resolve);
  });

/** Clients that have not passed the checks wait in the lobby, and take no place of those that have. */
class Guests {
  readonly #lobby = new Lobby();
  readonly #in = new Set<Socket>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }
  enter(socket: Socket): void {
    this.#lobby.enter(socket);
  }
  /**
   * Called when a client has passed the checks of a request. False: there is no place; it stays in the lobby, and its
   * time ends it.
   */
  admit(socket: Socket): boolean {
    if (this.#in.has(socket)) return true;
    if (this.#in.size >= this.#most) return false;
    this.#lobby.leave(socket);
    this.#in.add(socket);
    socket.once('close', () => this.#in.delete(socket));
    return true;
  }
}

async function answer(
  o: FaceOptions,
  refused: Refused | undefined,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  let reply: Reply;
  if (refused) {
    reply = jsonReply({ status: 'error', message: refused.words }, refused.status);
    res.setHeader('connection', 'close');
  } else {
    const gone = new AbortController();
    res.once('close', () => {
      gone.abort();
    });
    try {
      reply = await o.handle({
        method: req.method ?? 'GET',
        path: new URL(req.url ?? '/', 'http://desktop').pathname,
        contentType: req.headers['content-type'] ?? '',
        body: await bodyOf(req, o.mostBytes ?? MOST_BYTES),
        signal: gone.signal,
      });
    } catch (e) {
      reply = jsonReply(
        { status: 'error', message: messageOf(e) },
        e instanceof TooLong ? 413 : e instanceof StudioError && e.kind === 'desktop.lost' ? 503 : 500,
      );
    }
  }
  if (res.destroyed) return;
  const body = typeof reply.body === 'string' ? Buffer.from(reply.body) : reply.body;
  res.writeHead(reply.status, {
    'content-type': reply.type,
    'content-length': body.length,
    // Pages of other sites get no picture of a desktop, whatever their browser sends.
    'cross-origin-resource-policy': 'same-origin',
    ...reply.headers,
  });
  res.end(body, () => {
    // The rest of a refused request is not read.
    if (!req.complete) req.destroy();
  });
}

interface Refused {
  readonly status: number;
  readonly words: string;
}
const TOO_MANY: Refused = { status: 503, words: 'Too many connections are open; come again later.' };
/**
 * Pages of a browser send an Origin with what they may read, and say of the rest, such as a picture, that it is for
 * another site; a name rebound to this machine shows in Host.
 */
function refusal(o: FaceOptions, host: string, req: IncomingMessage): Refused | undefined {
  const elsewhere = ['cross-site', 'same-site'].includes(String(req.headers['sec-fetch-site']));
  if (req.headers.origin !== undefined || elsewhere)
    return { status: 403, words: 'Web pages cannot use this desktop.' };
  const name = (req.headers.host ?? '').replace(/:\d+$/, '');
  if (host === LOOPBACK && name !== LOOPBACK && name !== 'localhost')
    return { status: 403, words: 'This desktop answers at 127.0.0.1 and localhost only.' };
  if (o.token === undefined) return undefined;
  const given = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1] ?? '';
  return timingSafeEqual(digest(given), digest(o.token))
    ? undefined
    : { status: 401, words: 'Send the token as Authorization: Bearer TOKEN.' };
}
const digest = (s: string): Buffer => createHash('sha256').update(s).digest();

class TooLong extends Error {}

let receiving = 0;
async function bodyOf(req: IncomingMessage, most: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of req as AsyncIterable<Buffer>) {
      bytes += part.length;
      receiving += part.length;
      if (bytes > most) throw new TooLong(`The request is longer than ${most / 2 ** 20} MiB.`);
      if (receiving > MOST_BYTES_AT_ONCE)
        throw new TooLong('Other requests fill the memory; send this one again later.');
      parts.push(part);
    }
  } finally {
    receiving -= bytes;
  }
  return Buffer.concat(parts);
}
