import type { DaemonState, HostError } from '../../webview/protocol.js';
import { asError, type StateListener } from './types.js';

/** The state of the connection and its listeners. */
export class StateBroadcast {
  readonly #listeners = new Set<StateListener>();
  readonly #fault: (message: string) => void;
  #value: DaemonState = 'stopped';
  #detail: HostError | undefined;

  constructor(fault: (message: string) => void) {
    this.#fault = fault;
  }
  get value(): DaemonState {
    return this.#value;
  }
  get detail(): HostError | undefined {
    return this.#detail;
  }
  on(l: StateListener): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }
  clear(): void {
    this.#listeners.clear();
  }
  become(state: DaemonState, detail?: HostError): void {
    if (this.#value === state && this.#detail?.kind === detail?.kind && this.#detail?.message === detail?.message)
      return;
    this.#value = state;
    this.#detail = detail;
    for (const l of [...this.#listeners]) {
      try {
        l(state, detail);
      } catch (e) {
        this.#fault(`a listener of the daemon's state failed: ${asError(e).message}`);
      }
    }
  }
}
