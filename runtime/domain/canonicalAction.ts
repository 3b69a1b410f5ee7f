import { argumentValue, makeAction, type Action, type NamedArgument } from './action.js';
import { MODIFIERS, type Modifier, type Point } from './actionArguments.js';
import { canonicalKey } from './keys.js';

/**
 * The canonical form of an action: defaults written out, keys by their common names, empty parts left out. Actions that
 * two formats write differently are equal here.
 */
export const canonicalAction = (a: Action): Action =>
  makeAction(a.type, (...argument) => canonicalValue(argument, argumentValue(a, argument[0])));

function canonicalValue([, argument]: NamedArgument, value: unknown): unknown {
  switch (argument.kind) {
    case 'number':
      return value ?? argument.default;
    case 'place': {
      const p = value as Point;
      return { x: p.x, y: p.y };
    }
    case 'modifiers': {
      const held = (value ?? []) as readonly Modifier[];
      return held.length > 0 ? MODIFIERS.filter((k) => held.includes(k)) : undefined;
    }
    case 'keys':
      return (value as readonly string[]).map(canonicalKey);
    case 'text':
      return argument.optional && value === '' ? undefined : value;
    case 'direction':
      return value;
  }
}
