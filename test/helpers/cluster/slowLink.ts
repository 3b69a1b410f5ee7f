import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** A unix socket's stream at the end of a link that takes `ms` each way. */
export class SlowLink extends Duplex {
  readonly #socket: Socket;
  readonly #ms: number;

  constructor(path: string, ms: number) {
    super();
    this.#ms = ms;
    this.#socket = connect(path);
    this.#socket.on('data', (d) => this.#later(() => this.push(d)));
    this.#socket.on('error', (e) => this.destroy(e));
    this.#socket.on('close', () => this.#later(() => this.destroy()));
  }
  override _read(): void {
    // Answers are short.
  }
  override _write(d: Buffer, _: BufferEncoding, done: () => void): void {
    this.#later(() => this.#socket.write(d));
    done();
  }
  override _destroy(e: Error | null, done: (e: Error | null) => void): void {
    this.#socket.destroy();
    done(e);
  }
  #later(run: () => void): void {
    setTimeout(() => {
      if (!this.destroyed) run();
    }, this.#ms);
  }
}
