import { ignoreFailure } from '../../concurrency/failures.js';
import { errorMessage, type Message } from './session.js';
import type { Environment, Environments } from './types.js';

/** The environments in use: one for each session. */
export class Places {
  readonly #e: Environments;
  readonly #taken = new Set<Environment>();
  readonly #closing = new Set<Promise<void>>();

  constructor(e: Environments) {
    this.#e = e;
  }
  /** The message to a session beyond the limit. */
  get full(): Message {
    const { capacity } = this.#e;
    return errorMessage(
      `All ${capacity} desktops are in use. Close a session, or serve more with --count.`,
      'CAPACITY_REACHED',
      { active_sessions: this.#taken.size, max_sessions: capacity },
    );
  }
  /** Undefined when all are taken. */
  take(): Environment | undefined {
    if (this.#taken.size >= this.#e.capacity) return undefined;
    const env = this.#e.open();
    this.#taken.add(env);
    return env;
  }
  /** Frees an environment's place at once: its successor waits for the desktop. Idempotent. */
  give(env: Environment): void {
    if (!this.#taken.delete(env)) return;
    const closed = env.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
    ignoreFailure(closed, 'its desktop is replaced');
  }
  async close(): Promise<void> {
    for (const env of [...this.#taken]) this.give(env);
    await Promise.allSettled(this.#closing);
  }
}
