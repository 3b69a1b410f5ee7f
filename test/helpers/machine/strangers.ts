import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Connections that never finish a request: every other one says nothing, the rest a letter now and then. */
export class Strangers {
  readonly #sockets: Socket[];
  readonly #drip: NodeJS.Timeout;

  private constructor(sockets: Socket[]) {
    this.#sockets = sockets;
    this.#drip = setInterval(() => {
      for (const [i, s] of sockets.entries()) if (i % 2 && s.writable) s.write('X');
    }, DRIP_MS);
  }
  static async at(port: number, n: number): Promise<Strangers> {
    const sockets = await Promise.all(
      Array.from({ length: n }, async (_, i) => {
        const s = connect(port, '127.0.0.1')
          .on('error', () => undefined)
          .resume();
        await once(s, 'connect');
        if (i % 2) s.write('GET / HTTP/1.1\r\n');
        return s;
      }),
    );
    return new Strangers(sockets);
  }
  /** How many the server still has. */
  get left(): number {
    return this.#sockets.filter((s) => !s.closed).length;
  }
  /** Until the server has cut off the last one. */
  async gone(): Promise<void> {
    const there = this.#sockets.filter((s) => !s.closed);
    // Not `once` of node:events: being cut off while one writes is an error of the socket too.
    await Promise.all(there.map((s) => new Promise((done) => s.once('close', done))));
  }
  end(): void {
    clearInterval(this.#drip);
    for (const s of this.#sockets) s.destroy();
  }
}
const DRIP_MS = 200;
