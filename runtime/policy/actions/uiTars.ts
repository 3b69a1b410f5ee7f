/** UI-TARS's actions to ours and back: names, boxes, coordinates, keys. The tree comes from parse.ts. */
import type { Action, Modifier, Point, ScrollDirection, Size } from '../../domain/index.js';
import { actionCall } from '../../domain/index.js';
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

/** Names of one action in the dialects of UI-TARS. */
const NAMES: Readonly<Record<string, Action['type']>> = {
  click: 'click',
  left_single: 'click',
  left_double: 'left_double',
  double_click: 'left_double',
  right_single: 'right_single',
  right_click: 'right_single',
  drag: 'drag',
  select: 'drag',
  scroll: 'scroll',
  hotkey: 'hotkey',
  press: 'hotkey',
  type: 'type',
  wait: 'wait',
  finished: 'finished',
  call_user: 'fail',
  error_env: 'fail',
};
const START = ['start_box', 'point', 'start_point', 'box', 'start'],
  END = ['end_box', 'end_point', 'end'];
const MODIFIERS: readonly Modifier[] = ['ctrl', 'shift', 'alt', 'super'];
const isModifier = (key: string): key is Modifier => MODIFIERS.some((m) => m === key);

function toAction(call: Call, c: Coordinates, text: string): Action {
  const type = Object.hasOwn(NAMES, call.name) ? NAMES[call.name] : undefined;
  const args = new Args(call, c, text);
  switch (type) {
    case 'click':
    case 'left_double':
    case 'right_single':
      return { type, at: args.point(args.need(...START)), ...args.modifiers() };
    case 'drag':
      return { type, from: args.point(args.need(...START)), to: args.point(args.need(...END)), ...args.modifiers() };
    case 'scroll':
      return toScroll(args, c.screen);
    case 'hotkey': {
      const a = args.need('key', 'hotkey', 'keys');
      const keys = splitKeys(a.value);
      if (keys.length === 0) throw args.error('A key is missing', a.at);
      return { type, keys };
    }
    case 'type':
      return { type, text: args.need('content', 'text').value };
    case 'wait': {
      const ms = args.find('ms'),
        s = args.find('seconds', 'time');
      return { type, ...(ms ? { ms: args.count(ms, 60_000) } : s ? { ms: args.count(s, 60) * 1000 } : {}) };
    }
    case 'finished': {
      const a = args.find('content', 'answer');
      return { type, ...(a && a.value !== '' ? { answer: a.value } : {}) };
    }
    case 'fail': {
      const a = args.find('content', 'reason');
      return { type, ...(a && a.value !== '' ? { reason: a.value } : {}) };
    }
    case undefined:
      throw args.error(`There is no action '${call.name}'`);
  }
}

const DIRECTIONS: readonly ScrollDirection[] = ['up', 'down', 'left', 'right'];

/** Without a place the middle of the screen is scrolled. */
function toScroll(args: Args, screen: Size): Action {
  const where = args.find(...START),
    d = args.need('direction'),
    amount = args.find('amount');
  const direction = DIRECTIONS.find((x) => x === d.value.toLowerCase());
  if (!direction) throw args.error('direction must be up, down, left or right', d.at);
  const at = where ? args.point(where) : { x: Math.floor(screen.width / 2), y: Math.floor(screen.height / 2) };
  return {
    type: 'scroll',
    at,
    direction,
    ...(amount ? { amount: Math.max(1, Math.round(args.count(amount, 20))) } : {}),
  };
}

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

  find(...names: readonly string[]): Arg | undefined {
    return this.#call.args.find((a) => names.includes(a.name));
  }

  need(...names: readonly string[]): Arg {
    const a = this.find(...names);
    if (!a) throw this.error(`${this.#call.name} needs ${names[0]}`);
    return a;
  }

  /** The middle of a box, in screen pixels. */
  point(a: Arg): Point {
    const p = boxCentre(a.value);
    if (!p) throw this.error(`${a.name} is not a box`, a.at);
    return toScreen(this.#c.mode, p, this.#c.screen, this.#c.limits);
  }

  count(a: Arg, max: number): number {
    const n = Number(a.value);
    if (!Number.isFinite(n) || n < 0 || n > max) throw this.error(`${a.name} must be a number up to ${max}`, a.at);
    return n;
  }

  modifiers(): { modifiers?: Modifier[] } {
    const a = this.find('modifiers');
    if (!a) return {};
    const keys = a.value
      .split(/[\s+]+/)
      .filter(Boolean)
      .map(canonicalKey);
    if (keys.length === 0 || !keys.every(isModifier))
      throw this.error('modifiers must be ctrl, shift, alt or super', a.at);
    return { modifiers: keys };
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
