/** pyautogui's words: its functions with their parameters, its other names for them, and its names of keys. */

/** Order of positional arguments (pyautogui 0.9.54; `computer`: OpenCUA). */
export const signatures: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    'pyautogui.click': ['x', 'y', 'clicks', 'interval', 'button', 'duration'],
    'pyautogui.leftClick': ['x', 'y', 'interval', 'duration'],
    'pyautogui.rightClick': ['x', 'y', 'interval', 'duration'],
    'pyautogui.doubleClick': ['x', 'y', 'interval', 'button', 'duration'],
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
/** Of an action only its speed. */
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
