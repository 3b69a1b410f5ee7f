import type { Action, Modifier, Point, ScrollDirection, Size } from '../domain/index.js';
import { counted } from '../domain/counted.js';
import { canonicalKey } from '../domain/keys.js';
import { parseCalls } from '../domain/pyautogui/python.js';
import type { Literal, PyCall } from '../domain/pyautogui/python.js';
import {
  aliases,
  clickFunctions,
  clicks,
  ignored,
  keyNames,
  modifiers,
  signatures,
  type ClickType,
} from '../domain/pyautogui/words.js';
import type { CodeSpace } from '../domain/pyautogui/write.js';
import { Unusable, limits } from './types.js';

/**
 * Reads the code of one trajectory, step after step. It knows where the pointer is, since `click()` and `scroll(-5)`
 * mean that place. What our actions cannot say (hovering, middle and triple clicks, keys left down) is refused, never
 * approximated.
 */
export class CodeReader {
  readonly #space: CodeSpace;
  #pointer: Point | undefined;
  constructor(space: CodeSpace) {
    this.#space = space;
  }

  /** Actions of one step on a screen of this size. Throws Unusable naming what cannot be said. */
  read(code: string, screen: Size): Action[] {
    return this.calls(parseCalls(code), screen);
  }

  calls(calls: readonly PyCall[], screen: Size): Action[] {
    const s = new Script(this.#space, screen, this.#pointer);
    for (const c of calls) s.call(c);
    const actions = s.end();
    this.#pointer = s.pointer;
    return actions;
  }
}

const clickTypes = Object.keys(clicks) as readonly ClickType[];

/** Arguments of a call by the names of its parameters. */
type Arguments = Record<string, Literal>;

/** The calls of one step. */
class Script {
  pointer: Point | undefined;
  readonly #out: Action[] = [];
  /** Keys held down, in order, and whether something was done with them. */
  #held: { key: string; used: boolean }[] = [];
  /** Set while the left button is down. */
  #pressed: { from: Point; stops: Point[] } | undefined;
  /** A place moved to with nothing done there yet. */
  #hover: Point | undefined;
  #clipboard: string | undefined;
  readonly #space: CodeSpace;
  readonly #screen: Size;
  constructor(space: CodeSpace, screen: Size, pointer: Point | undefined) {
    this.#space = space;
    this.#screen = screen;
    this.pointer = pointer;
  }

  end(): Action[] {
    if (this.#hover)
      throw new Unusable(
        'the pointer is moved somewhere and nothing is done there (hovering); there is no such action here',
      );
    if (this.#pressed) throw new Unusable('a mouse button stays down after the step');
    if (this.#held.length > 0) throw new Unusable(`the key ${this.#held[0]!.key} stays down after the step`);
    return this.#out;
  }

  call(c: PyCall): void {
    const name = aliases.get(c.name) ?? c.name;
    if (name === 'pyautogui.hotkey') {
      this.#hotkey(
        this.#keys(c.args.length === 1 && Array.isArray(c.args[0]) ? (c.args[0] as readonly Literal[]) : c.args),
      );
      return;
    }
    const params = signatures.get(name);
    if (!params) throw new Unusable(`there is no action here for ${c.name}`);
    const a = this.#bind(c, params);
    Script.#calls.get(name)?.(this, a);
  }

  /** Effect of each call; the names are those of `signatures`. */
  static readonly #calls: ReadonlyMap<string, (s: Script, a: Arguments) => void> = new Map(
    Object.entries<(s: Script, a: Arguments) => void>({
      ...Object.fromEntries(
        Object.entries(clickFunctions).map(([name, f]) => [
          name,
          (s: Script, a: Arguments): void => {
            s.#click(a, number(a, 'clicks') ?? f.count, f.button ?? button(a));
          },
        ]),
      ),
      'pyautogui.moveTo': (s, a) => s.#move(s.#place(a) ?? s.#here()),
      'pyautogui.move': (s, a) => s.#move(s.#offset(a)),
      'pyautogui.dragTo': (s, a) => s.#drag(s.#place(a) ?? s.#here(), button(a)),
      'pyautogui.drag': (s, a) => s.#drag(s.#offset(a), button(a)),
      'pyautogui.mouseDown': (s, a) => s.#down(a),
      'pyautogui.mouseUp': (s, a) => s.#up(a),
      'pyautogui.scroll': (s, a) => s.#scroll(a, 'up', 'down'),
      'pyautogui.hscroll': (s, a) => s.#scroll(a, 'right', 'left'),
      'pyautogui.write': (s, a) => s.#write(a['message']),
      'pyautogui.press': (s, a) => s.#press(a),
      'pyautogui.keyDown': (s, a) => s.#hold(key(a['key'])),
      'pyautogui.keyUp': (s, a) => s.#release(key(a['key'])),
      'pyautogui.sleep': (s, a) => s.#wait(number(a, 'seconds'), false),
      'time.sleep': (s, a) => s.#wait(number(a, 'seconds'), false),
      'pyperclip.copy': (s, a) => (s.#clipboard = text(a['text'])),
      'computer.wait': (s, a) => s.#wait(number(a, 'seconds'), true),
      'computer.terminate': (s, a) => s.#terminate(a),
    }),
  );

  #bind(c: PyCall, params: readonly string[]): Arguments {
    let args = c.args;
    // A pair may stand for x and y.
    if (params[0] === 'x' && Array.isArray(args[0])) args = [...(args[0] as readonly Literal[]), ...args.slice(1)];
    if (args.length > params.length) throw new Unusable(`${c.name} has more arguments than it takes`);
    const out: Arguments = Object.fromEntries(args.map((v, i) => [params[i]!, v]));
    for (const [k, v] of Object.entries(c.named)) {
      if (Object.hasOwn(out, k) || (!params.includes(k) && !ignored.includes(k)))
        throw new Unusable(`${c.name} has an unknown argument ${k}`);
      out[k] = v;
    }
    return out;
  }

  #place(a: Arguments): Point | undefined {
    const x = number(a, 'x'),
      y = number(a, 'y');
    if (x === undefined && y === undefined) return undefined;
    const at = (v: number | undefined, size: number, here: 'x' | 'y'): number => {
      if (v === undefined) return this.#here()[here];
      if (this.#space === 'relative' && (v < 0 || v > 1))
        throw new Unusable(`the coordinate ${v} is not a share of the screen (0 to 1)`);
      // Places outside the screen are moved to its edge, as a pointer would be.
      return Math.min(Math.max(Math.round(this.#space === 'relative' ? v * size : v), 0), size - 1);
    };
    return { x: at(x, this.#screen.width, 'x'), y: at(y, this.#screen.height, 'y') };
  }
  #offset(a: Arguments): Point {
    if (this.#space === 'relative') throw new Unusable('a move by an offset has no meaning in relative coordinates');
    const here = this.#here(),
      clamp = (v: number, size: number): number => Math.min(Math.max(Math.round(v), 0), size - 1);
    return {
      x: clamp(here.x + (number(a, 'xOffset') ?? 0), this.#screen.width),
      y: clamp(here.y + (number(a, 'yOffset') ?? 0), this.#screen.height),
    };
  }
  #here(): Point {
    if (!this.pointer)
      throw new Unusable('the code acts where the pointer is, and nothing before it says where that is');
    return this.pointer;
  }
  /** Place of an action; a place moved to before must be the same one. */
  #arrive(a: Arguments): Point {
    const at = this.#place(a) ?? this.#here();
    if (this.#hover && (this.#hover.x !== at.x || this.#hover.y !== at.y)) this.end();
    this.#hover = undefined;
    this.pointer = at;
    return at;
  }
  #apart(): void {
    if (this.#hover || this.#pressed) this.end();
  }

  #add(action: Action): void {
    this.#clipboard = undefined;
    if (this.#out.length >= limits.actions) throw new Unusable(`a step has more than ${limits.actions} actions`);
    this.#out.push(action);
  }
  /** Modifiers held around a pointer action. */
  #with(): { modifiers?: Modifier[] } {
    if (this.#held.length === 0) return {};
    const other = this.#held.find((h) => !modifiers.includes(h.key));
    if (other)
      throw new Unusable(
        `the key ${other.key} is held during a pointer action; only ctrl, shift, alt and super can be`,
      );
    for (const h of this.#held) h.used = true;
    return { modifiers: this.#held.map((h) => h.key as Modifier) };
  }

  #click(a: Arguments, count: number, which: string): void {
    if (this.#pressed) this.end();
    const at = this.#arrive(a),
      type = clickTypes.find((t) => clicks[t].button === which && clicks[t].count === count);
    if (!type) throw new Unusable(`there is no action here for ${counted(count, 'click')} of the ${which} button`);
    this.#add({ type, at, ...this.#with() });
  }
  #move(to: Point): void {
    if (this.#pressed) this.#pressed.stops.push(to);
    else if (this.#hover && (this.#hover.x !== to.x || this.#hover.y !== to.y)) this.end();
    else this.#hover = to;
    this.pointer = to;
  }
  #drag(to: Point, which: string): void {
    if (which !== 'left' || this.#pressed)
      throw new Unusable(`there is no action here for a drag with the ${which} button`);
    const from = this.#hover ?? this.#here();
    this.#hover = undefined;
    this.pointer = to;
    this.#add({ type: 'drag', from, to, ...this.#with() });
  }
  #down(a: Arguments): void {
    if (this.#pressed || button(a) !== 'left')
      throw new Unusable(`there is no action here for holding the ${button(a)} button`);
    this.#pressed = { from: this.#arrive(a), stops: [] };
  }
  #up(a: Arguments): void {
    const p = this.#pressed,
      at = this.#place(a);
    if (!p || button(a) !== 'left')
      throw new Unusable('a mouse button is released that was not pressed in the same step');
    if (at) {
      p.stops.push(at);
      this.pointer = at;
    }
    this.#pressed = undefined;
    const stops = p.stops.filter((s, i) => {
      const b = p.stops[i - 1] ?? p.from;
      return s.x !== b.x || s.y !== b.y;
    });
    if (stops.length > 1) throw new Unusable('a drag along a path; only straight ones can be said');
    if (stops[0]) this.#add({ type: 'drag', from: p.from, to: stops[0], ...this.#with() });
    else this.#add({ type: 'click', at: p.from, ...this.#with() });
  }

  #scroll(a: Arguments, plus: ScrollDirection, minus: ScrollDirection): void {
    const n = number(a, 'clicks') ?? 0;
    if (!Number.isInteger(n) || Math.abs(n) > 2000) throw new Unusable(`a scroll by ${n} wheel clicks`);
    const at = this.#arrive(a),
      held = this.#with();
    if (held.modifiers) throw new Unusable('a scroll with a key held');
    // Our scroll takes at most 20 clicks.
    for (let left = Math.abs(n); left > 0; left -= 20)
      this.#add({ type: 'scroll', at, direction: n > 0 ? plus : minus, amount: Math.min(20, left) });
  }

  #write(message: Literal | undefined): void {
    this.#apart();
    if (Array.isArray(message)) {
      for (const k of message as readonly Literal[]) this.#chord([key(k)]);
      return;
    }
    if (this.#held.length > 0) throw new Unusable('a text is typed with a key held');
    const t = text(message);
    if (t.length > limits.text) throw new Unusable(`a text of ${t.length} characters is typed`);
    if (t !== '') this.#add({ type: 'type', text: t });
  }
  #press(a: Arguments): void {
    const keys = Array.isArray(a['keys']) ? (a['keys'] as readonly Literal[]) : [a['keys'] ?? null],
      presses = number(a, 'presses') ?? 1;
    if (keys.length === 0) throw new Unusable('a press without keys');
    if (!Number.isInteger(presses) || presses < 0) throw new Unusable(`a key is pressed ${presses} times`);
    if (presses * keys.length > limits.actions)
      throw new Unusable(`keys are pressed ${presses * keys.length} times; at most ${limits.actions} are read`);
    for (let i = 0; i < presses; i++)
      for (const k of keys) this.#chord(typeof k === 'string' && /^[A-Z]$/.test(k) ? ['shift', key(k)] : [key(k)]);
  }
  #hotkey(keys: string[]): void {
    if (keys.length === 0) throw new Unusable('a hotkey without keys');
    // How UI-TARS's agents type: through the clipboard.
    if (
      this.#clipboard !== undefined &&
      keys.length >= 2 &&
      keys.at(-1) === 'v' &&
      keys.slice(0, -1).every((k) => k === 'ctrl' || k === 'shift' || k === 'super') &&
      this.#held.length === 0
    ) {
      const t = this.#clipboard;
      this.#clipboard = undefined;
      this.#write(t);
      return;
    }
    this.#chord(keys);
  }
  #chord(keys: string[]): void {
    this.#apart();
    for (const h of this.#held) h.used = true;
    this.#add({ type: 'hotkey', keys: [...this.#held.map((h) => h.key), ...keys] });
  }
  #hold(k: string): void {
    if (this.#held.length >= limits.actions) throw new Unusable(`more than ${limits.actions} keys are held`);
    this.#held.push({ key: k, used: false });
  }
  #release(k: string): void {
    const i = this.#held.findIndex((h) => h.key === k),
      h = this.#held[i];
    if (!h) throw new Unusable(`the key ${k} is released that was not pressed in the same step`);
    // Keys that went down and up with nothing between them were one chord.
    const all = this.#held;
    this.#held = all.filter((_, j) => j !== i);
    if (h.used) return;
    this.#apart();
    this.#add({ type: 'hotkey', keys: all.map((x) => x.key) });
    for (const x of all) x.used = true;
  }
  #keys(ks: readonly Literal[]): string[] {
    return ks.map(key);
  }

  #wait(seconds: number | undefined, plain: boolean): void {
    if (seconds === undefined && !plain) throw new Unusable('a sleep without its length');
    if (seconds !== undefined && (seconds < 0 || seconds > 60))
      throw new Unusable(`a wait of ${seconds} seconds; at most 60 can be said`);
    // The clipboard keeps what was copied into it.
    const clipboard = this.#clipboard;
    this.#add({ type: 'wait', ms: seconds === undefined ? undefined : Math.round(seconds * 1000) });
    this.#clipboard = clipboard;
  }
  #terminate(a: Arguments): void {
    this.#apart();
    const status = text(a['status'] ?? 'success'),
      said = typeof a['answer'] === 'string' && a['answer'] !== '' ? a['answer'] : undefined;
    if (status === 'success') this.#add({ type: 'finished', answer: said });
    else if (/^fail(ure)?$/.test(status)) this.#add({ type: 'fail', reason: said });
    else throw new Unusable(`the status '${status.slice(0, 40)}' of computer.terminate`);
  }
}

function number(a: Arguments, name: string): number | undefined {
  const v = a[name];
  if (v === undefined || v === null) return undefined;
  if (typeof v !== 'number') throw new Unusable(`${name} is not a number`);
  return v;
}
function text(v: Literal | undefined): string {
  if (typeof v !== 'string') throw new Unusable('a text is missing where one is needed');
  return v;
}
function button(a: Arguments): string {
  const b = a['button'] ?? 'left';
  if (typeof b !== 'string') throw new Unusable('button is not a name');
  return b === 'primary' ? 'left' : b === 'secondary' ? 'right' : b;
}
function key(v: Literal | undefined): string {
  if (typeof v !== 'string' || v === '' || v.length > 24) throw new Unusable('a key is missing, or not a key');
  const k = canonicalKey(v);
  return Object.hasOwn(keyNames, k) ? keyNames[k]! : k;
}
