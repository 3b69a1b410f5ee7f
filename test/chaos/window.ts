import { Socket } from 'node:net';
import { resolve } from 'node:path';
import { DaemonClient } from '../../extension/daemon/client.js';
import * as methods from '../../runtime/protocol/methods.js';

/** Sockets of this process that are open: those of the window. */
const open = new Set<Socket>();
const connect = Socket.prototype.connect;
Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
  open.add(this);
  this.once('close', () => open.delete(this));
  return connect.apply(this, args as never);
} as typeof connect;

/** What a VS Code window is to the daemon: one client that comes back by itself, and follows the run's events. */
export class Window {
  readonly client: DaemonClient;
  readonly #problems: string[];
  #next = 0;
  #events = 0;
  #over = false;
  #off: (() => void) | undefined;
  #run = '';

  constructor(storage: string, problems: string[]) {
    this.#problems = problems;
    this.client = new DaemonClient({
      storage,
      runtime: resolve('dist/runtime.js'),
      build: { version: '0', time: 0 },
      client: 'chaos',
      log: () => undefined,
    });
    this.client.on(methods.runRecovered, (r) => this.#told(r.outcome, r.message));
    this.client.on(methods.runStatus, (r) => {
      if (r.run === this.#run && this.#off && this.#over) this.#subscribe(r.run);
    });
    this.client.onState(() => {
      if (this.client.state === 'ready')
        for (const r of this.client.hello?.recovered ?? []) this.#told(r.outcome, r.message);
    });
  }
  #told(outcome: string, message: string): void {
    if (outcome !== 'resumed') this.#problems.push(`the run was not resumed: ${message}`);
  }

  /**
   * Follows a run's events: each must come once and in order, whatever happens to the connection. A run that nobody has
   * resumed yet is over, so it is asked again when the daemon speaks of it.
   */
  follow(run: string): void {
    this.#run = run;
    this.#next = 0;
    this.#subscribe(run);
  }
  #subscribe(run: string): void {
    this.#over = false;
    this.#off = this.client.subscribe(
      { run, sinceSeq: this.#next },
      ({ events, nextSeq, ended }) => {
        this.#over ||= ended === true;
        for (const { seq } of events) {
          if (seq < this.#next) this.#problems.push(`the window was told event ${seq} after event ${this.#next - 1}`);
          this.#next = Math.max(this.#next, seq + 1);
        }
        this.#next = Math.max(this.#next, nextSeq);
        this.#events += events.length;
      },
      () => {
        this.#over = true;
      },
    );
  }
  /** One more than the number of the last record it knows of. */
  get next(): number {
    return this.#next;
  }
  /** How many events it was told. */
  get events(): number {
    return this.#events;
  }
  unfollow(): void {
    this.#off?.();
    this.#off = undefined;
  }

  /** Ends the connection without a word. False when there was none. */
  cut(): boolean {
    const there = [...open];
    for (const s of there) s.resetAndDestroy();
    return there.length > 0;
  }
  close(): void {
    this.unfollow();
    this.client.dispose();
  }
}
