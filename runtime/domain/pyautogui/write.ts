import { SCROLL_DEFAULT, type Action } from '../action.js';
import type { Modifier, Point, Size } from '../actionArguments.js';
import { canonicalKey } from '../keys.js';
import { pyString } from './python.js';
import { clicks, type ClickType } from './words.js';

/** Coordinates of the code: pixels of the screen, or shares of it (0 to 1; OpenCUA). */
export type CodeSpace = 'absolute' | 'relative';

/** Keys that pyautogui calls differently. */
const keyNames: Readonly<Record<string, string>> = {
  super: 'win',
  menu: 'apps',
  plus: '+',
  minus: '-',
  comma: ',',
  period: '.',
  dot: '.',
  slash: '/',
  backslash: '\\',
  equal: '=',
  equals: '=',
  semicolon: ';',
  apostrophe: "'",
  quote: "'",
  grave: '`',
  backquote: '`',
  bracketleft: '[',
  bracketright: ']',
  asterisk: '*',
  underscore: '_',
  colon: ':',
  question: '?',
  exclam: '!',
  at: '@',
};
/** Pyautogui's name of a key, as Python. */
export const keyName = (k: string): string => {
  const c = canonicalKey(k);
  return pyString(Object.hasOwn(keyNames, c) ? keyNames[c]! : c);
};

/**
 * A step's actions as the code its format would have run; read back by CodeReader. `relative`: OpenCUA's dialect,
 * coordinates in shares of the screen.
 */
export function actionsCode(actions: readonly Action[], space: CodeSpace, screen: Size): string {
  return actions.map((a) => actionCode(a, space, screen)).join('\n');
}

function actionCode(a: Action, space: CodeSpace, screen: Size): string {
  const at = (p: Point): string => `x=${share(p.x, screen.width)}, y=${share(p.y, screen.height)}`;
  const share = (v: number, size: number): string =>
    space === 'relative' ? String(Math.round((v / size) * 1e6) / 1e6) : String(Math.round(v));
  if (isClick(a)) return held(a.modifiers, `${clicks[a.type].code}(${at(a.at)})`);
  switch (a.type) {
    case 'drag':
      return held(
        a.modifiers,
        `pyautogui.moveTo(${at(a.from)})\npyautogui.dragTo(${at(a.to)}, duration=1.0, button='left')`,
      );
    case 'scroll': {
      const n = a.amount ?? SCROLL_DEFAULT,
        plus = a.direction === 'up' || a.direction === 'right';
      return `pyautogui.${a.direction === 'up' || a.direction === 'down' ? 'scroll' : 'hscroll'}(${plus ? n : -n}, ${at(a.at)})`;
    }
    case 'hotkey':
      return a.keys.length === 1
        ? `pyautogui.press(${keyName(a.keys[0]!)})`
        : `pyautogui.hotkey(${a.keys.map(keyName).join(', ')})`;
    // pyautogui presses keys of a keyboard: what it has no key for goes through the clipboard, as UI-TARS's agents do.
    case 'type':
      return space === 'relative' || /^[\x20-\x7e\n\t]*$/.test(a.text)
        ? `pyautogui.write(${space === 'relative' ? 'message=' : ''}${pyString(a.text)})`
        : `pyperclip.copy(${pyString(a.text)})\npyautogui.hotkey('ctrl', 'v')`;
    case 'wait':
      return a.ms === undefined ? 'computer.wait()' : `time.sleep(${a.ms / 1000})`;
    case 'finished':
      return `computer.terminate(status='success'${a.answer ? `, answer=${pyString(a.answer)}` : ''})`;
    case 'fail':
      return `computer.terminate(status='failure'${a.reason ? `, answer=${pyString(a.reason)}` : ''})`;
  }
}

const isClick = (a: Action): a is Extract<Action, { readonly type: ClickType }> => Object.hasOwn(clicks, a.type);

function held(modifiers: readonly Modifier[] | undefined, code: string): string {
  const keys = modifiers ?? [];
  return [
    ...keys.map((k) => `pyautogui.keyDown(${keyName(k)})`),
    code,
    ...[...keys].reverse().map((k) => `pyautogui.keyUp(${keyName(k)})`),
  ].join('\n');
}
