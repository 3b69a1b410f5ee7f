/** Gives the least of what was put in, each in logarithmic time. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #order: (a: T, b: T) => number;

  constructor(order: (a: T, b: T) => number) {
    this.#order = order;
  }
  get first(): T | undefined {
    return this.#items[0];
  }
  put(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#order(items[above]!, item) <= 0) break;
      items[at] = items[above]!;
      at = above;
    }
    items[at] = item;
  }
  take(): T | undefined {
    const items = this.#items,
      [first] = items,
      last = items.pop();
    if (items.length === 0 || last === undefined) return first;
    let at = 0;
    for (let below = 1; below < items.length; below = 2 * at + 1) {
      if (below + 1 < items.length && this.#order(items[below + 1]!, items[below]!) < 0) below++;
      if (this.#order(items[below]!, last) >= 0) break;
      items[at] = items[below]!;
      at = below;
    }
    items[at] = last;
    return first;
  }
}
