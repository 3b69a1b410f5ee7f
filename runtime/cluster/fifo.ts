/** Removed entries at the front beyond which the list is cut, at the latest when they are half of it. */
const KEPT = 64;

/** A queue without duplicates. Adding, removing any item and taking the first cost the same however many there are. */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  /** Each item's place, counted from the first that ever came; `cut` of them are no longer in the list. */
  readonly #at = new Map<T, number>();
  #head = 0;
  #cut = 0;

  get size(): number {
    return this.#at.size;
  }

  /** Adds an item at the end; one that is there already keeps its place. */
  add(item: T): void {
    if (this.#at.has(item)) return;
    this.#at.set(item, this.#cut + this.#items.length);
    this.#items.push(item);
  }

  delete(item: T): boolean {
    const at = this.#at.get(item);
    if (at === undefined) return false;
    this.#at.delete(item);
    this.#items[at - this.#cut] = undefined;
    return true;
  }

  /** Takes out the first; undefined when there is none. */
  shift(): T | undefined {
    while (this.#head < this.#items.length) {
      const item = this.#items[this.#head++];
      if (item === undefined) continue;
      this.#at.delete(item);
      this.#trim();
      return item;
    }
    this.#trim();
    return undefined;
  }

  #trim(): void {
    if (this.#head < this.#items.length && (this.#head < KEPT || this.#head * 2 < this.#items.length)) return;
    this.#items.splice(0, this.#head);
    this.#cut += this.#head;
    this.#head = 0;
  }
}
