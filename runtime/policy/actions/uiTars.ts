/** UI-TARS's actions to ours and back: names, boxes, coordinates, keys. The tree comes from parse.ts. */
import {
  ACTIONS,
  ACTION_TYPES,
  MODIFIERS,
  SCROLL_DIRECTIONS,
  actionCall,
  argumentsOf,
  makeAction,
  type Action,
  type ActionType,
  type Modifier,
  type NamedArgument,
  type NumberArgument,
  type Point,
  type ScrollDirection,
  type Size,
} from '../../domain/index.js';
import type { CoordinateMode, ResizeLimits } from './coordinates.js';
import { fromScreen, toScreen } from './coordinates.js';
import { canonicalKey } from '../../domain/keys.js';
import type { Answer, Arg, Call } from './parse.js';
import { GrammarError, parseAnswer } from './parse.js';

export interface Coordinates {
  readonly mode: CoordinateMode;
  readonly screen: Size;
  readonly limits?: ResizeLimits;
}
export interface ActionAnswer {
  readonly thought?: string;
  readonly reflection?: string;
  readonly actions: readonly Action[];
}

/** A model's answer as actions in screen pixels. Throws GrammarError (`policy.invalid`, with the position). */
export function parseActions(text: string, c: Coordinates): ActionAnswer {
  const { calls, ...said }: Answer = parseAnswer(text);
  return { ...said, actions: calls.map((call) => toAction(call, c, text)) };
}

/** Types by every name that a dialect of UI-TARS has for them. */
const TYPES: ReadonlyMap<string, ActionType> = new Map(
  ACTION_TYPES.flatMap((type) => [ACTIONS[type].call, ...ACTIONS[type].aliases].map((name) => [name, type] as const)),
);

function toAction(call: Call, c: Coordinates, text: string): Action {
  const type = TYPES.get(call.name),
    args = new Args(call, c, text);
  if (type === undefined) throw args.error(`There is no action '${call.name}'`);
  // Required arguments are read first, so that an error names the missing argument and not a fault of another one.
  const all = argumentsOf(type),
    values = new Map<string, unknown>();
  for (const [name, argument] of all) if (isNeeded(argument)) values.set(name, args.read(argument));
  for (const [name, argument] of all) if (!isNeeded(argument)) values.set(name, args.read(argument));
  return makeAction(type, (name) => values.get(name));
}

type Argument = NamedArgument[1];
const isNeeded = (a: Argument): boolean => !a.optional && !(a.kind === 'place' && a.otherwise !== undefined);
const isModifier = (key: string): key is Modifier => MODIFIERS.some((m) => m === key);

/** The arguments of one call, read as what an action needs; an error has the position in the answer. */
class Args {
  readonly #call: Call;
  readonly #c: Coordinates;
  readonly #text: string;

  constructor(call: Call, c: Coordinates, text: string) {
    this.#call = call;
    this.#c = c;
    this.#text = text;
  }

  error(message: string, at = this.#call.at): GrammarError {
    return new GrammarError(message, at, this.#text);
  }

  /** The value of an argument; undefined when the call does not say. */
  read(argument: Argument): unknown {
    const a = isNeeded(argument) ? this.#need(argument.call) : this.#find(argument.call);
    switch (argument.kind) {
      case 'place':
        return a ? this.#point(a) : this.#middle();
      case 'modifiers':
        return a && this.#modifiers(a);
      case 'direction':
        return a && this.#direction(a);
      case 'keys':
        return a && this.#keys(a);
      case 'text':
        return argument.optional && a?.value === '' ? undefined : a?.value;
      case 'number':
        return this.#number(argument, a);
    }
  }

  #find(names: readonly string[]): Arg | undefined {
    return this.#call.args.find((a) => names.includes(a.name));
  }

  #need(names: readonly string[]): Arg {
    const a = this.#find(names);
    if (!a) throw this.error(`${this.#call.name} needs ${names[0]}`);
    return a;
  }

  /** The middle of a box, in screen pixels. */
  #point(a: Arg): Point {
    const p = boxCentre(a.value);
    if (!p) throw this.error(`${a.name} is not a box`, a.at);
    return toScreen(this.#c.mode, p, this.#c.screen, this.#c.limits);
  }
  #middle(): Point {
    return { x: Math.floor(this.#c.screen.width / 2), y: Math.floor(this.#c.screen.height / 2) };
  }

  #number(argument: NumberArgument, a: Arg | undefined): number | undefined {
    if (a) {
      const n = this.#count(a, argument.max);
      return argument.whole ? Math.max(argument.min, Math.round(n)) : n;
    }
    const { coarser } = argument,
      other = coarser && this.#find(coarser.call);
    return other && this.#count(other, argument.max / coarser.times) * coarser.times;
  }
  #count(a: Arg, max: number): number {
    const n = Number(a.value);
    if (!Number.isFinite(n) || n < 0 || n > max) throw this.error(`${a.name} must be a number up to ${max}`, a.at);
    return n;
  }

  #direction(a: Arg): ScrollDirection {
    const direction = SCROLL_DIRECTIONS.find((d) => d === a.value.toLowerCase());
    if (!direction) throw this.error('direction must be up, down, left or right', a.at);
    return direction;
  }

  #keys(a: Arg): string[] {
    const keys = splitKeys(a.value);
    if (keys.length === 0) throw this.error('A key is missing', a.at);
    return keys;
  }

  #modifiers(a: Arg): Modifier[] {
    const keys = a.value
      .split(/[\s+]+/)
      .filter(Boolean)
      .map(canonicalKey);
    if (keys.length === 0 || !keys.every(isModifier))
      throw this.error('modifiers must be ctrl, shift, alt or super', a.at);
    return keys;
  }
}

const NUMBER = '[-+]?\\d+(?:\\.\\d+)?',
  GAP = '(?:\\s*,\\s*|\\s+)';
const BOX = new RegExp(`^[([]?\\s*(${NUMBER})${GAP}(${NUMBER})(?:${GAP}(${NUMBER})${GAP}(${NUMBER}))?\\s*[)\\]]?$`);

/**
 * The middle of a box in any of its syntaxes: `(x,y)`, `[x1, y1, x2, y2]`, box tokens, `<point>x y</point>`,
 * `<bbox>...</bbox>`.
 */
export function boxCentre(value: string): Point | undefined {
  const m = BOX.exec(value.replace(/<\|box_start\|>|<\|box_end\|>|<\/?(?:point|bbox)>/g, ' ').trim());
  if (!m) return undefined;
  const [x1, y1, x2, y2] = [m[1], m[2], m[3] ?? m[1], m[4] ?? m[2]].map(Number);
  return { x: (x1! + x2!) / 2, y: (y1! + y2!) / 2 };
}

/** 'ctrl c', 'ctrl+c' and 'ctrl + c'; a plus sign at the end is the key. */
function splitKeys(value: string): string[] {
  const words = value.trim().split(/\s+/).filter(Boolean);
  if (words.length === 0) return value === '' ? [] : ['space'];
  return words
    .flatMap((w, i) => {
      const last = i === words.length - 1;
      if (w === '+') return last ? ['+'] : [];
      return w.endsWith('++') || (w.endsWith('+') && last) ? [...w.split('+'), '+'] : w.split('+');
    })
    .filter(Boolean)
    .map(canonicalKey);
}

/**
 * The canonical text of an answer; `parseActions` gives the actions back (points to the nearest unit of the coordinate
 * mode).
 */
export function formatAnswer(
  a: ActionAnswer,
  c: Coordinates & {
    /** Surround boxes with `<|box_start|>` tokens, as in UI-TARS's training data. */
    readonly boxTokens?: boolean;
  },
): string {
  const said =
    a.reflection !== undefined
      ? `Reflection: ${a.reflection}\nAction_Summary: ${a.thought ?? ''}\n`
      : a.thought !== undefined
        ? `Thought: ${a.thought}\n`
        : '';
  return `${said}Action: ${a.actions.map((x) => formatAction(x, c)).join('\n\n')}`;
}

export function formatAction(a: Action, c: Coordinates & { readonly boxTokens?: boolean }): string {
  const box = (p: Point): string => {
    const q = fromScreen(c.mode, p, c.screen, c.limits),
      s = `(${q.x},${q.y})`;
    return c.boxTokens ? `'<|box_start|>${s}<|box_end|>'` : `'${s}'`;
  };
  return actionCall(a, box);
}
