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
const MODIFIERS: readonly string[] = ['ctrl', 'shift', 'alt', 'super'];

function toAction(call: Call, c: Coordinates, text: string): Action {
  const fail = (message: string, at = call.at): GrammarError => new GrammarError(message, at, text);
  const find = (...names: string[]): Arg | undefined => call.args.find((a) => names.includes(a.name));
  const need = (...names: string[]): Arg => {
    const a = find(...names);
    if (!a) throw fail(`${call.name} needs ${names[0]}`);
    return a;
  };
  const point = (a: Arg): Point => {
    const p = boxCentre(a.value);
    if (!p) throw fail(`${a.name} is not a box`, a.at);
    return toScreen(c.mode, p, c.screen, c.limits);
  };
  const count = (a: Arg, max: number): number => {
    const n = Number(a.value);
    if (!Number.isFinite(n) || n < 0 || n > max) throw fail(`${a.name} must be a number up to ${max}`, a.at);
    return n;
  };
  const held = (): { modifiers?: Modifier[] } => {
    const a = find('modifiers');
    if (!a) return {};
    const keys = a.value
      .split(/[\s+]+/)
      .filter(Boolean)
      .map(canonicalKey);
    if (keys.length === 0 || !keys.every((k) => MODIFIERS.includes(k)))
      throw fail('modifiers must be ctrl, shift, alt or super', a.at);
    return { modifiers: keys as Modifier[] };
  };
  const type = Object.hasOwn(NAMES, call.name) ? NAMES[call.name] : undefined;
  switch (type) {
    case 'click':
    case 'left_double':
    case 'right_single':
      return { type, at: point(need(...START)), ...held() };
    case 'drag':
      return { type, from: point(need(...START)), to: point(need(...END)), ...held() };
    case 'scroll': {
      const where = find(...START),
        d = need('direction'),
        amount = find('amount');
      const direction = d.value.toLowerCase();
      if (!['up', 'down', 'left', 'right'].includes(direction))
        throw fail('direction must be up, down, left or right', d.at);
      const at = where ? point(where) : { x: Math.floor(c.screen.width / 2), y: Math.floor(c.screen.height / 2) };
      return {
        type,
        at,
        direction: direction as ScrollDirection,
        ...(amount ? { amount: Math.max(1, Math.round(count(amount, 20))) } : {}),
      };
    }
    case 'hotkey': {
      const a = need('key', 'hotkey', 'keys');
      const keys = splitKeys(a.value);
      if (keys.length === 0) throw fail('A key is missing', a.at);
      return { type, keys };
    }
    case 'type':
      return { type, text: need('content', 'text').value };
    case 'wait': {
      const ms = find('ms'),
        s = find('seconds', 'time');
      return { type, ...(ms ? { ms: count(ms, 60_000) } : s ? { ms: count(s, 60) * 1000 } : {}) };
    }
    case 'finished': {
      const a = find('content', 'answer');
      return { type, ...(a && a.value !== '' ? { answer: a.value } : {}) };
    }
    case 'fail': {
      const a = find('content', 'reason');
      return { type, ...(a && a.value !== '' ? { reason: a.value } : {}) };
    }
    case undefined:
      throw fail(`There is no action '${call.name}'`);
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
