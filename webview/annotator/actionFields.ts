/** The parts of an action that can be edited: its points, by dragging; its text, keys and amounts, in fields. Pure. */
import {
  argumentValue,
  argumentsOf,
  makeAction,
  type NamedArgument,
  type NumberArgument,
  type TextArgument,
} from '../../runtime/protocol/shared.js';
import type { Action, Point } from '../ui/actions.js';
import type { Size } from '../ui/viewMath.js';
import { fromDaemon, t } from '../ui/words.js';

export interface ActionPoint {
  /** Place in the step's actions. */
  readonly action: number;
  /** The argument it is: `at`, or the `from` and `to` of a drag. */
  readonly end: string;
  readonly at: Point;
  readonly name: string;
}
export const pointsOf = (actions: readonly Action[]): ActionPoint[] =>
  actions.flatMap((a, action) =>
    argumentsOf(a.type).flatMap(([end, argument]): ActionPoint[] =>
      argument.kind === 'place'
        ? [{ action, end, at: argumentValue(a, end) as Point, name: fromDaemon(argument.label) }]
        : [],
    ),
  );
export const movePoint = (a: Action, end: string, to: Point): Action =>
  argumentsOf(a.type).some(([name, { kind }]) => name === end && kind === 'place') ? withArgument(a, end, to) : a;
/** The action with another value of one argument; undefined leaves it out. */
const withArgument = (a: Action, name: string, value: unknown): Action =>
  makeAction(a.type, (other) => (other === name ? value : argumentValue(a, other)));

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
/** The field of an action, one at most per kind; undefined where there is nothing to write. */
export function fieldOf(a: Action): ActionField | undefined {
  for (const argument of argumentsOf(a.type)) {
    const field = argumentField(a, argument);
    if (field) return field;
  }
  return undefined;
}
function argumentField(a: Action, [name, argument]: NamedArgument): ActionField | undefined {
  const value = argumentValue(a, name),
    make = (v: unknown): Action => withArgument(a, name, v);
  switch (argument.kind) {
    case 'text':
      return textField(argument, value as string | undefined, make);
    case 'keys':
      return {
        label: fromDaemon(argument.label),
        value: (value as readonly string[]).join('+'),
        many: false,
        hint: t('Names joined by +, such as ctrl+s'),
        parse: (text) => keysOf(text, make),
      };
    case 'number':
      return {
        label: fromDaemon(argument.label),
        value: String(value ?? argument.unset ?? ''),
        many: false,
        parse: (text) => whole(text, argument, make),
      };
    case 'place':
    case 'modifiers':
    case 'direction':
      return undefined;
  }
}
/** Empty means that nothing is said, where that is possible. */
function textField(
  { label, typed, optional }: TextArgument & { readonly optional?: true | undefined },
  value: string | undefined,
  make: (text: string | undefined) => Action,
): ActionField {
  return {
    label: fromDaemon(label),
    value: typed ? (value ?? '').replace(/\t/g, '⇥') : (value ?? ''),
    many: true,
    ...(typed ? { hint: t('A new line presses Enter; ⇥ presses Tab.') } : {}),
    parse: (text) => {
      if (text === '' && !optional) return t('Enter the text to type, or delete the step.');
      return make(typed ? text.replace(/⇥/g, '\t') : text || undefined);
    },
  };
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
function whole(text: string, { min, max, range }: NumberArgument, make: (n: number) => Action): Action | string {
  const n = Number(text);
  return text.trim() !== '' && Number.isInteger(n) && n >= min && n <= max ? make(n) : fromDaemon(range);
}
