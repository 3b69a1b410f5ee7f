/**
 * Listeners without `vscode`, for code that is tested outside the editor. A listener that throws does not affect the
 * others.
 */
export class Emitter<T> {
  readonly #listeners = new Set<(value: T) => void>();
  readonly on = (listener: (value: T) => void): (() => void) => {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  };
  fire(value: T): void {
    let fault: unknown;
    for (const l of [...this.#listeners]) {
      try {
        l(value);
      } catch (e) {
        fault ??= e;
      }
    }
    if (fault !== undefined) throw fault;
  }
}
