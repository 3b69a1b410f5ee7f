import type { Size } from '../../../domain/index.js';
import { liveKeyName } from '../../../domain/keysyms.js';
import { keyName } from '../../../domain/pyautogui/write.js';
import type { DesktopInput } from '../../types.js';
import { typed } from './program.js';

/** Modifiers by their KeyboardEvent.key, as pyautogui calls them. */
const MODIFIERS: ReadonlyMap<string, string> = new Map([
  ['Control', 'ctrl'],
  ['Shift', 'shift'],
  ['Alt', 'alt'],
  ['Meta', 'win'],
  ['OS', 'win'],
  ['Super', 'win'],
]);
/** Wheel clicks of one event. */
const MOST_CLICKS = 20;

/** Turns a person's input into lines of pyautogui. It knows what is held down, as long as nothing else acts. */
export class LiveProgram {
  readonly #screen: Size;
  readonly #keys = new Set<string>();
  readonly #buttons = new Set<string>();

  constructor(screen: Size) {
    this.#screen = screen;
  }

  /** Called for another desktop, on which nothing is held down. */
  forget(): void {
    this.#keys.clear();
    this.#buttons.clear();
  }

  lines(events: readonly DesktopInput[]): string[] {
    return events.flatMap((e, i) => {
      // Only the last of several moves in a row counts.
      if (e.type === 'move' && events[i + 1]?.type === 'move') return [];
      return this.#event(e);
    });
  }

  #event(e: DesktopInput): string[] {
    switch (e.type) {
      case 'move':
        return [`pyautogui.moveTo(${this.#at(e)})`];
      case 'button':
        return this.#button(e);
      case 'wheel':
        return this.#without(
          [...this.#keys],
          [...wheel('scroll', -e.dy, this.#at(e)), ...wheel('hscroll', e.dx, this.#at(e))],
        );
      case 'key':
        return this.#key(e.key, e.down);
      case 'text':
        return this.#without([...this.#keys], [typed(e.text, this.#screen)]);
      case 'release':
        return this.#release();
    }
  }

  #at(p: { readonly x: number; readonly y: number }): string {
    const inside = (v: number, size: number): number => Math.min(Math.max(Math.round(v), 0), size - 1);
    return `x=${inside(p.x, this.#screen.width)}, y=${inside(p.y, this.#screen.height)}`;
  }
  #button(e: Extract<DesktopInput, { type: 'button' }>): string[] {
    if (e.down === this.#buttons.has(e.button)) return [`pyautogui.moveTo(${this.#at(e)})`];
    if (e.down) this.#buttons.add(e.button);
    else this.#buttons.delete(e.button);
    return [`pyautogui.mouse${e.down ? 'Down' : 'Up'}(${this.#at(e)}, button='${e.button}')`];
  }
  #key(key: string, down: boolean): string[] {
    const modifier = MODIFIERS.get(key);
    if (modifier !== undefined) {
      if (down === this.#keys.has(modifier)) return [];
      if (down) this.#keys.add(modifier);
      else this.#keys.delete(modifier);
      return [`pyautogui.key${down ? 'Down' : 'Up'}('${modifier}')`];
    }
    if (!down) return [];
    if ([...key].length > 1) {
      const name = liveKeyName(key);
      return name === undefined ? [] : [`pyautogui.press(${keyName(name)})`];
    }
    // In a chord a letter stands for its key; outside one, the person's keyboard has applied shift already.
    const chord = [...this.#keys].some((k) => k !== 'shift');
    if (chord || key === ' ') return [`pyautogui.press(${keyName(key === ' ' ? 'space' : key.toLowerCase())})`];
    return this.#without(this.#keys.has('shift') ? ['shift'] : [], [typed(key, this.#screen)]);
  }
  #without(held: readonly string[], lines: readonly string[]): string[] {
    return [...held.map((k) => `pyautogui.keyUp('${k}')`), ...lines, ...held.map((k) => `pyautogui.keyDown('${k}')`)];
  }
  #release(): string[] {
    const lines = [
      ...[...this.#buttons].map((b) => `pyautogui.mouseUp(button='${b}')`),
      ...[...this.#keys].reverse().map((k) => `pyautogui.keyUp('${k}')`),
    ];
    this.forget();
    return lines;
  }
}

function wheel(name: 'scroll' | 'hscroll', clicks: number, at: string): string[] {
  const n = Math.max(-MOST_CLICKS, Math.min(MOST_CLICKS, Math.round(clicks)));
  return n === 0 ? [] : [`pyautogui.${name}(${n}, ${at})`];
}
