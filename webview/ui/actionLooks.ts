/** How every action looks: its icon, and what is drawn over the screenshot or stands at its foot. Pure. */
import type { StepView } from '../../runtime/protocol/types.js';
import { clip } from './format.js';
import { t } from './words.js';

export type Action = StepView['actions'][number];
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Marks at a point: circles, one in another; words beside them; the right half filled. */
export const POINTERS = {
  click: { rings: 1, label: '', half: false },
  double: { rings: 2, label: '×2', half: false },
  right: { rings: 1, label: t('right'), half: true },
} as const;

/** A drawing in screen pixels. */
export type Drawing =
  | { readonly kind: 'point'; readonly at: Point; readonly button: keyof typeof POINTERS }
  | { readonly kind: 'drag'; readonly from: Point; readonly to: Point }
  | {
      readonly kind: 'scroll';
      readonly at: Point;
      readonly direction: 'up' | 'down' | 'left' | 'right';
      readonly amount?: number;
    };
/** A part of an action that has no place on the screen. Keys and texts are as the action has them. */
export type Footnote =
  | { readonly kind: 'typed'; readonly text: string }
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  | { readonly kind: 'flag'; readonly icon: string; readonly text: string; readonly tone: 'neutral' | 'good' | 'bad' };

interface Look<A> {
  /** Codicon. */
  readonly icon: string | ((a: A) => string);
  readonly draw: (a: A) => Drawing | Footnote;
}

const said = (text: string): string => clip(text, 160);

const LOOKS: { readonly [T in Action['type']]: Look<Extract<Action, { readonly type: T }>> } = {
  click: { icon: 'target', draw: (a) => ({ kind: 'point', at: a.at, button: 'click' }) },
  left_double: { icon: 'target', draw: (a) => ({ kind: 'point', at: a.at, button: 'double' }) },
  right_single: { icon: 'three-bars', draw: (a) => ({ kind: 'point', at: a.at, button: 'right' }) },
  drag: { icon: 'move', draw: (a) => ({ kind: 'drag', from: a.from, to: a.to }) },
  scroll: {
    icon: (a) => `arrow-${a.direction}`,
    draw: (a) => ({ kind: 'scroll', at: a.at, direction: a.direction, amount: a.amount }),
  },
  hotkey: { icon: 'record-keys', draw: (a) => ({ kind: 'keys', keys: a.keys }) },
  type: { icon: 'text-size', draw: (a) => ({ kind: 'typed', text: a.text }) },
  wait: {
    icon: 'watch',
    draw: (a) => ({
      kind: 'flag',
      icon: 'watch',
      tone: 'neutral',
      text: a.ms === undefined ? t('Waits') : t('Waits {0} ms', a.ms),
    }),
  },
  finished: {
    icon: 'pass',
    draw: (a) => ({
      kind: 'flag',
      icon: 'pass',
      tone: 'good',
      text: a.answer ? t('Says it is finished: {0}', said(a.answer)) : t('Says it is finished'),
    }),
  },
  fail: {
    icon: 'circle-slash',
    draw: (a) => ({
      kind: 'flag',
      icon: 'circle-slash',
      tone: 'bad',
      text: a.reason ? t('Gives up: {0}', said(a.reason)) : t('Gives up: says it cannot be done'),
    }),
  },
};

/** Undefined for a type that a newer version wrote. Each look is given only actions of its own type. */
const lookOf = (a: Action): Look<Action> | undefined =>
  Object.hasOwn(LOOKS, a.type) ? (LOOKS[a.type] as unknown as Look<Action>) : undefined;

/** Codicon of an action. */
export function actionIcon(a: Action): string {
  const icon = lookOf(a)?.icon ?? 'question';
  return typeof icon === 'string' ? icon : icon(a);
}
export const drawingOf = (a: Action): Drawing | Footnote =>
  lookOf(a)?.draw(a) ?? { kind: 'flag', icon: 'question', tone: 'neutral', text: a.type };
