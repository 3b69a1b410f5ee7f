/**
 * What a policy or a person can do to a desktop. Names are UI-TARS's; coordinates are screen pixels, origin top left.
 * `finished` and `fail` end the episode and never reach the desktop (`fail` = "this task cannot be done").
 */
export interface Point {
  readonly x: number;
  readonly y: number;
}
export interface Size {
  readonly width: number;
  readonly height: number;
}
export type Modifier = 'ctrl' | 'shift' | 'alt' | 'super';
export type ScrollDirection = 'up' | 'down' | 'left' | 'right';

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

/** What a `wait` and a `scroll` that say no number do: milliseconds, wheel clicks. */
export const WAIT_DEFAULT_MS = 500,
  SCROLL_DEFAULT = 5;

export const isTerminal = (a: Action): boolean => a.type === 'finished' || a.type === 'fail';
