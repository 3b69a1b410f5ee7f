/** The range that charts of one key zoom to together. Pure but for telling them. */
import type { Range } from './chartMath.js';

export interface Zoomed {
  zoomed(): void;
}
const groups = new Map<string, ZoomGroup>();

export class ZoomGroup {
  readonly #members = new Set<Zoomed>();
  #range: Range | undefined;

  static of(key: string): ZoomGroup {
    let g = groups.get(key);
    if (!g) groups.set(key, (g = new ZoomGroup()));
    return g;
  }
  get range(): Range | undefined {
    return this.#range;
  }
  add(m: Zoomed): void {
    this.#members.add(m);
  }
  drop(m: Zoomed): void {
    this.#members.delete(m);
  }
  set(range: Range | undefined): void {
    this.#range = range;
    for (const m of this.#members) m.zoomed();
  }
}
