import type { Point, Size } from '../domain/index.js';
import type { DesktopInput } from '../cluster/types.js';
import { liveKeyName, modifierKeysym } from '../domain/keysyms.js';
import { canonicalKey } from '../domain/keys.js';
import { parseCalls, type Literal, type PyCall } from '../domain/pyautogui/python.js';
import { aliases, clickFunctions, keyNames, signatures } from '../domain/pyautogui/words.js';

/** One operation of a program: input events, or a pause that the code asks for. */
export type Op =
  | { readonly kind: 'input'; readonly events: readonly DesktopInput[] }
  | { readonly kind: 'sleep'; readonly ms: number };

export interface Program {
  readonly ops: readonly Op[];
  /** Place of the pointer at the end; undefined where that is not known. */
  readonly pointer: Point | undefined;
}

/** Modifiers that are down, as KeyboardEvent.key. */
export type Held = ReadonlySet<string>;
export const NOTHING_HELD: Held = new Set();

/** Longest pause in all and most events, beyond which the code is left to a real Python. */
const MOST_MS = 110_000,
  MOST_EVENTS = 5_000;
/** Moves between the ends of a drag: applications begin to drag after the first few. */
const DRAG_MOVES = 8;

/** How a move is spread over its time: OSWorld's controller draws one for each move. Here all moves are at once. */
const TWEEN = /\bpyautogui\.(?:linear|ease\w{1,20})(?=\s*[,)])/g;

export interface ProgramOptions {
  /** A pause after each call, as pyautogui makes one, ms; none where nothing looks between two calls. */
  readonly pauseMs?: number;
  /** Modifiers that programs before it left down. */
  readonly held?: Held;
}

/** The code says something that input events cannot do. */
class NotPlain extends Error {}
/** The code acts where the pointer is, and nothing says where that is. */
class PointerUnknown extends Error {}

/**
 * Reads `import pyautogui; …` as input events, so that an action costs no Python start. Undefined when it holds anything
 * else than pyautogui calls with plain values: such code is run as it is. 'pointer': it acts where the pointer is, which
 * has to be asked first.
 */
export function programOf(
  code: string,
  screen: Size,
  pointer: Point | undefined,
  { pauseMs = 0, held = NOTHING_HELD }: ProgramOptions = {},
): Program | 'pointer' | undefined {
  // Real screenshots, questions and the like are answered by a real Python.
  const calls = code.includes('pyautogui') ? callsOf(code) : undefined;
  if (!calls) return undefined;
  try {
    const compiler = new Compiler(screen, pointer, held);
    for (const c of calls) {
      compiler.call(c);
      if (pauseMs > 0 && !/sleep$/.test(c.name)) compiler.pause(pauseMs);
    }
    return compiler.end();
  } catch (e) {
    if (e instanceof NotPlain) return undefined;
    if (e instanceof PointerUnknown) return 'pointer';
    throw e;
  }
}

/** The calls that the code is; undefined where it is more. */
function callsOf(code: string): readonly PyCall[] | undefined {
  try {
    return parseCalls(code.replace(TWEEN, 'None'));
  } catch {
    return undefined;
  }
}

/** The modifiers that are down after these events. */
export function heldAfter(held: Held, events: readonly DesktopInput[]): Held {
  const down = new Set(held);
  for (const e of events) {
    if (e.type !== 'key' || modifierKeysym(e.key) === undefined) continue;
    if (e.down) down.add(e.key);
    else down.delete(e.key);
  }
  return down;
}

/** What a real Python does to modifiers as it runs the code, as events; none where the code is more than calls. */
export const modifiersOf = (code: string): DesktopInput[] =>
  (callsOf(code) ?? []).flatMap(({ name, args, named }): DesktopInput[] => {
    const down = name === 'pyautogui.keyDown';
    if (!down && name !== 'pyautogui.keyUp') return [];
    const key = keyOf(args[0] ?? named['key']);
    return key !== undefined && modifierKeysym(key) !== undefined ? [{ type: 'key', key, down }] : [];
  });

type Arguments = Readonly<Record<string, Literal | undefined>>;
type Button = 'left' | 'middle' | 'right';

const BUTTONS: Readonly<Record<string, Button>> = {
  left: 'left',
  primary: 'left',
  middle: 'middle',
  right: 'right',
  secondary: 'right',
};
const MORE_CLICKS: Readonly<Record<string, { readonly count: number; readonly button: Button | undefined }>> = {
  'pyautogui.middleClick': { count: 1, button: 'middle' },
  'pyautogui.tripleClick': { count: 3, button: undefined },
};
const CLICK_PARAMETERS = ['x', 'y', 'interval', 'button', 'duration'];
/** pyautogui's canonical key names as KeyboardEvent.key. */
const DOM_KEYS: Readonly<Record<string, string>> = {
  ctrl: 'Control',
  shift: 'Shift',
  alt: 'Alt',
  super: 'Meta',
  enter: 'Enter',
  escape: 'Escape',
  space: ' ',
  up: 'ArrowUp',
  down: 'ArrowDown',
  left: 'ArrowLeft',
  right: 'ArrowRight',
  pageup: 'PageUp',
  pagedown: 'PageDown',
  menu: 'ContextMenu',
  printscreen: 'PrintScreen',
};

/** Characters that keys of a US keyboard give with shift, letters left out. */
const UPPER: ReadonlyMap<string, string> = new Map(
  [..."`1234567890-=[]\\;',./"].map((k, i) => [k, '~!@#$%^&*()_+{}|:"<>?'[i]!]),
);

/** The other characters that keys give without it. */
const UNSHIFTED = /^[a-z \n\t]$/;

class Compiler {
  readonly #screen: Size;
  #pointer: Point | undefined;
  readonly #ops: Op[] = [];
  #events: DesktopInput[] = [];
  #count = 0;
  #ms = 0;
  /** Text that was copied and not pasted yet. */
  #copied: string | undefined;
  /** Modifiers that are down. */
  readonly #held: Set<string>;
  /** A key that went down and has no modifier's meaning; only its own release may follow. */
  #tapped: string | undefined;

  constructor(screen: Size, pointer: Point | undefined, held: Held) {
    this.#screen = screen;
    this.#pointer = pointer;
    this.#held = new Set(held);
  }

  end(): Program {
    if (this.#tapped !== undefined || this.#copied !== undefined) throw new NotPlain();
    this.#flush();
    return { ops: this.#ops, pointer: this.#pointer };
  }

  call(c: PyCall): void {
    const name = aliases.get(c.name) ?? c.name;
    if (this.#tapped !== undefined && name !== 'pyautogui.keyUp') throw new NotPlain();
    const click = [clickFunctions, MORE_CLICKS].find((all) => Object.hasOwn(all, name))?.[name];
    if (name === 'pyautogui.hotkey') {
      this.#hotkey(c);
      return;
    }
    const a = bind(c, signatures.get(name) ?? (click ? CLICK_PARAMETERS : undefined));
    if (click) {
      this.#click(a, count(a['clicks'], click.count), BUTTONS[click.button ?? ''] ?? buttonOf(a));
      return;
    }
    const run = Compiler.#calls.get(name);
    if (!run) throw new NotPlain();
    run(this, a);
  }

  /** Adds a pause, but not while a key is down or a copy waits for its paste: their ends follow at once. */
  pause(ms: number): void {
    if (this.#tapped !== undefined || this.#copied !== undefined) return;
    this.#flush();
    this.#ops.push({ kind: 'sleep', ms });
  }

  static readonly #calls: ReadonlyMap<string, (s: Compiler, a: Arguments) => void> = new Map(
    Object.entries<(s: Compiler, a: Arguments) => void>({
      'pyperclip.copy': (s, a) => s.#copy(a['text']),
      'pyautogui.moveTo': (s, a) => s.#move(s.#at(a)),
      'pyautogui.move': (s, a) => s.#move(s.#offset(a)),
      'pyautogui.dragTo': (s, a) => s.#drag(s.#at(a), buttonOf(a)),
      'pyautogui.drag': (s, a) => s.#drag(s.#offset(a), buttonOf(a)),
      'pyautogui.mouseDown': (s, a) => s.#button(s.#at(a), buttonOf(a), true),
      'pyautogui.mouseUp': (s, a) => s.#button(s.#at(a), buttonOf(a), false),
      'pyautogui.scroll': (s, a) => s.#wheel(a, (n) => ({ dx: 0, dy: -n })),
      'pyautogui.hscroll': (s, a) => s.#wheel(a, (n) => ({ dx: n, dy: 0 })),
      'pyautogui.write': (s, a) => s.#write(a['message']),
      'pyautogui.press': (s, a) => s.#press(a),
      'pyautogui.keyDown': (s, a) => s.#keyDown(domKey(a['key'])),
      'pyautogui.keyUp': (s, a) => s.#keyUp(domKey(a['key'])),
      'pyautogui.sleep': (s, a) => s.#sleep(a['seconds']),
      'time.sleep': (s, a) => s.#sleep(a['seconds']),
    }),
  );

  #push(...events: DesktopInput[]): void {
    this.#count += events.length;
    if (this.#count > MOST_EVENTS) throw new NotPlain();
    this.#events.push(...events.map((e) => (e.type === 'key' ? this.#shifted(e) : e)));
  }
  /** pyautogui presses keys: with shift held alone a key means its upper character, as on a US keyboard. */
  #shifted(e: Extract<DesktopInput, { type: 'key' }>): DesktopInput {
    if (modifierKeysym(e.key) !== undefined) {
      if (e.down) this.#held.add(e.key);
      else this.#held.delete(e.key);
      return e;
    }
    const alone = this.#held.size === 1 && this.#held.has('Shift');
    return alone && [...e.key].length === 1 ? { ...e, key: UPPER.get(e.key) ?? e.key.toUpperCase() } : e;
  }
  #flush(): void {
    if (this.#events.length > 0) this.#ops.push({ kind: 'input', events: this.#events });
    this.#events = [];
  }

  #here(): Point {
    if (!this.#pointer) throw new PointerUnknown();
    return this.#pointer;
  }
  #inside(x: number, y: number): Point {
    const clamp = (v: number, size: number): number => Math.min(Math.max(Math.trunc(v), 0), size - 1);
    return { x: clamp(x, this.#screen.width), y: clamp(y, this.#screen.height) };
  }
  /** Place of a call's action; without coordinates, where the pointer is. */
  #at(a: Arguments): Point {
    const x = optionalNumber(a['x']),
      y = optionalNumber(a['y']);
    if (x !== undefined && y !== undefined) return this.#inside(x, y);
    const here = this.#here();
    return this.#inside(x ?? here.x, y ?? here.y);
  }
  #offset(a: Arguments): Point {
    const here = this.#here();
    return this.#inside(here.x + (optionalNumber(a['xOffset']) ?? 0), here.y + (optionalNumber(a['yOffset']) ?? 0));
  }

  #move(to: Point): void {
    this.#push({ type: 'move', ...to });
    this.#pointer = to;
  }
  #button(at: Point, button: Button, down: boolean): void {
    this.#push({ type: 'button', button, down, ...at });
    this.#pointer = at;
  }
  #click(a: Arguments, clicks: number, button: Button): void {
    const at = this.#at(a);
    this.#move(at);
    for (let i = 0; i < clicks; i++) {
      this.#button(at, button, true);
      this.#button(at, button, false);
    }
  }
  #drag(to: Point, button: Button): void {
    const from = this.#here();
    this.#button(from, button, true);
    for (let i = 1; i <= DRAG_MOVES; i++) {
      const share = i / DRAG_MOVES;
      this.#move(this.#inside(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share));
    }
    this.#button(to, button, false);
  }
  #wheel(a: Arguments, of: (n: number) => { readonly dx: number; readonly dy: number }): void {
    const n = Math.trunc(requiredNumber(a['clicks']));
    // A wheel event comes without the modifiers that are held, which give it another meaning: with ctrl it zooms.
    if (Math.abs(n) > 1_000 || this.#held.size > 0) throw new NotPlain();
    const at = this.#at(a);
    // One event turns at most 40 clicks.
    for (let left = Math.abs(n); left > 0; left -= 40)
      this.#push({ type: 'wheel', ...of(Math.sign(n) * Math.min(40, left)), ...at });
    this.#pointer = at;
  }

  #write(message: Literal | undefined): void {
    if (Array.isArray(message)) {
      for (const k of message as readonly Literal[]) this.#tap(domKey(k));
      return;
    }
    if (typeof message !== 'string') throw new NotPlain();
    if (this.#held.size > 0) this.#typeHeld(message);
    else if (message !== '') this.#push({ type: 'text', text: message });
  }
  /** A text event comes without the modifiers that are held; pyautogui presses the text's keys, which they apply to. */
  #typeHeld(text: string): void {
    // Shift that pyautogui presses for a character is up after it, whoever holds it.
    if ([...text].some((c) => !UNSHIFTED.test(c) && !UPPER.has(c))) throw new NotPlain();
    for (const c of text) this.#tap(domKey(c));
  }
  #copy(text: Literal | undefined): void {
    if (typeof text !== 'string' || this.#copied !== undefined) throw new NotPlain();
    this.#copied = text;
  }
  #press(a: Arguments): void {
    const keys = Array.isArray(a['keys']) ? (a['keys'] as readonly Literal[]) : [a['keys']];
    for (let i = count(a['presses'], 1); i > 0; i--) for (const k of keys) this.#tap(domKey(k));
  }
  #tap(key: string): void {
    this.#push({ type: 'key', key, down: true }, { type: 'key', key, down: false });
  }
  #hotkey(c: PyCall): void {
    const one = c.args[0],
      keys = (c.args.length === 1 && Array.isArray(one) ? (one as readonly Literal[]) : c.args).map(domKey);
    if (keys.length === 0) throw new NotPlain();
    // Copied and pasted at once: how agents type what a keyboard has no key for.
    if (this.#copied !== undefined) {
      if (keys.join('+') !== 'Control+v' || this.#held.size > 0) throw new NotPlain();
      if (this.#copied !== '') this.#push({ type: 'text', text: this.#copied });
      this.#copied = undefined;
      return;
    }
    for (const key of keys) this.#push({ type: 'key', key, down: true });
    for (const key of keys.toReversed()) this.#push({ type: 'key', key, down: false });
  }
  /** Presses a key. Only modifiers stay down: any other key must be released by the next call. */
  #keyDown(key: string): void {
    this.#push({ type: 'key', key, down: true });
    if (modifierKeysym(key) === undefined) this.#tapped = key;
  }
  /** What a real Python pressed, it has to release: nothing is known of that here. */
  #keyUp(key: string): void {
    if (this.#tapped === undefined ? !this.#held.has(key) : this.#tapped !== key) throw new NotPlain();
    this.#tapped = undefined;
    this.#push({ type: 'key', key, down: false });
  }
  #sleep(seconds: Literal | undefined): void {
    const ms = requiredNumber(seconds) * 1000;
    this.#ms += ms;
    if (!(ms >= 0) || this.#ms > MOST_MS) throw new NotPlain();
    this.#flush();
    this.#ops.push({ kind: 'sleep', ms });
  }
}

/** Arguments by the names of their parameters; those that say only how fast are dropped by whoever reads none. */
function bind(c: PyCall, parameters: readonly string[] | undefined): Arguments {
  if (!parameters) throw new NotPlain();
  let args = c.args;
  if (parameters[0] === 'x' && Array.isArray(args[0])) args = [...(args[0] as readonly Literal[]), ...args.slice(1)];
  if (args.length > parameters.length) throw new NotPlain();
  const out: Record<string, Literal> = Object.fromEntries(args.map((v, i) => [parameters[i]!, v]));
  return { ...out, ...c.named };
}

function optionalNumber(v: Literal | undefined): number | undefined {
  if (v === undefined || v === null) return undefined;
  if (typeof v !== 'number') throw new NotPlain();
  return v;
}
function requiredNumber(v: Literal | undefined): number {
  const n = optionalNumber(v);
  if (n === undefined) throw new NotPlain();
  return n;
}
function count(v: Literal | undefined, otherwise: number): number {
  const n = optionalNumber(v) ?? otherwise;
  if (!Number.isInteger(n) || n < 0 || n > 200) throw new NotPlain();
  return n;
}
function buttonOf(a: Arguments): Button {
  const name = a['button'] ?? 'left',
    button = typeof name === 'string' && Object.hasOwn(BUTTONS, name) ? BUTTONS[name] : undefined;
  if (!button) throw new NotPlain();
  return button;
}
function domKey(v: Literal | undefined): string {
  const key = keyOf(v);
  if (key === undefined) throw new NotPlain();
  return key;
}
/** A key as KeyboardEvent.key; undefined where there is no such key. */
function keyOf(v: Literal | undefined): string | undefined {
  if (typeof v !== 'string' || v === '') return undefined;
  if ([...v].length === 1 && !Object.hasOwn(keyNames, v)) return v;
  const name = canonicalKey(Object.hasOwn(keyNames, v) ? keyNames[v]! : v),
    own = Object.hasOwn(DOM_KEYS, name) ? DOM_KEYS[name] : undefined,
    key = own ?? (/^f\d{1,2}$/.test(name) ? name.toUpperCase() : name[0]!.toUpperCase() + name.slice(1));
  return key === ' ' || modifierKeysym(key) !== undefined || liveKeyName(key) !== undefined ? key : undefined;
}
