import { WebSocketServer, type WebSocket } from 'ws';
import { jsonOrNothing } from '../../foreign/json.js';
import { jsonReply, listen, refuse, type Reply, type Request } from '../http.js';
import { openApi } from './schema.js';
import { answerTo, BOUNDS, errorMessage, mcpAnswer, type Message } from './session.js';
import { Places } from './places.js';
import { SharedSession } from './sharedSession.js';
import type { Environments } from './types.js';

export interface OpenEnvOptions {
  readonly environments: Environments;
  readonly port: number;
  readonly host?: string | undefined;
  readonly token?: string | undefined;
  /** A session from which nothing comes for so long gives its desktop back, ms. Default ten minutes. */
  readonly idleMs?: number;
}
export interface ServedEnvironments {
  readonly port: number;
  close(): Promise<void>;
}

const IDLE_MS = 600_000,
  /** A client that is gone without a word is found by then. */
  PING_MS = 30_000,
  /** Actions are short. */
  MOST_BYTES = 1 << 20,
  /** Messages that wait for the one before: clients send one and wait. */
  MOST_WAITING = 16,
  /** Answers that are sent and not read yet. */
  MOST_UNREAD = 64 << 20,
  /** Besides those of sessions: for /health, /schema and sessions that are refused. */
  SPARE_CONNECTIONS = 64;
/** WebSocket close codes (RFC 6455, 7.4; 1013 in IANA's registry). */
const POLICY = 1008,
  TRY_LATER = 1013;

/** Serves environments as OpenEnv's clients expect them. Rejects with `config.invalid` as `listen` does. */
export async function serveOpenEnv(o: OpenEnvOptions): Promise<ServedEnvironments> {
  const places = new Places(o.environments),
    idleMs = o.idleMs ?? IDLE_MS,
    shared = new SharedSession(places, idleMs),
    sockets = new WebSocketServer({ noServer: true, maxPayload: MOST_BYTES, perMessageDeflate: false });
  const alive = new WeakSet<WebSocket>();
  sockets.on('connection', (socket) => {
    alive.add(socket);
    socket.on('pong', () => alive.add(socket));
    attach(socket, places, idleMs);
  });
  const ping = setInterval(() => {
    for (const socket of sockets.clients) {
      if (!alive.delete(socket)) socket.terminate();
      else socket.ping();
    }
  }, PING_MS);
  const face = await listen({
    host: o.host,
    port: o.port,
    token: o.token,
    connections: o.environments.capacity + SPARE_CONNECTIONS,
    mostBytes: MOST_BYTES,
    handle: (r) => handle(r, o.environments, shared),
    upgrade: (req, socket, head) => {
      if (!/^\/ws(\?|$)/.test(req.url ?? '')) refuse(socket, 404);
      else sockets.handleUpgrade(req, socket, head, (s) => sockets.emit('connection', s, req));
    },
  }).catch((e: unknown) => {
    clearInterval(ping);
    throw e;
  });
  return {
    port: face.port,
    close: async () => {
      clearInterval(ping);
      for (const socket of sockets.clients) socket.terminate();
      await face.close();
      shared.close();
      await places.close();
    },
  };
}

/** Attaches one socket to one session. */
function attach(socket: WebSocket, places: Places, idleMs: number): void {
  const send = (m: Message): Promise<void> =>
    new Promise((done) => {
      if (socket.bufferedAmount > MOST_UNREAD) socket.terminate();
      // A socket that is gone is found by its close.
      socket.send(JSON.stringify(m), () => done());
    });
  socket.on('error', () => socket.terminate());
  const env = places.take();
  if (!env) {
    void send(places.full);
    socket.close(TRY_LATER);
    return;
  }
  let waiting = 0,
    idle: NodeJS.Timeout | undefined,
    last: Promise<unknown> = Promise.resolve();
  const rest = (): void => {
    clearTimeout(idle);
    idle = setTimeout(() => {
      void send(errorMessage('No message arrived for a long time; the desktop is released.', 'SESSION_ERROR'));
      socket.close(POLICY);
    }, idleMs);
  };
  const answer = async (text: string): Promise<void> => {
    if (socket.readyState !== socket.OPEN) return;
    const m = await answerTo(env, text);
    if (!m) {
      // The desktop is free before its client hears that the session is over, and may begin another.
      places.give(env);
      socket.close();
    } else if (socket.readyState === socket.OPEN) await send(m);
    if (--waiting === 0) rest();
  };
  rest();
  socket.on('message', (data: Buffer) => {
    clearTimeout(idle);
    if (++waiting > MOST_WAITING) socket.close(POLICY, 'one message at a time');
    else last = last.then(() => answer(data.toString()));
  });
  socket.on('close', () => {
    clearTimeout(idle);
    places.give(env);
  });
}

async function handle(r: Request, e: Environments, shared: SharedSession): Promise<Reply> {
  const route = `${r.method} ${r.path}`;
  switch (route) {
    case 'GET /health':
      return jsonReply({ status: 'healthy' });
    case 'GET /metadata':
      return jsonReply({ name: e.name, description: e.description, version: e.version });
    case 'GET /schema':
      return jsonReply(e.schema);
    case 'GET /openapi.json':
      return jsonReply(openApi(e.name, e.description, e.version));
    case 'POST /mcp':
      return jsonReply(mcpAnswer(jsonIn(r)));
    case 'GET /state':
      return jsonReply(shared.state());
    case 'POST /reset':
    case 'POST /step':
      return shared.ask(r.path === '/reset' ? 'reset' : 'step', jsonIn(r));
    default:
      return jsonReply({ detail: `There is no ${route}.` }, 404);
  }
}
/** The JSON of a request; no body is an empty object, and undefined means no JSON. */
function jsonIn(r: Request): unknown {
  return r.body.length === 0 ? {} : jsonOrNothing(r.body.toString(), BOUNDS);
}
