import type { Action } from './action.js';
import { charKeysym, keyKeysym, typedChars } from './keysyms.js';

/**
 * Throws `policy.invalid` where no keyboard has what the actions press or type: a key of no known name, a control
 * character. Said before anything is performed, it is an answer that is no action, like one outside of the grammar.
 */
export function checkPerformable(actions: readonly Action[]): void {
  for (const a of actions) {
    if (a.type === 'hotkey') a.keys.forEach(keyKeysym);
    else if (a.type === 'type') typedChars(a.text).forEach(charKeysym);
    else if ('modifiers' in a) a.modifiers?.forEach(keyKeysym);
  }
}
