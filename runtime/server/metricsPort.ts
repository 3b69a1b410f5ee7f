import { randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { errorCode } from '../domain/index.js';
import { brisk, Lobby } from '../foreign/lobby.js';
import type { StudioService } from '../service/types.js';
import { openMetricsText, type Told } from './openMetrics.js';

/**
 * File of the token with which scrapers identify themselves; it outlives the daemon, since their configuration names
 * it.
 */
export const metricsTokenFile = 'metrics-token';
/** A run that has said nothing for so long is not active any more. */
const STALE_MS = 60_000;

/**
 * Figures of the active run for Prometheus: a port of its own on 127.0.0.1, off unless the machine's settings name one.
 * `GET /metrics` with the token, and nothing else; a browser's Origin or a rebound Host is refused before it.
 */
export class MetricsPort {
  readonly #http: Server;
  /** A connection has one request, and the lobby's time for it: nobody can fill the port and keep the scraper out. */
  readonly #lobby = new Lobby();
  readonly #off: () => void;
  readonly #told = new Map<string, { readonly told: Told; readonly at: number }>();

  private constructor(service: Pick<StudioService, 'onBroadcast'>, token: string) {
    this.#off = service.onBroadcast((b) => {
      if (b.method === 'run/status') this.#told.set(b.params.run, { told: b.params, at: Date.now() });
    });
    this.#http = createServer(brisk, (req, res) => {
      const status = this.#refusal(req, token);
      res.setHeader('connection', 'close');
      if (status !== undefined) {
        res.writeHead(status, { 'content-length': '0' }).end();
        return;
      }
      res
        .writeHead(200, { 'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8' })
        .end(openMetricsText(this.#active()));
    });
    this.#http.on('connection', (socket: Socket) => this.#lobby.enter(socket));
    this.#http.on('clientError', (_e, socket) => socket.destroy());
  }

  /** Rejects when the port is taken or the token cannot be kept. */
  static async listen(o: {
    readonly port: number;
    readonly storage: string;
    readonly service: Pick<StudioService, 'onBroadcast'>;
  }): Promise<MetricsPort> {
    const m = new MetricsPort(o.service, await keptToken(join(o.storage, metricsTokenFile)));
    try {
      await new Promise<void>((done, fail) => {
        m.#http.once('error', fail).listen(o.port, '127.0.0.1', done);
      });
    } catch (e) {
      m.#off();
      throw e;
    }
    return m;
  }
  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }
  async close(): Promise<void> {
    this.#off();
    await new Promise<void>((done) => {
      this.#http.close(() => done());
      this.#http.closeAllConnections();
    });
  }

  #active(): Told[] {
    const since = Date.now() - STALE_MS;
    for (const [run, { at }] of this.#told) if (at < since) this.#told.delete(run);
    return [...this.#told.values()].map((x) => x.told);
  }
  #refusal(req: IncomingMessage, token: string): number | undefined {
    if (req.headers.host !== `127.0.0.1:${this.port}` || req.headers.origin !== undefined) return 403;
    const given = Buffer.from(/^Bearer ([0-9a-f]+)$/.exec(req.headers.authorization ?? '')?.[1] ?? ''),
      want = Buffer.from(token);
    if (given.length !== want.length || !timingSafeEqual(given, want)) return 401;
    return req.method === 'GET' && req.url === '/metrics' ? undefined : 404;
  }
}

/** The token of earlier daemons of this folder, or a new one that only its owner can read. */
async function keptToken(file: string): Promise<string> {
  const token = randomBytes(32).toString('hex');
  try {
    await writeFile(file, token, { mode: 0o600, flag: 'wx' });
    return token;
  } catch (e) {
    if (errorCode(e) !== 'EEXIST') throw e;
  }
  const kept = (await readFile(file, 'utf8')).trim();
  if (/^[0-9a-f]{64}$/.test(kept)) return kept;
  await writeFile(file, token, { mode: 0o600 });
  return token;
}
