/**
 * The picture as a screen to work on: mouse, wheel and keyboard become input events of the desktop. The keyboard
 * belongs to the desktop while a text field as small as a point has the focus, so that input methods and dead keys have
 * where to write; Control and Alt together, pressed and let go, give it back, as in viewers of remote desktops.
 */
import type { InputEvent as RemoteInput } from '../../runtime/protocol/types.js';
import { h } from '../ui/dom.js';
import { platformOf, RemoteKeys, type KeyOut } from '../ui/remoteKeys.js';
import { changedButtons, onScreen, WheelClicks, type Rect } from '../ui/remotePoint.js';
import type { Size } from '../ui/viewMath.js';
import { t } from '../ui/words.js';

type Doing = RemoteInput extends infer E ? (E extends RemoteInput ? Omit<E, 'at'> : never) : never;
export interface SurfaceOptions {
  /** The picture's rectangle in the window, and the size of its screen. */
  place(): {
    readonly rect: Rect;
    readonly screen: Size;
  };
  push(e: RemoteInput): void;
  /** Sends queued input now: no frame will come. */
  flush(): void;
  /** The desktop gained or lost the keyboard. */
  captured(on: boolean): void;
  /** Takes a key for the page; true when it did. */
  key(e: KeyboardEvent): boolean;
  /** Whether a move with no button down says anything. */
  hover(): boolean;
}

export class Surface {
  readonly #box: HTMLElement;
  readonly #o: SurfaceOptions;
  readonly #keys = new RemoteKeys(platformOf(navigator.userAgent));
  readonly #wheel = new WheelClicks();
  readonly #sink = h('textarea', {
    class: 'live-sink',
    tabindex: -1,
    hidden: true,
    'aria-label': t('Keyboard of the desktop. Press Control and Alt together to take it back.'),
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    rows: 1,
  });
  #on = false;
  /** Buttons down on the desktop, and those pressed outside it: bits of PointerEvent.buttons. */
  #down = 0;
  #ignored = 0;
  #at = { x: 0, y: 0 };
  /** The last place of the pointer, in fractions of a client pixel, which the wheel's own events do not have. */
  #client = { x: 0, y: 0 };
  #clock = 0;

  constructor(box: HTMLElement, o: SurfaceOptions) {
    this.#box = box;
    this.#o = o;
    box.append(this.#sink);
    for (const t of ['pointerdown', 'pointermove', 'pointerup'] as const)
      box.addEventListener(t, (e) => this.#pointer(e));
    box.addEventListener('pointercancel', () => this.#letGo());
    // Clicking gives the focus to the field alone, opens no menu here and pastes nothing here.
    box.addEventListener('mousedown', (e) => {
      if (this.#on) e.preventDefault();
    });
    for (const t of ['contextmenu', 'auxclick'] as const)
      box.addEventListener(t, (e) => {
        if (this.#on) {
          e.preventDefault();
          e.stopPropagation();
        }
      });
    box.addEventListener('wheel', (e) => this.#scrolled(e), { passive: false });
    this.#sink.addEventListener('keydown', (e) => this.#keyDown(e));
    this.#sink.addEventListener('keyup', (e) => this.#keyUp(e));
    this.#sink.addEventListener('input', (e) => {
      if (!(e as globalThis.InputEvent).isComposing) this.#text(this.#sink.value, e.timeStamp);
    });
    this.#sink.addEventListener('compositionstart', () => this.#sink.classList.add('composing'));
    this.#sink.addEventListener('compositionend', (e) => {
      this.#sink.classList.remove('composing');
      this.#text(e.data, e.timeStamp);
    });
    this.#sink.addEventListener('focus', () => o.captured(true));
    this.#sink.addEventListener('blur', () => {
      this.#letGo();
      o.captured(false);
    });
    addEventListener('blur', () => this.#letGo());
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.#letGo();
    });
  }

  get captured(): boolean {
    return document.activeElement === this.#sink;
  }
  /** Whether a person may act here. */
  enable(on: boolean): void {
    if (on === this.#on) return;
    if (!on) {
      this.#forget();
      if (this.captured) this.#box.focus();
    }
    this.#on = on;
    this.#sink.hidden = !on;
  }
  /** The desktop gets the keyboard. */
  capture(): void {
    if (this.#on) this.#sink.focus({ preventScroll: true });
  }
  /** The keyboard comes back. */
  leave(): void {
    if (this.captured) this.#box.focus();
  }

  #push(e: Doing, stamp: number): void {
    this.#clock = Math.max(this.#clock, Math.round(stamp * 10) / 10);
    this.#o.push({ at: this.#clock, ...e } as RemoteInput);
  }
  #send(keys: readonly KeyOut[], stamp: number): void {
    for (const k of keys) this.#push(k, stamp);
  }
  #text(text: string, stamp: number): void {
    this.#sink.value = '';
    if (text) this.#push({ type: 'text', text: text.replace(/\r\n?/g, '\n') }, stamp);
  }

  #pointer(e: PointerEvent): void {
    if (!this.#on || !e.isPrimary) return;
    const { rect, screen } = this.#o.place(),
      { inside, ...at } = onScreen({ x: e.clientX, y: e.clientY }, rect, screen);
    this.#client = { x: e.clientX, y: e.clientY };
    if (e.type === 'pointerdown') {
      // Moved to where an input method shows its suggestions.
      const box = this.#box.getBoundingClientRect();
      this.#sink.style.setProperty('transform', `translate(${e.clientX - box.left}px, ${e.clientY - box.top}px)`);
      this.capture();
    }
    const changed = changedButtons(this.#down | this.#ignored, e.buttons),
      moved = at.x !== this.#at.x || at.y !== this.#at.y;
    if (this.#down !== 0 || inside) {
      this.#at = at;
      if (moved && (this.#down !== 0 || (changed.length === 0 && this.#o.hover())))
        this.#push({ type: 'move', ...at }, e.timeStamp);
    }
    for (const { button, down } of changed) {
      const bit = { left: 1, right: 2, middle: 4 }[button];
      if (!down) {
        if (this.#down & bit) {
          this.#down &= ~bit;
          this.#push({ type: 'button', button, down, ...at }, e.timeStamp);
        }
        this.#ignored &= ~bit;
        continue;
      }
      if (!inside && this.#down === 0) {
        this.#ignored |= bit;
        continue;
      }
      if (this.#down === 0) this.#box.setPointerCapture(e.pointerId);
      this.#send(this.#keys.used(), e.timeStamp);
      this.#down |= bit;
      this.#push({ type: 'button', button, down, ...at }, e.timeStamp);
    }
  }
  #scrolled(e: WheelEvent): void {
    if (!this.#on) return;
    e.preventDefault();
    const there =
      Math.abs(e.clientX - this.#client.x) < 1 && Math.abs(e.clientY - this.#client.y) < 1
        ? this.#client
        : { x: e.clientX, y: e.clientY };
    const { rect, screen } = this.#o.place(),
      { inside, ...at } = onScreen(there, rect, screen),
      clicks = inside ? this.#wheel.take(e) : undefined;
    if (!clicks) return;
    this.#at = at;
    this.#send(this.#keys.used(), e.timeStamp);
    this.#push({ type: 'wheel', ...clicks, ...at }, e.timeStamp);
  }

  /** Keeps the event from the page and from VS Code, whose shortcuts would act too. */
  #keyDown(e: KeyboardEvent): void {
    e.stopPropagation();
    if (!this.#on) return;
    if (!e.isComposing && this.#o.key(e)) {
      e.preventDefault();
      return;
    }
    const { out, handled } = this.#keys.down({
      key: e.key,
      code: e.code,
      composing: e.isComposing || e.keyCode === 229,
      repeat: e.repeat,
    });
    if (handled) e.preventDefault();
    this.#send(out, e.timeStamp);
  }
  #keyUp(e: KeyboardEvent): void {
    e.stopPropagation();
    const { out, leave } = this.#keys.up(e);
    e.preventDefault();
    this.#send(out, e.timeStamp);
    if (leave) this.leave();
  }

  /** Lets go of everything that is down on the desktop. */
  #letGo(): void {
    if (!this.#on) return;
    const now = performance.now(),
      buttons = changedButtons(this.#down, 0);
    for (const { button } of buttons) this.#push({ type: 'button', button, down: false, ...this.#at }, now);
    const keys = this.#keys.release();
    this.#send(keys, now);
    this.#ignored |= this.#down;
    this.#down = 0;
    if (buttons.length || keys.length || document.hidden) this.#o.flush();
  }
  /** The desktop is no longer controlled from here: nothing is sent. */
  #forget(): void {
    this.#keys.release();
    this.#ignored |= this.#down;
    this.#down = 0;
    this.#sink.value = '';
  }
}
