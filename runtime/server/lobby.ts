import type { Socket } from 'node:net';

/**
 * Connections that have not shown the token yet: anybody on this machine can open one. Each has a few seconds; when
 * there are too many, the oldest goes. So nobody can take the places of those who say at once who they are.
 */
export class Lobby {
  readonly #waiting = new Map<Socket, NodeJS.Timeout>();
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
  enter(socket: Socket): void {
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
  /** It has shown the token. */
  leave(socket: Socket): void {
    this.#remove(socket);
  }

  #remove(socket: Socket): void {
    clearTimeout(this.#waiting.get(socket));
    this.#waiting.delete(socket);
  }
}
