import { z } from 'zod';
import {
  ACTION_TYPES,
  MODIFIERS,
  SCROLL_DIRECTIONS,
  argumentsOf,
  type Action,
  type NamedArgument,
  type Point,
} from '../domain/index.js';

/** How far an action from outside is believed. */
export interface ActionLimits {
  /** Other members are refused; else they are left out. */
  readonly strict: boolean;
  readonly place: z.ZodType<Point>;
  /** Characters. A text that is needed has at least `emptyText ? 0 : 1`. */
  readonly text: number;
  readonly emptyText: boolean;
  /** Keys of a chord. */
  readonly keys: number;
}

/** Actions by the table of domain/action.ts. Shape and bounds alone; whether one fits a screen is the caller's. */
export function actionSchemaOf(limits: ActionLimits): z.ZodType<Action> {
  const one = limits.strict ? z.strictObject : z.object,
    all = ACTION_TYPES.map((type) =>
      one({
        type: z.literal(type),
        ...Object.fromEntries(argumentsOf(type).map(([name, a]) => [name, argumentSchema(a, limits)])),
      }),
    );
  // What the schemas make of their members is not known to the compiler; the table is checked against Action.
  return z.discriminatedUnion('type', all as [(typeof all)[number], ...typeof all]) as unknown as z.ZodType<Action>;
}

function argumentSchema(a: NamedArgument[1], limits: ActionLimits): z.ZodType {
  const schema = kindSchema(a, limits);
  return a.optional ? schema.optional() : schema;
}

function kindSchema(a: NamedArgument[1], { place, text, emptyText, keys }: ActionLimits): z.ZodType {
  switch (a.kind) {
    case 'place':
      return place;
    case 'modifiers':
      return z.array(z.enum(MODIFIERS)).max(MODIFIERS.length);
    case 'direction':
      return z.enum(SCROLL_DIRECTIONS);
    case 'keys':
      return z.array(z.string().min(1).max(24)).min(1).max(keys);
    case 'text':
      return a.optional || emptyText ? z.string().max(text) : z.string().max(text).min(1);
    case 'number':
      return (a.whole ? z.int() : z.number()).min(a.min).max(a.max);
  }
}
