import type { Size, InputEvent } from '../domain/index.js';
import { liveKeyName, liveKeysym } from '../domain/keysyms.js';

/**
 * Input that a desktop and a recording can both take: whole wheel clicks along one axis, keys that exist, places on the
 * screen.
 */
export type TidyEvent =
  | Exclude<InputEvent, { type: 'button' }>
  | (Extract<InputEvent, { type: 'button' }> & { readonly button: 'left' | 'right' });

export const MODIFIER_KEYS: Readonly<Record<string, 'ctrl' | 'shift' | 'alt' | 'super'>> = {
  Control: 'ctrl',
  Shift: 'shift',
  Alt: 'alt',
  Meta: 'super',
  OS: 'super',
  Super: 'super',
};
/** Wheel clicks of one event. */
const MOST_CLICKS = 20;

/**
 * Makes a person's events into those that the policy's actions are made of. What no action can say is left out for the
 * desktop too, so that a recording is what happened: the middle button, dead keys and locks (their characters come
 * composed), fractions of a wheel click until they make a whole one. Keeps what it needs to know from batch to batch.
 */
export class Tidy {
  readonly #screen: Size;
  readonly #rest = { dx: 0, dy: 0 };
  #at = -Infinity;
  #control = false;
  constructor(screen: Size) {
    this.#screen = screen;
  }

  take(events: readonly InputEvent[]): TidyEvent[] {
    return events.flatMap((e) => this.#one(e));
  }

  #one(e: InputEvent): TidyEvent[] {
    // Time never runs back, whatever clock the page has.
    const at = (this.#at = Number.isFinite(e.at) ? Math.max(this.#at, e.at) : Math.max(this.#at, 0));
    switch (e.type) {
      case 'move':
        return [{ type: 'move', at, ...this.#inside(e) }];
      case 'button':
        return e.button === 'middle'
          ? []
          : [{ type: 'button', at, button: e.button, down: e.down, ...this.#inside(e) }];
      case 'wheel': {
        const clicks = (axis: 'dx' | 'dy'): number => {
          const sum =
              this.#rest[axis] +
              (Number.isFinite(e[axis]) ? Math.max(-MOST_CLICKS, Math.min(MOST_CLICKS, e[axis])) : 0),
            whole = Math.trunc(sum);
          this.#rest[axis] = sum - whole;
          return whole;
        };
        const dx = clicks('dx'),
          dy = clicks('dy'),
          p = this.#inside(e);
        return [
          ...(dy ? [{ type: 'wheel' as const, at, dx: 0, dy, ...p }] : []),
          ...(dx ? [{ type: 'wheel' as const, at, dx, dy: 0, ...p }] : []),
        ];
      }
      case 'key': {
        // Some systems report Control as down, too, where AltGr composes a character.
        if (e.key === 'AltGraph') {
          const was = this.#control;
          this.#control = false;
          return e.down && was ? [{ type: 'key', at, key: 'Control', down: false }] : [];
        }
        if (e.key === 'Control') this.#control = e.down;
        const known =
          Object.hasOwn(MODIFIER_KEYS, e.key) ||
          ([...e.key].length === 1 ? printable(e.key) : liveKeyName(e.key) !== undefined);
        return known ? [{ type: 'key', at, key: e.key, down: e.down }] : [];
      }
      case 'text': {
        const text = [...e.text.replace(/\r\n?/g, '\n')]
          .filter((c) => c === '\n' || c === '\t' || printable(c))
          .join('');
        return text === '' ? [] : [{ type: 'text', at, text }];
      }
    }
  }
  #inside(p: { readonly x: number; readonly y: number }): { x: number; y: number } {
    const on = (v: number, n: number): number => Math.min(n - 1, Math.max(0, Number.isFinite(v) ? Math.round(v) : 0));
    return { x: on(p.x, this.#screen.width), y: on(p.y, this.#screen.height) };
  }
}

/** Control characters are keys, not characters. */
const printable = (c: string): boolean => c >= ' ' && c !== '\x7f' && liveKeysym(c, false) !== undefined;
