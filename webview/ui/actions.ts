/** Actions in words and in UI-TARS's grammar, by the table of runtime/domain/action.ts; pure. */
import { actionCall as callOf, actionEntry, argumentValue } from '../../runtime/protocol/shared.js';
import type { StepView } from '../../runtime/protocol/types.js';
import type { Action, Point } from './actionLooks.js';
import { clip } from './format.js';
import { fromDaemon, t } from './words.js';

export { actionIcon, type Action, type Point } from './actionLooks.js';

const place = (p: Point): string => `${Math.round(p.x)},${Math.round(p.y)}`;
/** The words with the keys that are held meanwhile. */
const held = (words: string, a: Action): string =>
  'modifiers' in a && a.modifiers?.length ? t('{0} with {1}', words, a.modifiers.join('+')) : words;
/** White space as visible signs. */
export const visible = (t: string): string => t.replace(/\n/g, '⏎').replace(/\t/g, '⇥');

const scrollWords: Readonly<Record<'up' | 'down' | 'left' | 'right', string>> = {
  up: t('scroll up'),
  down: t('scroll down'),
  left: t('scroll left'),
  right: t('scroll right'),
};

/** The value of an argument in words, at most `most` characters of a text. */
function argumentWords(a: Action, name: string, most: number): string | number {
  const value = argumentValue(a, name),
    argument = actionEntry(a.type)?.args[name];
  switch (argument?.kind) {
    case 'place':
      return place(value as Point);
    case 'modifiers':
    case 'keys':
      return (value as readonly string[]).join('+');
    case 'direction':
      return scrollWords[value as keyof typeof scrollWords];
    case 'text':
      return clip(argument.typed ? visible(value as string) : (value as string), most);
    case 'number':
      return value as number;
    case undefined:
      return '';
  }
}

/** Words for alt texts, labels and lists: "click at 340,220". */
export function actionWords(a: Action): string {
  const phrase = actionEntry(a.type)?.words.find(([, ...of]) =>
    of.every((name) => argumentValue(a, name) !== undefined),
  );
  if (!phrase) return a.type;
  const [message, ...of] = phrase;
  return held(fromDaemon(message, ...of.map((name) => argumentWords(a, name, 60))), a);
}
/** "click at 3,4, then wait"; '' without one. */
export const inTurn = (actions: readonly Action[]): string =>
  actions.length ? actions.map(actionWords).reduce((a, b) => t('{0}, then {1}', a, b)) : '';
export const actionsWords = (actions: readonly Action[]): string => (actions.length ? inTurn(actions) : t('no action'));

/** One word for a thumbnail. */
export function actionName(a: Action): string {
  const name = actionEntry(a.type)?.name ?? a.type;
  return typeof name === 'string' ? fromDaemon(name) : String(argumentWords(a, name.argument, 18));
}

/** The canonical UI-TARS call, screen pixels. */
export const actionCall = (a: Action): string => callOf(a, (p) => `'(${place(p)})'`);

const caps: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ctrl: 'Ctrl',
    control: 'Ctrl',
    shift: 'Shift',
    alt: 'Alt',
    super: 'Super',
    enter: 'Enter',
    return: 'Enter',
    tab: 'Tab',
    escape: 'Esc',
    esc: 'Esc',
    backspace: '⌫',
    delete: 'Del',
    space: 'Space',
    up: '↑',
    down: '↓',
    left: '←',
    right: '→',
    pageup: 'PgUp',
    pagedown: 'PgDn',
    home: 'Home',
    end: 'End',
  }),
);
/** The label of a key. */
export const keycap = (k: string): string =>
  caps.get(k.toLowerCase()) ??
  (k.length === 1 || /^f\d+$/i.test(k) ? k.toUpperCase() : k.charAt(0).toUpperCase() + k.slice(1));

/** "Step 12 screenshot: click at 340,220"; steps are counted from 1. */
export function screenshotAlt(step: StepView, shot: 'before' | 'after'): string {
  return shot === 'after'
    ? t('Step {0} screenshot after the action: {1}', step.index + 1, actionsWords(step.actions))
    : t('Step {0} screenshot: {1}', step.index + 1, actionsWords(step.actions));
}
