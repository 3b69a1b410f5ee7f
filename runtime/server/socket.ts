import type { WebSocket } from 'ws';

/** A client with this many unsent bytes is not reading; it is disconnected and may reconnect. */
export const hopelessBytes = 64 << 20;
/** A client with this many unsent bytes is not read from until it has read some of them. */
export const unreadBytes = 4 << 20;
/** Above this backlog only the newest state of each thing is kept for a client, not every message about it. */
export const congestedBytes = 1 << 20;

/**
 * Sends in order. Each send resolves when the kernel has taken the frame, so whoever awaits it goes at the client's
 * pace. Broadcasts, which nobody awaits, are held back while the client is behind: for each key the newest one only.
 */
export class Outbox {
  readonly #socket: WebSocket;
  readonly #held = new Map<string, () => string>();
  readonly #eased: () => void;
  #sent = 0;
  /** `eased` is called whenever the client has taken something. */
  constructor(socket: WebSocket, eased: () => void = () => undefined) {
    this.#socket = socket;
    this.#eased = eased;
  }

  /** Messages that the client's system has taken: grows as long as somebody reads there. */
  get sent(): number {
    return this.#sent;
  }
  get congested(): boolean {
    return this.#socket.bufferedAmount > unreadBytes;
  }

  send(data: string | Uint8Array): Promise<void> {
    return new Promise((done, fail) => {
      if (this.#socket.readyState !== this.#socket.OPEN) {
        fail(new Error('the connection is closed'));
        return;
      }
      this.#socket.send(data, (e) => {
        if (e) {
          fail(e);
          return;
        }
        this.#sent++;
        done();
        this.#release();
        this.#eased();
      });
      if (this.#socket.bufferedAmount > hopelessBytes) this.#socket.terminate();
    });
  }
  /** `key` names what the message is the state of. */
  state(key: string, text: () => string): void {
    this.#held.delete(key);
    this.#held.set(key, text);
    this.#release();
  }
  #release(): void {
    for (const [key, text] of this.#held) {
      if (this.#socket.bufferedAmount > congestedBytes) return; // the next send that is done comes back here
      this.#held.delete(key);
      ignoreFailure(this.send(text()), 'a closed socket has no reader');
    }
  }
}
import { ignoreFailure } from '../concurrency/failures.js';
