import { StudioError } from './errors.js';

/** X keysyms of keys that have no character (keysymdef.h), by the lower-case names people and models use. */
const NAMED: Readonly<Record<string, number>> = {
  enter: 0xff0d,
  return: 0xff0d,
  tab: 0xff09,
  escape: 0xff1b,
  esc: 0xff1b,
  backspace: 0xff08,
  delete: 0xffff,
  del: 0xffff,
  insert: 0xff63,
  ins: 0xff63,
  space: 0x20,
  home: 0xff50,
  end: 0xff57,
  pageup: 0xff55,
  page_up: 0xff55,
  pgup: 0xff55,
  prior: 0xff55,
  pagedown: 0xff56,
  page_down: 0xff56,
  pgdn: 0xff56,
  next: 0xff56,
  left: 0xff51,
  up: 0xff52,
  right: 0xff53,
  down: 0xff54,
  arrowleft: 0xff51,
  arrowup: 0xff52,
  arrowright: 0xff53,
  arrowdown: 0xff54,
  ctrl: 0xffe3,
  control: 0xffe3,
  ctrl_l: 0xffe3,
  control_l: 0xffe3,
  ctrlleft: 0xffe3,
  ctrl_r: 0xffe4,
  control_r: 0xffe4,
  ctrlright: 0xffe4,
  shift: 0xffe1,
  shift_l: 0xffe1,
  shiftleft: 0xffe1,
  shift_r: 0xffe2,
  shiftright: 0xffe2,
  alt: 0xffe9,
  alt_l: 0xffe9,
  altleft: 0xffe9,
  option: 0xffe9,
  alt_r: 0xffea,
  altright: 0xffea,
  super: 0xffeb,
  super_l: 0xffeb,
  win: 0xffeb,
  winleft: 0xffeb,
  meta: 0xffeb,
  cmd: 0xffeb,
  command: 0xffeb,
  windows: 0xffeb,
  super_r: 0xffec,
  winright: 0xffec,
  capslock: 0xffe5,
  caps_lock: 0xffe5,
  numlock: 0xff7f,
  num_lock: 0xff7f,
  scrolllock: 0xff14,
  scroll_lock: 0xff14,
  menu: 0xff67,
  apps: 0xff67,
  printscreen: 0xff61,
  print: 0xff61,
  prtsc: 0xff61,
  pause: 0xff13,
  break: 0xff6b,
  kp_enter: 0xff8d,
  add: 0xffab,
  subtract: 0xffad,
  multiply: 0xffaa,
  divide: 0xffaf,
  decimal: 0xffae,
  plus: 0x2b,
  minus: 0x2d,
  comma: 0x2c,
  period: 0x2e,
  dot: 0x2e,
  slash: 0x2f,
  backslash: 0x5c,
  equal: 0x3d,
  equals: 0x3d,
  semicolon: 0x3b,
  apostrophe: 0x27,
  quote: 0x27,
  grave: 0x60,
  backquote: 0x60,
  bracketleft: 0x5b,
  bracketright: 0x5d,
  asterisk: 0x2a,
  underscore: 0x5f,
  colon: 0x3a,
  question: 0x3f,
  exclam: 0x21,
  at: 0x40,
};

export const SHIFT = 0xffe1;
const CONTROL: Readonly<Record<number, number>> = {
  8: 0xff08,
  9: 0xff09,
  10: 0xff0d,
  13: 0xff0d,
  27: 0xff1b,
  127: 0xffff,
};

/**
 * Keysym of a character: Latin-1 as it is, the rest by the Unicode rule (0x01000000 + code point; X protocol, appendix
 * A).
 */
export function charKeysym(char: string): number {
  const cp = char.codePointAt(0)!;
  const control = CONTROL[cp];
  if (control !== undefined) return control;
  if (cp < 0x20 || (cp > 0x7f && cp < 0xa0) || (cp >= 0xd800 && cp <= 0xdfff)) {
    throw new StudioError(
      'policy.invalid',
      `Character U+${cp.toString(16).padStart(4, '0').toUpperCase()} cannot be typed.`,
      'Leave control characters out of the text, or use hotkey for keys.',
    );
  }
  return cp < 0x100 ? cp : 0x01000000 + cp;
}

/**
 * Keysym of a key in a chord, by name or as one character. A letter stands for its key, so 'A' is 'a'; add 'shift' to
 * mean the capital.
 */
export function keyKeysym(key: string): number {
  const k = key.length === 1 || [...key].length === 1 ? key : key.trim();
  const chars = [...k];
  if (chars.length === 1) return charKeysym(k.toLowerCase().length === k.length ? k.toLowerCase() : k);
  const name = k.toLowerCase();
  const f = /^f([1-9]|[12]\d|3[0-5])$/.exec(name);
  if (f) return 0xffbe + Number(f[1]) - 1;
  const num = /^(?:num|kp_?)(\d)$/.exec(name);
  if (num) return 0xffb0 + Number(num[1]);
  if (Object.hasOwn(NAMED, name)) return NAMED[name]!;
  throw new StudioError(
    'policy.invalid',
    `There is no key called "${key}".`,
    "Use X names or common ones: 'ctrl', 'shift', 'alt', 'super', 'enter', 'tab', 'f4', 'pagedown', or one character.",
  );
}

/** The text as it is typed: one entry for each key press; CR LF counts once. */
export const typedChars = (text: string): string[] => [...text.replace(/\r\n?/g, '\n')];

/** Modifiers by their `KeyboardEvent.key`; both sides of the keyboard are one. */
const MODIFIERS: Readonly<Record<string, number>> = {
  Control: NAMED['ctrl']!,
  Shift: SHIFT,
  Alt: NAMED['alt']!,
  Meta: NAMED['super']!,
  OS: NAMED['super']!,
  Super: NAMED['super']!,
};
export const modifierKeysym = (key: string): number | undefined =>
  Object.hasOwn(MODIFIERS, key) ? MODIFIERS[key] : undefined;

/** `KeyboardEvent.key` names that differ from ours. */
const DOM: Readonly<Record<string, string>> = { contextmenu: 'menu', printscreen: 'print' };
/** Locks would leave the keyboard in another state, and characters come composed. */
const LOCKS = new Set(['capslock', 'numlock', 'scrolllock', 'altgraph']);

/**
 * The name of a key that has no character (one `hotkey` knows), from its `KeyboardEvent.key`; undefined when desktops
 * have no such key.
 */
export function liveKeyName(key: string): string | undefined {
  const lower = key.toLowerCase(),
    name = (Object.hasOwn(DOM, lower) ? DOM[lower] : undefined) ?? lower;
  if ([...key].length < 2 || LOCKS.has(lower) || modifierKeysym(key) !== undefined) return undefined;
  try {
    keyKeysym(name);
    return name;
  } catch {
    return undefined;
  }
}

/**
 * Keysym of a key that is pressed, by its `KeyboardEvent.key`; undefined when there is nothing to press. In a chord a
 * letter stands for its key.
 */
export function liveKeysym(key: string, chord: boolean): number | undefined {
  if ([...key].length === 1) {
    try {
      return chord ? keyKeysym(key) : charKeysym(key);
    } catch {
      return undefined;
    }
  }
  const name = liveKeyName(key);
  return name === undefined ? undefined : keyKeysym(name);
}
