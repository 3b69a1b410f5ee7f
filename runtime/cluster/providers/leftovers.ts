/**
 * Names of the containers or pods that this process uses or is about to make, whichever provider makes them: all carry
 * the owner label of the process, and what carries it under another name is left over.
 */
const namesInUse = new Set<string>();

export interface LeftoversOptions<T> {
  /** The items with the owner label of this process, and their names. */
  list(): Promise<readonly { readonly item: T; readonly names: readonly string[] }[]>;
  /** Removes it for good; one that is gone is fine. */
  remove(item: T): Promise<void>;
}

/** Items that an engine or a cluster made, or kept, while it did not answer: found by their names and removed later. */
export class Leftovers<T> {
  readonly #o: LeftoversOptions<T>;
  #unsure = false;

  constructor(o: LeftoversOptions<T>) {
    this.#o = o;
  }

  /** Called before an item of this name is made. */
  begin(name: string): void {
    namesInUse.add(name);
  }
  /** Called when the item was not made, or (`mayExist`) when nobody knows. */
  abandon(name: string, mayExist: boolean): void {
    namesInUse.delete(name);
    this.#unsure ||= mayExist;
  }
  /** Removes an item; where that fails, it rejects, and the next sweep tries again. */
  async end(name: string, item: T): Promise<void> {
    try {
      await this.#o.remove(item);
    } catch (e) {
      this.#unsure = true;
      throw e;
    } finally {
      namesInUse.delete(name);
    }
  }
  /** Removes what nobody uses, if there may be anything. Rejects when it cannot; then the next one tries again. */
  async sweep(): Promise<void> {
    if (!this.#unsure) return;
    this.#unsure = false;
    try {
      const left = (await this.#o.list()).filter(({ names }) => !names.some((n) => namesInUse.has(n)));
      await Promise.all(left.map(({ item }) => this.#o.remove(item)));
    } catch (e) {
      this.#unsure = true;
      throw e;
    }
  }
}
