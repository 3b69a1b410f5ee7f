import { SHIFT } from '../../domain/keysyms.js';

/** One key to press: keycode, and whether shift must be held for this keysym. */
export interface KeyPlace {
  readonly code: number;
  readonly shift: boolean;
}
/** Spare keycodes to redefine before typing the next part: `keysyms[i]` goes to `codes[i]`. */
export interface Remap {
  readonly codes: readonly number[];
  readonly keysyms: readonly number[];
}
export interface TypingPart {
  readonly remap: Remap;
  readonly keys: readonly KeyPlace[];
}

/**
 * The place of each keysym on the keyboard. Keysyms that no key has are put on spare keycodes (those without any
 * keysym). The caller must let applications process all earlier keys before a spare is redefined, because they look
 * keysyms up only then.
 */
export class Keyboard {
  readonly #places = new Map<number, KeyPlace>();
  readonly #spares: number[] = [];
  /** keysym -> spare keycode, least recently used first. */
  readonly #borrowed = new Map<number, number>();

  constructor(minKeycode: number, perCode: number, keysyms: Uint32Array) {
    const n = Math.floor(keysyms.length / perCode);
    for (let i = 0; i < n; i++) {
      const levels = keysyms.subarray(i * perCode, (i + 1) * perCode);
      if (levels.every((k) => k === 0)) {
        this.#spares.push(minKeycode + i);
        continue;
      }
      // Levels 0 and 1 of the first group only: further groups need a mode switch.
      for (const level of [0, 1] as const) {
        const k = levels[level] ?? 0;
        if (k !== 0 && !this.#places.has(k)) this.#places.set(k, { code: minKeycode + i, shift: level === 1 });
      }
      // A letter key with only its lower case listed gives the capital with shift (core protocol's rule).
      const [k0, k1] = [levels[0] ?? 0, levels[1] ?? 0];
      if (k0 >= 0x61 && k0 <= 0x7a && k1 === 0 && !this.#places.has(k0 - 32))
        this.#places.set(k0 - 32, { code: minKeycode + i, shift: true });
    }
  }

  get shiftCode(): number {
    return this.#places.get(SHIFT)?.code ?? 50;
  }

  /**
   * Split a text (as keysyms) into parts, each typed after at most one redefinition. Ordinary text is one part without
   * any. Throws RangeError when the keyboard has no spare keycodes and one is needed.
   */
  plan(keysyms: readonly number[]): TypingPart[] {
    const parts: TypingPart[] = [];
    let keys: KeyPlace[] = [],
      pinned = new Set<number>(),
      codes: number[] = [],
      added: number[] = [];
    const flush = (): void => {
      if (keys.length > 0) parts.push({ remap: { codes, keysyms: added }, keys });
      keys = [];
      pinned = new Set();
      codes = [];
      added = [];
    };
    for (const k of keysyms) {
      let place = this.#find(k);
      if (!place) {
        let code = this.#take(pinned);
        if (code === undefined) {
          flush();
          code = this.#take(pinned);
        }
        if (code === undefined) throw new RangeError('the keyboard has no spare keycodes');
        this.#borrowed.set(k, code);
        codes.push(code);
        added.push(k);
        place = { code, shift: false };
      }
      if (this.#borrowed.has(k)) pinned.add(k);
      keys.push(place);
    }
    flush();
    return parts;
  }

  #find(k: number): KeyPlace | undefined {
    const p = this.#places.get(k);
    if (p) return p;
    const code = this.#borrowed.get(k);
    if (code === undefined) return undefined;
    this.#borrowed.delete(k);
    this.#borrowed.set(k, code);
    return { code, shift: false };
  }

  /** A spare keycode: an unused one, else the least recently used that this part does not need. */
  #take(pinned: ReadonlySet<number>): number | undefined {
    const used = new Set(this.#borrowed.values());
    const fresh = this.#spares.find((c) => !used.has(c));
    if (fresh !== undefined) return fresh;
    for (const [k, code] of this.#borrowed)
      if (!pinned.has(k)) {
        this.#borrowed.delete(k);
        return code;
      }
    return undefined;
  }
}
