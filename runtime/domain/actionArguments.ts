/**
 * The kinds of arguments that actions have. A kind is what every language knows how to write, read, check, show and
 * edit: the grammar of models, imports and exports, requests of people, the pages. Which action has which arguments is
 * the table in action.ts.
 */

/** Screen pixels, origin top left. */
export interface Point {
  readonly x: number;
  readonly y: number;
}
export interface Size {
  readonly width: number;
  readonly height: number;
}
export const MODIFIERS = ['ctrl', 'shift', 'alt', 'super'] as const;
export type Modifier = (typeof MODIFIERS)[number];
export const SCROLL_DIRECTIONS = ['up', 'down', 'left', 'right'] as const;
export type ScrollDirection = (typeof SCROLL_DIRECTIONS)[number];

interface Named {
  /** Names of the argument in a call of UI-TARS's grammar: the first is written, all are read. */
  readonly call: readonly [string, ...string[]];
}
export interface PlaceArgument extends Named {
  readonly kind: 'place';
  /** The meaning of a call that does not name the place; without it the place is needed. */
  readonly otherwise?: 'middle of the screen';
  /** Label of the point that people drag to edit it. */
  readonly label: string;
}
/** Keys held meanwhile; none and an empty list are the same. */
export interface ModifiersArgument extends Named {
  readonly kind: 'modifiers';
}
export interface DirectionArgument extends Named {
  readonly kind: 'direction';
}
/** A chord. */
export interface KeysArgument extends Named {
  readonly kind: 'keys';
  readonly label: string;
}
export interface TextArgument extends Named {
  readonly kind: 'text';
  /** Each character is a key: a line break presses Enter, a tab presses Tab, and a keyboard must have the rest. */
  readonly typed?: boolean;
  readonly label: string;
}
export interface NumberArgument extends Named {
  readonly kind: 'number';
  readonly min: number;
  readonly max: number;
  readonly whole?: boolean;
  /** The value when the action has none. */
  readonly default: number;
  /** Other names in a call, whose values are `times` as much in the argument's own unit. */
  readonly coarser?: { readonly call: readonly [string, ...string[]]; readonly times: number };
  readonly label: string;
  /** The allowed values, in words. */
  readonly range: string;
  /** Text of the field when the action has no value; nothing by default. */
  readonly unset?: string;
}
export type ActionArgument =
  PlaceArgument | ModifiersArgument | DirectionArgument | KeysArgument | TextArgument | NumberArgument;

/** The kind that fits a value of this type. */
type KindOf<V> = [V] extends [Point]
  ? PlaceArgument
  : [V] extends [readonly Modifier[]]
    ? ModifiersArgument
    : [V] extends [ScrollDirection]
      ? DirectionArgument
      : [V] extends [readonly string[]]
        ? KeysArgument
        : [V] extends [string]
          ? TextArgument
          : [V] extends [number]
            ? NumberArgument
            : never;
type ArgumentName<A> = Exclude<keyof A, 'type'> & string;

/** A message with {0}, {1} … and the arguments that fill them. */
export type ActionPhrase<Name extends string> = readonly [message: string, ...of: Name[]];

/** The declaration of one kind of action. */
export interface ActionEntry<A> {
  /** Name in a call of UI-TARS's grammar. */
  readonly call: string;
  /** Names that dialects of UI-TARS have for it; read, never written. */
  readonly aliases: readonly string[];
  /** Line in the prompt, as the models were trained with it. Without one, models are not told of the action. */
  readonly prompt?: string;
  /** Ends the episode and never reaches the desktop. */
  readonly ends?: true;
  /** Arguments in the order in which they are written. */
  readonly args: {
    readonly [K in ArgumentName<A>]-?: KindOf<NonNullable<A[K]>> &
      (undefined extends A[K] ? { readonly optional: true } : { readonly optional?: undefined });
  };
  /** Phrases for people; the first whose arguments are all there counts. */
  readonly words: readonly ActionPhrase<ArgumentName<A>>[];
  /** Below a thumbnail: one word, or what an argument says. */
  readonly name: string | { readonly argument: ArgumentName<A> };
}
