import type { Point } from '../../domain/index.js';
import { liveKeysym, modifierKeysym } from '../../domain/keysyms.js';
import type { DesktopInput } from '../types.js';
import type { Keyboard, KeyPlace } from './keyboard.js';
import { ButtonPress, ButtonRelease, KeyPress, KeyRelease, Motion, type X11Client } from './x11Client.js';

/** The state that `Input` shares: one keyboard map, and one record of where the last click was. */
export interface LiveHost {
  readonly x: X11Client;
  readonly keyboard: Keyboard;
  inside(p: Point): Point;
  /** The keycode of a keysym, which gets a spare one if it has none. */
  place(keysym: number): Promise<KeyPlace>;
  type(text: string): Promise<void>;
  now(): number;
}

const BUTTON = { left: 1, middle: 2, right: 3 } as const;
/**
 * The server pauses between press and release: an application that sets a grab at the press loses a release that comes
 * with it (runtime/cluster/README.md#input).
 */
const GAP_MS = 60;
/** Events that a link or a machine held back come together, whatever time was between them here. */
const LEAST_GAP_MS = 10;
/**
 * A window manager that grabs presses usually looks at a wheel click sooner. The server drops a release that it passes
 * on while the button is down again.
 */
const WHEEL_GAP_MS = 10;
/** Most wheel clicks of one event. */
const MOST_CLICKS = 40;

/**
 * Input as a person makes it, event by event. Modifiers and buttons stay down until they are released; every other key
 * is pressed and released at once, so that no key auto-repeats or stays down when its release never arrives. Methods
 * must not overlap.
 */
export class LiveInput {
  readonly #h: LiveHost;
  /** Pressed buttons, and when. */
  readonly #buttons = new Map<number, number>();
  /** Keycodes of pressed modifiers by their keysym. */
  readonly #modifiers = new Map<number, number>();

  constructor(h: LiveHost) {
    this.#h = h;
  }

  /**
   * Resolves when all of them are queued, in order: over a slow link a person's second click must not wait for the
   * server's answer to the first, or it comes too late for a double click.
   */
  async send(events: readonly DesktopInput[]): Promise<void> {
    for (const e of events) {
      switch (e.type) {
        case 'move':
          this.#move(e);
          break;
        case 'button':
          this.#button(e, BUTTON[e.button], e.down);
          break;
        case 'wheel':
          this.#move(e);
          this.#wheel(e.dx, e.dy);
          break;
        case 'key':
          await this.#key(e.key, e.down);
          break;
        case 'text':
          await this.#bare(() => this.#h.type(e.text));
          break;
        case 'release':
          this.#release();
          break;
      }
    }
  }

  #move(p: Point): void {
    const { x, y } = this.#h.inside(p);
    this.#h.x.fakeInput(Motion, 0, x, y);
  }

  #button(p: Point, button: number, down: boolean): void {
    const { x } = this.#h,
      since = this.#buttons.get(button);
    if (down === (since !== undefined)) {
      this.#move(p);
      return;
    }
    if (down) {
      this.#move(p);
      x.fakeInput(ButtonPress, button);
      this.#buttons.set(button, this.#h.now());
      return;
    }
    this.#move(p);
    x.fakeInput(ButtonRelease, button, 0, 0, Math.max(LEAST_GAP_MS, GAP_MS - (this.#h.now() - since!)));
    this.#buttons.delete(button);
  }

  /** Wheel clicks without modifiers: the policy's scroll has none. */
  #wheel(dx: number, dy: number): void {
    const { x } = this.#h;
    for (const code of this.#modifiers.values()) x.fakeInput(KeyRelease, code);
    for (const [n, less, more] of [
      [dy, 4, 5],
      [dx, 6, 7],
    ] as const) {
      for (let i = 0; i < Math.min(MOST_CLICKS, Math.abs(Math.round(n))); i++) {
        x.fakeInput(ButtonPress, n < 0 ? less : more, 0, 0, i > 0 ? WHEEL_GAP_MS : 0);
        x.fakeInput(ButtonRelease, n < 0 ? less : more);
      }
    }
    for (const code of this.#modifiers.values()) x.fakeInput(KeyPress, code);
  }

  async #key(key: string, down: boolean): Promise<void> {
    const { x, keyboard } = this.#h,
      modifier = modifierKeysym(key);
    if (modifier !== undefined) {
      const held = this.#modifiers.get(modifier);
      if (down && held === undefined) {
        const { code } = await this.#h.place(modifier);
        x.fakeInput(KeyPress, code);
        this.#modifiers.set(modifier, code);
      } else if (!down && held !== undefined) {
        x.fakeInput(KeyRelease, held);
        this.#modifiers.delete(modifier);
      }
      return;
    }
    const keysym = down ? liveKeysym(key, this.#chording) : undefined;
    if (keysym === undefined) return;
    const place = await this.#h.place(keysym),
      shift = keyboard.shiftCode,
      held = [...this.#modifiers.values()].includes(shift);
    // For a character, the person's own keyboard has already applied shift, and ours may differ. Named keys and chords
    // use the modifiers that are held.
    const wanted = [...key].length === 1 && key !== ' ' && !this.#chording ? place.shift : held || place.shift;
    if (wanted !== held) x.fakeInput(wanted ? KeyPress : KeyRelease, shift);
    x.fakeInput(KeyPress, place.code);
    x.fakeInput(KeyRelease, place.code);
    if (wanted !== held) x.fakeInput(held ? KeyPress : KeyRelease, shift);
  }
  /** Whether a modifier other than shift is held: a letter then stands for its key. */
  get #chording(): boolean {
    for (const keysym of this.#modifiers.keys()) if (keysym !== SHIFT) return true;
    return false;
  }

  /** Runs `work` with the modifiers released, since a text already includes their effect. */
  async #bare(work: () => Promise<void>): Promise<void> {
    const { x } = this.#h,
      held = [...this.#modifiers.values()];
    for (const code of held) x.fakeInput(KeyRelease, code);
    try {
      await work();
    } finally {
      for (const code of held) x.fakeInput(KeyPress, code);
    }
  }

  #release(): void {
    const { x } = this.#h;
    for (const b of this.#buttons.keys()) x.fakeInput(ButtonRelease, b);
    for (const code of [...this.#modifiers.values()].reverse()) x.fakeInput(KeyRelease, code);
    this.#buttons.clear();
    this.#modifiers.clear();
  }
}

const SHIFT = modifierKeysym('Shift')!;
