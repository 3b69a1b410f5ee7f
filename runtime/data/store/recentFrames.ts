/** Longer than any step takes from its screen to its record, unless a person or a full disk holds its episode up. */
export const LATELY_MS = 15 * 60_000;

/** Screens known to be stored, and which of them may not be removed yet: steps that show them may not be recorded. */
export class RecentFrames {
  readonly #most: number;
  /** When each was put last, ms; insertion order is age: a hit is moved to the end. */
  readonly #put = new Map<string, number>();
  /** How many holds each is in. */
  readonly #held = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether it is known; it then counts as put now. */
  again(hash: string): boolean {
    if (!this.#put.delete(hash)) return false;
    this.#put.set(hash, Date.now());
    return true;
  }
  add(hash: string): void {
    const now = Date.now();
    this.#put.delete(hash);
    this.#put.set(hash, now);
    // Frames put lately stay: who removes screens asks for them.
    for (const [oldest, at] of this.#put) {
      if (this.#put.size <= this.#most || now - at <= LATELY_MS) break;
      this.#put.delete(oldest);
    }
  }
  forget(hash: string): void {
    this.#put.delete(hash);
  }
  /** Whether it was put lately, or is held. */
  stays(hash: string, now: number): boolean {
    return this.#held.has(hash) || now - (this.#put.get(hash) ?? -Infinity) <= LATELY_MS;
  }

  /** Those added stay until the end, and count as put then: what shows them may be recorded just afterwards. */
  hold(): { add(hash: string): void; end(): void } {
    const mine = new Set<string>();
    return {
      add: (hash) => {
        if (mine.has(hash)) return;
        mine.add(hash);
        this.#held.set(hash, (this.#held.get(hash) ?? 0) + 1);
      },
      end: () => {
        for (const hash of mine) {
          const others = this.#held.get(hash)! - 1;
          if (others > 0) this.#held.set(hash, others);
          else this.#held.delete(hash);
          this.again(hash);
        }
        mine.clear();
      },
    };
  }
}
