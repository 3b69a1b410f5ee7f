/** The part of a socket of Node.js that is used; this room does not import its types. */
interface Caller {
  destroy(): unknown;
  once(event: 'close', gone: () => void): unknown;
}

/**
 * Options for `createServer` of node:http. A slow client is noticed within a second: without
 * connectionsCheckingInterval Node.js looks for late headers and requests every 30 s only.
 */
export const brisk = { headersTimeout: 4000, requestTimeout: 5000, connectionsCheckingInterval: 1000 } as const;

/**
 * Connections that have not shown yet that they may be here: anybody on this machine can open one. Each has a few
 * seconds; when there are too many, the oldest goes. So nobody can take the places of those who say at once who they
 * are.
 */
export class Lobby {
  readonly #waiting = new Map<Caller, NodeJS.Timeout>();
  readonly #most: number;
  readonly #ms: number;

  /** `most`: more than the system accepts at a time (511), so that every connection is read from once. */
  constructor(o: { readonly most?: number; readonly ms?: number } = {}) {
    this.#most = o.most ?? 600;
    this.#ms = o.ms ?? 5000;
  }

  get size(): number {
    return this.#waiting.size;
  }
  enter(socket: Caller): void {
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size < this.#most) break;
      this.#remove(oldest);
      oldest.destroy();
    }
    this.#waiting.set(
      socket,
      setTimeout(() => socket.destroy(), this.#ms),
    );
    socket.once('close', () => this.#remove(socket));
  }
  /** Takes out a client that has shown that it may be here. */
  leave(socket: Caller): void {
    this.#remove(socket);
  }

  #remove(socket: Caller): void {
    clearTimeout(this.#waiting.get(socket));
    this.#waiting.delete(socket);
  }
}
