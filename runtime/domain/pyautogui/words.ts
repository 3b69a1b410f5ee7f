/** pyautogui's words: its functions with their parameters, its other names for them, and its names of keys. */
import type { ActionType } from '../action.js';

/** Our clicks: the function that is written for one, and what is read as one. */
export const clicks = {
  click: { code: 'pyautogui.click', button: 'left', count: 1 },
  left_double: { code: 'pyautogui.doubleClick', button: 'left', count: 2 },
  right_single: { code: 'pyautogui.rightClick', button: 'right', count: 1 },
} as const satisfies Partial<
  Record<ActionType, { readonly code: string; readonly button: string; readonly count: number }>
>;
export type ClickType = keyof typeof clicks;

interface ClickFunction {
  /** Order of positional arguments. */
  readonly parameters: readonly string[];
  /** How often it clicks when `clicks` does not say. */
  readonly count: number;
  /** The only button of the call; absent where an argument says, which defaults to the left one. */
  readonly button?: string;
}
export const clickFunctions: Readonly<Record<string, ClickFunction>> = {
  'pyautogui.click': { parameters: ['x', 'y', 'clicks', 'interval', 'button', 'duration'], count: 1 },
  'pyautogui.leftClick': { parameters: ['x', 'y', 'interval', 'duration'], count: 1, button: 'left' },
  'pyautogui.rightClick': { parameters: ['x', 'y', 'interval', 'duration'], count: 1, button: 'right' },
  'pyautogui.doubleClick': { parameters: ['x', 'y', 'interval', 'button', 'duration'], count: 2 },
};

/** Order of positional arguments (pyautogui 0.9.54; `computer`: OpenCUA). */
export const signatures: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    ...Object.fromEntries(Object.entries(clickFunctions).map(([name, f]) => [name, f.parameters])),
    'pyautogui.moveTo': ['x', 'y', 'duration', 'tween'],
    'pyautogui.move': ['xOffset', 'yOffset', 'duration', 'tween'],
    'pyautogui.dragTo': ['x', 'y', 'duration', 'tween', 'button'],
    'pyautogui.drag': ['xOffset', 'yOffset', 'duration', 'tween', 'button'],
    'pyautogui.mouseDown': ['x', 'y', 'button', 'duration'],
    'pyautogui.mouseUp': ['x', 'y', 'button', 'duration'],
    'pyautogui.scroll': ['clicks', 'x', 'y'],
    'pyautogui.hscroll': ['clicks', 'x', 'y'],
    'pyautogui.write': ['message', 'interval'],
    'pyautogui.press': ['keys', 'presses', 'interval'],
    'pyautogui.keyDown': ['key'],
    'pyautogui.keyUp': ['key'],
    'pyautogui.sleep': ['seconds'],
    'time.sleep': ['seconds'],
    'pyperclip.copy': ['text'],
    'computer.wait': ['seconds'],
    'computer.terminate': ['status', 'answer'],
  }),
);
export const aliases: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'pyautogui.typewrite': 'pyautogui.write',
    'pyautogui.moveRel': 'pyautogui.move',
    'pyautogui.dragRel': 'pyautogui.drag',
    'pyautogui.vscroll': 'pyautogui.scroll',
  }),
);
/** Arguments that only change an action's speed. */
export const ignored = ['interval', 'duration', 'tween', 'logScreenshot', '_pause', 'mouseDownUp', 'data'];
/** pyautogui's names for keys that we call differently; the rest is the same, or one character. */
export const keyNames: Readonly<Record<string, string>> = {
  ctrlleft: 'ctrl',
  ctrlright: 'ctrl',
  altleft: 'alt',
  altright: 'alt',
  shiftleft: 'shift',
  shiftright: 'shift',
  winleft: 'super',
  winright: 'super',
  prntscrn: 'printscreen',
  prtscr: 'printscreen',
  prtsc: 'printscreen',
  apps: 'menu',
  '\n': 'enter',
  '\r': 'enter',
  '\t': 'tab',
};
export const modifiers: readonly string[] = ['ctrl', 'shift', 'alt', 'super'];
