/**
 * Listeners that are called after the current turn of the event loop, when the change is complete; several changes lead
 * to one call.
 */
export class ChangeListeners {
  readonly #listeners = new Set<() => void>();
  #telling = false;

  get size(): number {
    return this.#listeners.size;
  }
  /** Returns a function that removes it. */
  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }
  tell(): void {
    if (this.#telling) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      for (const l of this.#listeners) l();
    });
  }
}
