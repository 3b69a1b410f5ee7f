/**
 * The keyboard of a remote screen: keys as the desktop is to get them, and the chord that takes the keyboard back.
 * Pure.
 *
 * Modifiers are held back until something uses them. So Control and Alt, pressed and let go alone, leave without a
 * trace on the desktop or in what is recorded, while Ctrl+Alt+T reaches it. What the local layout is for stays here:
 * AltGr, dead keys and input methods give the text they make, and Caps Lock the capital.
 */
export interface KeyPress {
  /** KeyboardEvent.key */
  readonly key: string;
  /** KeyboardEvent.code; '' on virtual keyboards. */
  readonly code: string;
  /** An input method is at work (`isComposing`, or key code 229). */
  readonly composing: boolean;
  /** The local keyboard's auto-repeat. */
  readonly repeat?: boolean;
}
export interface KeyOut {
  readonly type: 'key';
  readonly key: string;
  readonly down: boolean;
}
export type Platform = 'mac' | 'windows' | 'other';

const modifiers = new Set(['Control', 'Alt', 'Shift', 'Meta']);
const makesText = new Set(['Dead', 'Process', 'Unidentified', 'Compose']);
const staysHere = new Set([
  'AltGraph',
  'CapsLock',
  'NumLock',
  'ScrollLock',
  'Fn',
  'FnLock',
  'Hyper',
  'Super',
  'Symbol',
  'SymbolLock',
]);
/**
 * `waiting`: not sent yet. `spent`: what it was for happened here (a letter of the local layout); its release sends
 * nothing.
 */
interface Held {
  readonly key: string;
  state: 'waiting' | 'sent' | 'spent';
}

export class RemoteKeys {
  readonly #platform: Platform;
  readonly #held = new Map<string, Held>();
  readonly #pressed = new Map<string, string>();
  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** `handled` false: the key belongs to an input method, and its text will come by itself. */
  down(k: KeyPress): { readonly out: readonly KeyOut[]; readonly handled: boolean } {
    const code = k.code || k.key;
    if (k.composing || makesText.has(k.key)) {
      this.#spend(() => true);
      return { out: [], handled: false };
    }
    if (modifiers.has(k.key)) {
      if (!this.#held.has(code) && !k.repeat) this.#held.set(code, { key: k.key, state: 'waiting' });
      return { out: [], handled: true };
    }
    if (staysHere.has(k.key)) {
      // Windows makes AltGr out of a Control key that nobody pressed.
      if (k.key === 'AltGraph' && this.#platform === 'windows') this.#spend((m) => m === 'Control');
      return { out: [], handled: true };
    }
    const again = this.#pressed.get(code);
    if (again !== undefined) return { out: [{ type: 'key', key: again, down: true }], handled: true };
    // Pressed before the keyboard came here, and held since: it was meant for the page.
    if (k.repeat) return { out: [], handled: true };
    // Option is the Mac's AltGr: with a letter it made that letter.
    if (
      this.#platform === 'mac' &&
      [...k.key].length === 1 &&
      ![...this.#held.values()].some((m) => m.key === 'Control' || m.key === 'Meta')
    )
      this.#spend((m) => m === 'Alt');
    const out: KeyOut[] = [...this.used(), { type: 'key', key: k.key, down: true }];
    this.#pressed.set(code, k.key);
    return { out, handled: true };
  }

  /** `leave`: Control and Alt were pressed together, and nothing else. */
  up(k: Pick<KeyPress, 'key' | 'code'>): { readonly out: readonly KeyOut[]; readonly leave: boolean } {
    const code = k.code || k.key,
      key = this.#pressed.get(code),
      held = this.#held.get(code);
    if (key !== undefined) {
      this.#pressed.delete(code);
      return { out: [{ type: 'key', key, down: false }], leave: false };
    }
    if (!held) return { out: [], leave: false };
    if (held.state === 'waiting' && this.#pressed.size === 0) {
      const all = [...this.#held.values()];
      if (
        all.length === 2 &&
        all.every((m) => m.state === 'waiting') &&
        all.some((m) => m.key === 'Control') &&
        all.some((m) => m.key === 'Alt')
      ) {
        this.#held.clear();
        return { out: [], leave: true };
      }
    }
    const out: KeyOut[] = held.state === 'waiting' ? this.used() : [];
    this.#held.delete(code);
    // A Mac does not tell of keys let go while Command is down.
    if (held.key === 'Meta' && this.#platform === 'mac') {
      for (const p of this.#pressed.values()) out.push({ type: 'key', key: p, down: false });
      this.#pressed.clear();
    }
    if (held.state === 'sent') out.push({ type: 'key', key: held.key, down: false });
    return { out, leave: false };
  }

  /** Modifiers that now matter: a key, a button or the wheel is used with them. */
  used(): KeyOut[] {
    const out: KeyOut[] = [];
    for (const m of this.#held.values())
      if (m.state === 'waiting') {
        m.state = 'sent';
        out.push({ type: 'key', key: m.key, down: true });
      }
    return out;
  }
  /** The keyboard leaves the desktop: everything held there is released, keys before modifiers. */
  release(): KeyOut[] {
    const out: KeyOut[] = [...this.#pressed.values()].map((key) => ({ type: 'key', key, down: false }));
    for (const m of [...this.#held.values()].reverse())
      if (m.state === 'sent') out.push({ type: 'key', key: m.key, down: false });
    this.#pressed.clear();
    this.#held.clear();
    return out;
  }
  #spend(which: (key: string) => boolean): void {
    for (const m of this.#held.values()) if (m.state === 'waiting' && which(m.key)) m.state = 'spent';
  }
}

export const platformOf = (userAgent: string): Platform =>
  /Mac OS X|Macintosh/.test(userAgent) ? 'mac' : /Windows/.test(userAgent) ? 'windows' : 'other';
