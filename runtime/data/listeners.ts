import { notify } from '../concurrency/notify.js';

/** The listeners of one event. */
export class Listeners<E> {
  readonly #all = new Set<(e: E) => void>();
  /** Returns a function that removes it. */
  add(listener: (e: E) => void): () => void {
    this.#all.add(listener);
    return () => {
      this.#all.delete(listener);
    };
  }
  tell(e: E): void {
    notify(this.#all, e);
  }
}
