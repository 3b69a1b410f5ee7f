/** Anything with an end: a subscription, a panel, a timer. */
export interface Ends {
  dispose(): void;
}

/**
 * Owner of what lives as long as it does. Disposing is idempotent, runs in reverse order, and a child added after the
 * end is ended at once, so that nothing started late leaks.
 */
export class Disposables implements Ends {
  readonly #children = new Set<Ends>();
  #ended = false;
  get ended(): boolean {
    return this.#ended;
  }

  add<T extends Ends>(child: T): T {
    if (this.#ended) child.dispose();
    else this.#children.add(child);
    return child;
  }
  /** Adds an `() => void` unsubscriber. */
  defer(end: () => void): Ends {
    return this.add({ dispose: end });
  }
  /** Ends one child early. */
  drop(child: Ends | undefined): void {
    if (child && this.#children.delete(child)) child.dispose();
  }
  dispose(): void {
    if (this.#ended) return;
    this.#ended = true;
    const children = [...this.#children].reverse();
    this.#children.clear();
    let fault: unknown;
    for (const c of children) {
      try {
        c.dispose();
      } catch (e) {
        fault ??= e;
      }
    }
    if (fault !== undefined) throw fault;
  }
}
