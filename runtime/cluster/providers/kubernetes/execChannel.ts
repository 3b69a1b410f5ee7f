import { WebSocket } from 'ws';
import { parseStatus } from './faults.js';
import type { ChannelEvents, LinkChannel } from './link.js';

export const PROTOCOL = 'v5.channel.k8s.io';
/** Streams of an exec channel, the first byte of every message. */
const STDIN = 0,
  STDOUT = 1,
  STDERR = 2,
  STATUS = 3;
/** Followed by a stream: nothing more comes on it. */
const CLOSE = 255;
const STDIN_PIECE = 32 << 10;

/** The program ended; a channel that was cut has another error. */
export class ProgramEnded extends Error {}

/** A program in a pod with its standard input and output, over one WebSocket. */
export class ExecChannel implements LinkChannel {
  readonly #ws: WebSocket;
  readonly #on: ChannelEvents;
  #said = '';
  #over = false;

  constructor(ws: WebSocket, on: ChannelEvents) {
    this.#ws = ws;
    this.#on = on;
    ws.on('message', (m: Buffer) => this.#take(m));
  }

  /** `sent` is called when the last of it has left, or never will. */
  send(b: Buffer, sent?: () => void): void {
    if (this.#ws.readyState !== WebSocket.OPEN || b.length === 0) {
      sent?.();
      return;
    }
    for (let at = 0; at < b.length; at += STDIN_PIECE) {
      const piece = Buffer.concat([Buffer.of(STDIN), b.subarray(at, at + STDIN_PIECE)]);
      this.#ws.send(piece, at + STDIN_PIECE >= b.length && sent ? () => sent() : undefined);
    }
  }
  /** Ends the program's standard input. */
  endInput(): void {
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.send(Buffer.of(CLOSE, STDIN));
  }

  /** Stops reading from the connection until `resume`. */
  pause(): void {
    this.#ws.pause();
  }
  resume(): void {
    this.#ws.resume();
  }
  /** Says something to what stands between, which may cut connections that are silent. */
  ping(): void {
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.ping();
  }

  close(): void {
    this.#over = true;
    this.#ws.terminate();
  }

  /** Tells the listener once. */
  end(why: Error): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#said !== '') why.message += ` (${this.#said.trim().slice(-300)})`;
    this.#on.ended(why);
  }

  #take(m: Buffer): void {
    if (this.#over || m.length === 0) return;
    const body = m.subarray(1);
    if (m[0] === STDOUT) this.#on.data(body);
    else if (m[0] === STDERR) this.#said = (this.#said + body.toString('utf8')).slice(-1000);
    else if (m[0] === STATUS) {
      const status = parseStatus(body.toString('utf8'));
      this.end(new ProgramEnded(status.message ?? 'the program in the pod ended'));
      this.#ws.close();
    }
  }
}
