/** What of an action can be edited: its points, by dragging; its text, keys and amounts, in fields. Pure. */
import type { Action, Point } from '../ui/actions.js';
import type { Size } from '../ui/viewMath.js';
import { t } from '../ui/words.js';

export type End = 'at' | 'from' | 'to';
export interface ActionPoint {
  /** Place in the step's actions. */
  readonly action: number;
  readonly end: End;
  readonly at: Point;
  readonly name: string;
}
export function pointsOf(actions: readonly Action[]): ActionPoint[] {
  const names: Readonly<Partial<Record<Action['type'], string>>> = {
    click: t('Click'),
    left_double: t('Double click'),
    right_single: t('Right click'),
    scroll: t('Scroll'),
  };
  return actions.flatMap((a, action): ActionPoint[] =>
    a.type === 'drag'
      ? [
          { action, end: 'from', at: a.from, name: t('Start of the drag') },
          { action, end: 'to', at: a.to, name: t('End of the drag') },
        ]
      : 'at' in a
        ? [{ action, end: 'at', at: a.at, name: names[a.type] ?? a.type }]
        : [],
  );
}
export function movePoint(a: Action, end: End, to: Point): Action {
  if (a.type === 'drag') return end === 'from' ? { ...a, from: to } : end === 'to' ? { ...a, to } : a;
  return 'at' in a && end === 'at' ? { ...a, at: to } : a;
}
/** The nearest whole pixel of the screen. */
export const onScreen = (p: Point, size: Size): Point => ({
  x: clamp(Math.round(p.x), size.width),
  y: clamp(Math.round(p.y), size.height),
});
const clamp = (v: number, length: number): number => Math.max(0, Math.min(Math.max(0, length - 1), v));

export interface ActionField {
  readonly label: string;
  readonly value: string;
  readonly many: boolean;
  readonly hint?: string;
  /** The edited action, or what is wrong with the text. */
  parse(text: string): Action | string;
}
/** At most one per kind of action; undefined where there is nothing to write. */
export function fieldOf(a: Action): ActionField | undefined {
  switch (a.type) {
    case 'type':
      return {
        label: t('Typed text'),
        value: a.text.replace(/\t/g, '⇥'),
        many: true,
        hint: t('A new line presses Enter; ⇥ presses Tab.'),
        parse: (text) =>
          text ? { ...a, text: text.replace(/⇥/g, '\t') } : t('Write what is typed, or delete the step.'),
      };
    case 'hotkey':
      return {
        label: t('Keys'),
        value: a.keys.join('+'),
        many: false,
        hint: t('Names joined by +, such as ctrl+s'),
        parse: (text) => keysOf(text, (keys) => ({ ...a, keys })),
      };
    case 'scroll':
      return {
        label: t('Wheel clicks'),
        value: String(a.amount ?? 3),
        many: false,
        parse: (text) => whole(text, 1, 20, t('A whole number from 1 to 20.'), (amount) => ({ ...a, amount })),
      };
    case 'wait':
      return {
        label: t('Wait, ms'),
        value: String(a.ms ?? ''),
        many: false,
        parse: (text) => whole(text, 0, 60_000, t('Milliseconds, from 0 to 60000.'), (ms) => ({ ...a, ms })),
      };
    case 'finished':
      return {
        label: t('Answer'),
        value: a.answer ?? '',
        many: true,
        parse: (answer) => {
          const { answer: _a, ...rest } = a;
          return answer ? { ...rest, answer } : rest;
        },
      };
    case 'fail':
      return {
        label: t('Reason given'),
        value: a.reason ?? '',
        many: true,
        parse: (reason) => {
          const { reason: _r, ...rest } = a;
          return reason ? { ...rest, reason } : rest;
        },
      };
    default:
      return undefined;
  }
}
function keysOf(text: string, make: (keys: string[]) => Action): Action | string {
  const keys = text
    .trim()
    .toLowerCase()
    .split(/\s*\+\s*/);
  return keys.length <= 5 && keys.every((k) => /^\S+$/.test(k))
    ? make(keys)
    : t('Up to five names of keys joined by +, such as ctrl+shift+s; the plus key itself is “plus”.');
}
function whole(text: string, low: number, high: number, words: string, make: (n: number) => Action): Action | string {
  const n = Number(text);
  return text.trim() !== '' && Number.isInteger(n) && n >= low && n <= high ? make(n) : words;
}
