import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import { refusal, type Refusal } from './auth.js';
import { Connection, type ConnectionHost } from './connection.js';
import { brisk, Lobby } from '../foreign/lobby.js';
import type { Broadcast } from '../service/types.js';

export interface ServerOptions {
  readonly token: string;
  readonly host: ConnectionHost;
  /** The number of clients changed. */
  onClients(): void;
}
const pingMs = 30_000,
  /** Characters of one message: parsing it holds up the event loop. */
  maxPayload = 2 << 20,
  /** Windows and command lines of one person. */
  maxClients = 128;

/** Listens on 127.0.0.1 on a port of the system's choice; speaks to whoever knows the token, and to nobody else. */
export class DaemonServer {
  readonly #http: Server;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    maxPayload,
    perMessageDeflate: false,
    clientTracking: false,
  });
  readonly #clients = new Set<Connection>();
  readonly #lobby = new Lobby();
  readonly #refused = new Map<Refusal, number>();
  readonly #o: ServerOptions;
  readonly #ping: NodeJS.Timeout;
  #ids = 0;
  #port = 0;

  private constructor(o: ServerOptions) {
    this.#o = o;
    this.#http = createServer(brisk, (_req, res) => {
      res.writeHead(404, { connection: 'close', 'content-length': '0' }).end();
    });
    this.#http.on('connection', (socket: Socket) => this.#lobby.enter(socket));
    this.#http.on('clientError', (_e, socket) => socket.destroy());
    this.#http.on('upgrade', (req, stream, head) => {
      const socket = stream as Socket;
      socket.on('error', () => socket.destroy());
      const no = refusal(req, this.port, o.token);
      if (no) {
        this.#note(no);
        refuse(socket, '401 Unauthorized');
        return;
      }
      if (this.#clients.size >= maxClients) {
        o.host.log('warn', `refused a connection: there are ${maxClients} clients`);
        refuse(socket, '503 Service Unavailable');
        return;
      }
      this.#lobby.leave(socket);
      this.#sockets.handleUpgrade(req, socket, head, (ws) => {
        const client: Connection = new Connection(ws, ++this.#ids, o.host, () => {
          this.#clients.delete(client);
          o.onClients();
        });
        this.#clients.add(client);
        o.onClients();
      });
    });
    this.#ping = setInterval(() => {
      for (const c of this.#clients) c.ping();
    }, pingMs);
  }
  static async listen(o: ServerOptions): Promise<DaemonServer> {
    const s = new DaemonServer(o);
    await new Promise<void>((done, fail) => {
      s.#http.once('error', fail).listen(0, '127.0.0.1', () => {
        s.#http.off('error', fail);
        done();
      });
    });
    s.#port = (s.#http.address() as AddressInfo).port;
    return s;
  }
  get port(): number {
    return this.#port;
  }
  get clients(): number {
    return this.#clients.size;
  }

  /** Sends the same message to every client, serialized once. */
  broadcast(b: Broadcast): void {
    let text: string | undefined;
    const words = (): string => (text ??= JSON.stringify({ jsonrpc: '2.0', ...b }));
    for (const c of this.#clients) c.broadcast(b, words);
  }
  goingDown(reason: string, message?: string): void {
    for (const c of this.#clients) c.goingDown(reason, message);
  }
  async close(): Promise<void> {
    clearInterval(this.#ping);
    const closed = new Promise<void>((done) => this.#http.close(() => done()));
    await Promise.all([...this.#clients].map((c) => c.close()));
    this.#http.closeAllConnections();
    await closed;
  }

  /** Logs only every power of ten, so that a page that keeps trying cannot fill the disk. */
  #note(no: Refusal): void {
    const n = (this.#refused.get(no) ?? 0) + 1;
    this.#refused.set(no, n);
    if (Number.isInteger(Math.log10(n))) this.#o.host.log('warn', `refused a connection: wrong ${no} (${n} so far)`);
  }
}

/** Refuses a client without waiting until it has read the answer: the lobby's time ends it. */
function refuse(socket: Socket, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
}
