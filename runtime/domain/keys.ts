/**
 * One spelling per chord, whatever the writer called its keys: aliases resolved, modifiers first in a fixed order,
 * joined with '+'.
 */
const ALIASES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    control: 'ctrl',
    control_l: 'ctrl',
    control_r: 'ctrl',
    ctrl_l: 'ctrl',
    ctrl_r: 'ctrl',
    shift_l: 'shift',
    shift_r: 'shift',
    alt_l: 'alt',
    alt_r: 'alt',
    option: 'alt',
    super_l: 'super',
    super_r: 'super',
    win: 'super',
    windows: 'super',
    meta: 'super',
    cmd: 'super',
    command: 'super',
    return: 'enter',
    kp_enter: 'enter',
    esc: 'escape',
    del: 'delete',
    bksp: 'backspace',
    back_space: 'backspace',
    spacebar: 'space',
    ' ': 'space',
    arrowup: 'up',
    arrowdown: 'down',
    arrowleft: 'left',
    arrowright: 'right',
    pgup: 'pageup',
    page_up: 'pageup',
    prior: 'pageup',
    pgdn: 'pagedown',
    pgdown: 'pagedown',
    page_down: 'pagedown',
    next: 'pagedown',
    ins: 'insert',
  }),
);
const MODIFIERS = ['ctrl', 'shift', 'alt', 'super'];

export function canonicalKey(key: string): string {
  const k = key.toLowerCase();
  return ALIASES.get(k) ?? k;
}

export function canonicalChord(keys: readonly string[]): string {
  const all = keys.map(canonicalKey);
  return [...MODIFIERS.filter((m) => all.includes(m)), ...all.filter((k) => !MODIFIERS.includes(k))].join('+');
}
