/** Messages of one client that were received and not yet begun, and whether more may come. */

/** Bounds of what a client may send ahead: messages, and characters of them. */
const mostMessages = 256,
  mostCharacters = 8 << 20;

export interface InboxEffects {
  /** Takes one message. */
  deliver(text: string): void;
  /** Stops reading from the socket until `resume`: the client's own system makes it wait. */
  pause(): void;
  resume(): void;
  /** Whether the client leaves its answers unread. */
  congested(): boolean;
}

/**
 * Delivers one message in each turn of the event loop, in order. A client that sends faster, or does not read what it is
 * answered, is not read from any further: what it can make the daemon hold has a bound.
 */
export class Inbox {
  readonly #effects: InboxEffects;
  #waiting: string[] = [];
  #characters = 0;
  #paused = false;
  #scheduled = false;
  #closed = false;

  constructor(effects: InboxEffects) {
    this.#effects = effects;
  }

  push(text: string): void {
    if (this.#closed) return;
    this.#waiting.push(text);
    this.#characters += text.length;
    this.#look();
    this.#schedule();
  }
  /** Answers were read, or a message was begun. */
  eased(): void {
    this.#look();
    this.#schedule();
  }
  close(): void {
    this.#closed = true;
    this.#waiting = [];
  }

  #look(): void {
    if (this.#closed) return;
    const full = this.#waiting.length >= mostMessages || this.#characters >= mostCharacters,
      little = this.#waiting.length <= mostMessages / 4 && this.#characters <= mostCharacters / 4,
      behind = this.#effects.congested();
    if (!this.#paused && (full || behind)) {
      this.#paused = true;
      this.#effects.pause();
    } else if (this.#paused && little && !behind) {
      this.#paused = false;
      this.#effects.resume();
    }
  }
  /**
   * Messages that are here wait too while the client does not read: their answers would only be added to the others.
   */
  #schedule(): void {
    if (this.#scheduled || this.#closed || this.#waiting.length === 0 || this.#effects.congested()) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const text = this.#waiting.shift();
      if (this.#closed || text === undefined) return;
      this.#characters -= text.length;
      this.#effects.deliver(text);
      this.#look();
      this.#schedule();
    });
  }
}
