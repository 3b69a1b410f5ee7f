import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { StudioError } from '../../domain/index.js';

export interface PortOptions {
  /** A stream to the port inside the desktop that there is now; rejects where there is none. */
  readonly open: () => Promise<Duplex>;
  /** Connections at once; one more is closed. Default 8: some ways into a desktop cost it a process each. */
  readonly connections?: number;
  /** How long one direction may be silent after the other has ended, ms. Default 30 s. */
  readonly lingerMs?: number;
  /** How long a way into the desktop may take, ms. Default 30 s. */
  readonly openMs?: number;
}

const MOST_CONNECTIONS = 8,
  LINGER_MS = 30_000,
  OPEN_MS = 30_000,
  /** A client whose machine is gone is noticed by it. */
  KEEPALIVE_MS = 30_000;

/**
 * A port of this machine that leads to a port inside a desktop. It carries bytes and cannot ask for a token, so it is
 * at 127.0.0.1 alone, whatever address the API has.
 */
export class PortRelay {
  readonly #o: PortOptions;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  /** Grows with `cut`: what was being opened before leads to an episode that is over. */
  #episode = 0;

  private constructor(o: PortOptions) {
    this.#o = o;
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => void this.#take(client));
  }

  /** Listens at a free port. */
  static async listen(o: PortOptions): Promise<PortRelay> {
    const relay = new PortRelay(o);
    await new Promise<void>((resolve, reject) => {
      relay.#server.once('error', (e) => reject(notListening(e)));
      relay.#server.listen(0, '127.0.0.1', resolve);
    });
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }
  get connections(): number {
    return this.#clients.size;
  }

  /** Ends all connections: their desktop is reset or replaced. */
  cut(): void {
    this.#episode++;
    for (const c of this.#clients) c.destroy();
  }
  close(): Promise<void> {
    const closed = new Promise<void>((done) => this.#server.close(() => done()));
    this.cut();
    return closed;
  }

  async #take(client: Socket): Promise<void> {
    client.on('error', () => client.destroy());
    if (this.#clients.size >= (this.#o.connections ?? MOST_CONNECTIONS)) {
      client.destroy();
      return;
    }
    this.#clients.add(client);
    client.once('close', () => this.#clients.delete(client));
    client.setTimeout(this.#o.openMs ?? OPEN_MS, () => client.destroy());
    const episode = this.#episode;
    let inside: Duplex;
    try {
      inside = await this.#o.open();
    } catch {
      client.destroy();
      return;
    }
    inside.on('error', () => inside.destroy());
    if (client.destroyed || episode !== this.#episode) {
      client.destroy();
      inside.destroy();
    } else carry(client, inside, this.#o.lingerMs ?? LINGER_MS);
  }
}

/** Both ways, each as fast as its reader; the end of either side is the other's. */
function carry(client: Socket, inside: Duplex, lingerMs: number): void {
  client.setTimeout(0);
  client.setNoDelay(true);
  client.setKeepAlive(true, KEEPALIVE_MS);
  client.once('close', () => inside.destroy());
  inside.once('close', () => {
    // Bytes on their way to a client that reads are still sent.
    if (inside.readableEnded) client.destroySoon();
    else client.destroy();
  });
  // A half that nobody ends would hold its place for ever.
  const linger = (): void => void client.setTimeout(lingerMs, () => client.destroy());
  client.once('end', linger);
  inside.once('end', linger);
  client.pipe(inside);
  inside.pipe(client);
}

const notListening = (cause: Error): StudioError =>
  new StudioError(
    'config.invalid',
    `No port at 127.0.0.1 can be had for a desktop's programs: ${cause.message}.`,
    'Serve fewer desktops, or close what holds so many ports.',
    { cause },
  );
