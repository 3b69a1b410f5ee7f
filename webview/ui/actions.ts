/** Actions in words, in UI-TARS's grammar and as icons; pure. */
import { actionCall as callOf } from '../../runtime/protocol/shared.js';
import type { StepView } from '../../runtime/protocol/types.js';
import { clip } from './format.js';
import { t } from './words.js';

export type Action = StepView['actions'][number];
export interface Point {
  readonly x: number;
  readonly y: number;
}

const place = (p: Point): string => `${Math.round(p.x)},${Math.round(p.y)}`;
/** With the keys that are held meanwhile. */
const held = (words: string, a: { readonly modifiers?: readonly string[] }): string =>
  a.modifiers?.length ? t('{0} with {1}', words, a.modifiers.join('+')) : words;
/** White space as visible signs. */
export const visible = (t: string): string => t.replace(/\n/g, '⏎').replace(/\t/g, '⇥');

const scrollWords: Readonly<Record<'up' | 'down' | 'left' | 'right', string>> = {
  up: t('scroll up'),
  down: t('scroll down'),
  left: t('scroll left'),
  right: t('scroll right'),
};

/** For alt texts, labels and lists: "click at 340,220". */
export function actionWords(a: Action): string {
  switch (a.type) {
    case 'click':
      return held(t('click at {0}', place(a.at)), a);
    case 'left_double':
      return held(t('double click at {0}', place(a.at)), a);
    case 'right_single':
      return held(t('right click at {0}', place(a.at)), a);
    case 'drag':
      return held(t('drag from {0} to {1}', place(a.from), place(a.to)), a);
    case 'scroll':
      return a.amount === undefined
        ? t('{0} at {1}', scrollWords[a.direction], place(a.at))
        : t('{0} {1} at {2}', scrollWords[a.direction], a.amount, place(a.at));
    case 'hotkey':
      return t('press {0}', a.keys.join('+'));
    case 'type':
      return t('type “{0}”', clip(visible(a.text), 60));
    case 'wait':
      return a.ms === undefined ? t('wait') : t('wait {0} ms', a.ms);
    case 'finished':
      return a.answer === undefined ? t('finished') : t('finished: {0}', clip(a.answer, 60));
    case 'fail':
      return a.reason === undefined ? t('give up: cannot be done') : t('give up: {0}', clip(a.reason, 60));
  }
}
/** "click at 3,4, then wait"; '' without one. */
export const inTurn = (actions: readonly Action[]): string =>
  actions.length ? actions.map(actionWords).reduce((a, b) => t('{0}, then {1}', a, b)) : '';
export const actionsWords = (actions: readonly Action[]): string => (actions.length ? inTurn(actions) : t('no action'));

/** One word for a thumbnail. */
export function actionName(a: Action): string {
  switch (a.type) {
    case 'click':
      return t('click');
    case 'drag':
      return t('drag');
    case 'wait':
      return t('wait');
    case 'finished':
      return t('finished');
    case 'left_double':
      return t('double');
    case 'right_single':
      return t('right');
    case 'hotkey':
      return a.keys.join('+');
    case 'type':
      return clip(visible(a.text), 18);
    case 'scroll':
      return scrollWords[a.direction];
    case 'fail':
      return t('give up');
  }
}

/** The canonical UI-TARS call, screen pixels. */
export const actionCall = (a: Action): string => callOf(a, (p) => `'(${place(p)})'`);

/** Codicon of an action. */
export function actionIcon(a: Action): string {
  switch (a.type) {
    case 'click':
    case 'left_double':
      return 'target';
    case 'right_single':
      return 'three-bars';
    case 'drag':
      return 'move';
    case 'scroll':
      return a.direction === 'up'
        ? 'arrow-up'
        : a.direction === 'down'
          ? 'arrow-down'
          : a.direction === 'left'
            ? 'arrow-left'
            : 'arrow-right';
    case 'hotkey':
      return 'record-keys';
    case 'type':
      return 'text-size';
    case 'wait':
      return 'watch';
    case 'finished':
      return 'pass';
    case 'fail':
      return 'circle-slash';
  }
}

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
/** What is printed on a key. */
export const keycap = (k: string): string =>
  caps.get(k.toLowerCase()) ??
  (k.length === 1 || /^f\d+$/i.test(k) ? k.toUpperCase() : k.charAt(0).toUpperCase() + k.slice(1));

/** "Step 12 screenshot: click at 340,220"; steps are counted from 1. */
export function screenshotAlt(step: StepView, shot: 'before' | 'after'): string {
  return shot === 'after'
    ? t('Step {0} screenshot after the action: {1}', step.index + 1, actionsWords(step.actions))
    : t('Step {0} screenshot: {1}', step.index + 1, actionsWords(step.actions));
}
