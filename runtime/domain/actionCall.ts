import { actionEntry, argumentValue, argumentsOf, type Action, type NamedArgument } from './action.js';
import type { Point } from './actionArguments.js';

const quote = (s: string): string =>
  `'${s.replace(/\\/g, '\\\\').replace(/'/g, "\\'").replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}'`;

/** An action as a call of UI-TARS's grammar; `box` writes a point, quoted, in the coordinates wanted. */
export function actionCall(a: Action, box: (p: Point) => string): string {
  const args = argumentsOf(a.type).flatMap((argument) => {
    const value = written(argument, argumentValue(a, argument[0]), box);
    return value === undefined ? [] : [`${argument[1].call[0]}=${value}`];
  });
  return `${actionEntry(a.type)?.call ?? a.type}(${args.join(', ')})`;
}

function written(argument: NamedArgument, value: unknown, box: (p: Point) => string): string | undefined {
  if (value === undefined) return undefined;
  switch (argument[1].kind) {
    case 'place':
      return box(value as Point);
    case 'modifiers':
      return (value as readonly string[]).length > 0 ? quote((value as readonly string[]).join(' ')) : undefined;
    case 'keys':
      return quote((value as readonly string[]).join(' '));
    case 'direction':
    case 'text':
    case 'number':
      return quote(String(value));
  }
}
