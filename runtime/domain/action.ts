import type { ActionArgument, ActionEntry, ActionPhrase, Modifier, Point, ScrollDirection } from './actionArguments.js';
import { message } from './message.js';

/**
 * An action of a policy or a person on a desktop. Names are UI-TARS's; coordinates are screen pixels, origin top left.
 * `finished` and `fail` end the episode and never reach the desktop (`fail` = "this task cannot be done").
 */
export type Action =
  | { readonly type: 'click'; readonly at: Point; readonly modifiers?: readonly Modifier[] }
  | { readonly type: 'left_double'; readonly at: Point; readonly modifiers?: readonly Modifier[] }
  | { readonly type: 'right_single'; readonly at: Point; readonly modifiers?: readonly Modifier[] }
  | { readonly type: 'drag'; readonly from: Point; readonly to: Point; readonly modifiers?: readonly Modifier[] }
  /** `amount` is in wheel clicks, 1 to 20. */
  | { readonly type: 'scroll'; readonly at: Point; readonly direction: ScrollDirection; readonly amount?: number }
  /** Key names joined in one chord, lower case, X names or common aliases: ['ctrl','s'], ['enter'], ['alt','f4']. */
  | { readonly type: 'hotkey'; readonly keys: readonly string[] }
  /** Any Unicode text; '\n' presses Enter, '\t' presses Tab. */
  | { readonly type: 'type'; readonly text: string }
  | { readonly type: 'wait'; readonly ms?: number }
  | { readonly type: 'finished'; readonly answer?: string }
  | { readonly type: 'fail'; readonly reason?: string };

export type ActionType = Action['type'];

/** Defaults of a `wait` and a `scroll` without a number: milliseconds, wheel clicks. */
export const WAIT_DEFAULT_MS = 500,
  SCROLL_DEFAULT = 5;
/** The longest `wait`, ms. */
const WAIT_MOST_MS = 60_000;

/** Names of a place in the dialects; OSWorld's and UI-TARS's papers differ. */
const START = ['start_box', 'point', 'start_point', 'box', 'start'] as const,
  END = ['end_box', 'end_point', 'end'] as const,
  modifiers = { kind: 'modifiers', optional: true, call: ['modifiers'] } as const;
/** A place in the prompt. */
const box = (point: string): string => `'<|box_start|>(${point})<|box_end|>'`;

/**
 * Everything that is said of an action: names, arguments, prompt and words. The grammar, the prompt, canonical forms,
 * requests, edits, imports and the pages' words derive from it, in this order. What an action does is
 * cluster/drivers/input.ts; how it is drawn, webview/ui/actionLooks.ts; what pyautogui calls it,
 * domain/pyautogui/words.ts.
 */
export const ACTIONS: { readonly [T in ActionType]: ActionEntry<Extract<Action, { readonly type: T }>> } = {
  click: {
    call: 'click',
    aliases: ['left_single'],
    prompt: `click(start_box=${box('x1,y1')})`,
    args: { at: { kind: 'place', call: START, label: message('Click') }, modifiers },
    words: [[message('click at {0}'), 'at']],
    name: message('click'),
  },
  left_double: {
    call: 'left_double',
    aliases: ['double_click'],
    prompt: `left_double(start_box=${box('x1,y1')})`,
    args: { at: { kind: 'place', call: START, label: message('Double click') }, modifiers },
    words: [[message('double click at {0}'), 'at']],
    name: message('double'),
  },
  right_single: {
    call: 'right_single',
    aliases: ['right_click'],
    prompt: `right_single(start_box=${box('x1,y1')})`,
    args: { at: { kind: 'place', call: START, label: message('Right click') }, modifiers },
    words: [[message('right click at {0}'), 'at']],
    name: message('right'),
  },
  drag: {
    call: 'drag',
    aliases: ['select'],
    prompt: `drag(start_box=${box('x1,y1')}, end_box=${box('x3,y3')})`,
    args: {
      from: { kind: 'place', call: START, label: message('Start of the drag') },
      to: { kind: 'place', call: END, label: message('End of the drag') },
      modifiers,
    },
    words: [[message('drag from {0} to {1}'), 'from', 'to']],
    name: message('drag'),
  },
  hotkey: {
    call: 'hotkey',
    aliases: ['press'],
    prompt: "hotkey(key='')",
    args: { keys: { kind: 'keys', call: ['key', 'hotkey', 'keys'], label: message('Keys') } },
    words: [[message('press {0}'), 'keys']],
    name: { argument: 'keys' },
  },
  type: {
    call: 'type',
    aliases: [],
    prompt: 'type(content=\'\') #If you want to submit your input, use "\\n" at the end of `content`.',
    args: { text: { kind: 'text', call: ['content', 'text'], typed: true, label: message('Typed text') } },
    words: [[message('type “{0}”'), 'text']],
    name: { argument: 'text' },
  },
  scroll: {
    call: 'scroll',
    aliases: [],
    prompt: `scroll(start_box=${box('x1,y1')}, direction='down or up or right or left')`,
    args: {
      at: { kind: 'place', call: START, otherwise: 'middle of the screen', label: message('Scroll') },
      direction: { kind: 'direction', call: ['direction'] },
      amount: {
        kind: 'number',
        optional: true,
        call: ['amount'],
        min: 1,
        max: 20,
        whole: true,
        default: SCROLL_DEFAULT,
        label: message('Wheel clicks'),
        range: message('A whole number from 1 to 20.'),
        unset: String(SCROLL_DEFAULT),
      },
    },
    words: [
      [message('{0} {1} at {2}'), 'direction', 'amount', 'at'],
      [message('{0} at {1}'), 'direction', 'at'],
    ],
    name: { argument: 'direction' },
  },
  wait: {
    call: 'wait',
    aliases: [],
    prompt: 'wait() #Sleep for a moment and take a screenshot to check for any changes.',
    args: {
      ms: {
        kind: 'number',
        optional: true,
        call: ['ms'],
        min: 0,
        max: WAIT_MOST_MS,
        default: WAIT_DEFAULT_MS,
        coarser: { call: ['seconds', 'time'], times: 1000 },
        label: message('Wait, ms'),
        range: message('Milliseconds, from 0 to 60000.'),
      },
    },
    words: [[message('wait {0} ms'), 'ms'], [message('wait')]],
    name: message('wait'),
  },
  finished: {
    call: 'finished',
    aliases: [],
    prompt: "finished(content='')",
    ends: true,
    args: { answer: { kind: 'text', optional: true, call: ['content', 'answer'], label: message('Answer') } },
    words: [[message('finished: {0}'), 'answer'], [message('finished')]],
    name: message('finished'),
  },
  fail: {
    call: 'call_user',
    aliases: ['error_env', 'fail'],
    prompt: 'call_user() #The task cannot be done.',
    ends: true,
    args: { reason: { kind: 'text', optional: true, call: ['content', 'reason'], label: message('Reason given') } },
    words: [[message('give up: {0}'), 'reason'], [message('give up: cannot be done')]],
    name: message('give up'),
  },
};

/** An entry of the table, whichever action it is of. */
export interface AnyActionEntry extends Omit<ActionEntry<unknown>, 'args' | 'words' | 'name'> {
  readonly args: Readonly<Record<string, ActionArgument & { readonly optional?: true | undefined }>>;
  readonly words: readonly ActionPhrase<string>[];
  readonly name: string | { readonly argument: string };
}
/** One argument of an action, with its name. */
export type NamedArgument = readonly [name: string, argument: AnyActionEntry['args'][string]];

/** Types in the order of the table. */
export const ACTION_TYPES = Object.keys(ACTIONS) as readonly ActionType[];
/** Undefined for a type that a newer version wrote. */
export const actionEntry = (type: ActionType): AnyActionEntry | undefined =>
  Object.hasOwn(ACTIONS, type) ? ACTIONS[type] : undefined;
/** Arguments in the order in which they are written. */
export const argumentsOf = (type: ActionType): readonly NamedArgument[] =>
  Object.entries(actionEntry(type)?.args ?? {});
/** The value of an argument; undefined where the action does not say. */
export const argumentValue = (a: Action, name: string): unknown =>
  Object.hasOwn(a, name) ? (a as unknown as Readonly<Record<string, unknown>>)[name] : undefined;

/** An action with these arguments. What `value` leaves undefined is left out: only optional arguments may be. */
export function makeAction(type: ActionType, value: (...argument: NamedArgument) => unknown): Action {
  const a: Record<string, unknown> = { type };
  for (const argument of argumentsOf(type)) {
    const v = value(...argument);
    if (v !== undefined) a[argument[0]] = v;
  }
  return a as unknown as Action;
}

/** The places of an action on the screen. */
export const placesOf = (a: Action): Point[] =>
  argumentsOf(a.type).flatMap(([name, { kind }]) => (kind === 'place' ? [argumentValue(a, name) as Point] : []));

export const isTerminal = (a: Action): boolean => actionEntry(a.type)?.ends === true;

/** ms for which it waits by itself: 0 of what is no `wait`. */
export const waitMsOf = (a: Action): number =>
  a.type === 'wait' ? Math.min(Math.max(a.ms ?? WAIT_DEFAULT_MS, 0), WAIT_MOST_MS) : 0;
