/** Listeners that are told after the present turn: they find the change complete, and several changes are told once. */
export class ChangeListeners {
  readonly #listeners = new Set<() => void>();
  #telling = false;

  get size(): number {
    return this.#listeners.size;
  }
  /** Returns what takes it away again. */
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
