/** What is drawn over a screenshot, in screen pixels; pure. Drawing is overlayView.ts. */
import type { StepView } from '../../runtime/protocol/types.js';
import { keycap, visible, type Action, type Point } from './actions.js';
import { clip } from './format.js';
import { t } from './words.js';

/** `order`: number of the action in its step, from 1; 0 when it is the only one. */
export type Mark = { readonly order: number } & (
  | { readonly kind: 'point'; readonly at: Point; readonly button: 'click' | 'double' | 'right' }
  | { readonly kind: 'drag'; readonly from: Point; readonly to: Point }
  | {
      readonly kind: 'scroll';
      readonly at: Point;
      readonly direction: 'up' | 'down' | 'left' | 'right';
      readonly amount?: number;
    }
);
/** What has no place on the screen: shown at the foot of the picture. */
export type Note = { readonly order: number } & (
  | { readonly kind: 'typed'; readonly text: string }
  | { readonly kind: 'keys'; readonly caps: readonly string[] }
  | { readonly kind: 'flag'; readonly icon: string; readonly text: string; readonly tone: 'neutral' | 'good' | 'bad' }
);

export function marksOf(actions: readonly Action[]): {
  readonly marks: readonly Mark[];
  readonly notes: readonly Note[];
} {
  const marks: Mark[] = [],
    notes: Note[] = [];
  actions.forEach((a, i) => {
    const order = actions.length > 1 ? i + 1 : 0,
      held = 'modifiers' in a && a.modifiers?.length ? a.modifiers : undefined;
    if (held) notes.push({ order, kind: 'keys', caps: held.map(keycap) });
    if ('at' in a || a.type === 'drag') marks.push({ order, ...markOf(a) });
    else notes.push({ order, ...noteOf(a) });
  });
  return { marks, notes };
}
type Unordered<T> = T extends unknown ? Omit<T, 'order'> : never;
type Placed = Extract<Action, { readonly at: Point } | { readonly type: 'drag' }>;
function markOf(a: Placed): Unordered<Mark> {
  switch (a.type) {
    case 'click':
      return { kind: 'point', at: a.at, button: 'click' };
    case 'left_double':
      return { kind: 'point', at: a.at, button: 'double' };
    case 'right_single':
      return { kind: 'point', at: a.at, button: 'right' };
    case 'drag':
      return { kind: 'drag', from: a.from, to: a.to };
    case 'scroll':
      return { kind: 'scroll', at: a.at, direction: a.direction, amount: a.amount };
  }
}
function noteOf(a: Exclude<Action, Placed>): Unordered<Note> {
  switch (a.type) {
    case 'hotkey':
      return { kind: 'keys', caps: a.keys.map(keycap) };
    case 'type':
      return { kind: 'typed', text: clip(visible(a.text), 240) };
    case 'wait':
      return {
        kind: 'flag',
        icon: 'watch',
        tone: 'neutral',
        text: a.ms === undefined ? t('Waits') : t('Waits {0} ms', a.ms),
      };
    case 'finished':
      return {
        kind: 'flag',
        icon: 'pass',
        tone: 'good',
        text: a.answer ? t('Says it is finished: {0}', clip(a.answer, 160)) : t('Says it is finished'),
      };
    case 'fail':
      return {
        kind: 'flag',
        icon: 'circle-slash',
        tone: 'bad',
        text: a.reason ? t('Gives up: {0}', clip(a.reason, 160)) : t('Gives up: says it cannot be done'),
      };
  }
}

export interface HeatCell {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly probability: number;
  /** Strength of the colour in [0, 1]: square root of p over the highest p, so that small ones are seen. */
  readonly heat: number;
  readonly label: string;
}

/**
 * The policy's places: alternatives with a place, of every token that has them; the same place keeps its highest
 * probability.
 */
export function heatCells(tokens: StepView['tokens']): HeatCell[] {
  const cells = new Map<string, Omit<HeatCell, 'heat'>>();
  for (const t of tokens ?? [])
    for (const a of t.alternatives ?? []) {
      if (!a.at || !(a.probability > 0)) continue;
      const key = `${a.at.x},${a.at.y},${a.at.width},${a.at.height}`,
        old = cells.get(key);
      if (!old || old.probability < a.probability)
        cells.set(key, { ...a.at, probability: a.probability, label: a.label });
    }
  const all = [...cells.values()],
    max = all.reduce((m, c) => Math.max(m, c.probability), 0);
  return all.map((c) => ({ ...c, heat: Math.sqrt(c.probability / max) })).sort((a, b) => a.probability - b.probability);
}

/** A straight arrow with its head: points of the shaft and of the head, box pixels. */
export function arrow(
  from: Point,
  to: Point,
  head: number,
): { readonly tip: Point; readonly neck: Point; readonly wings: readonly [Point, Point] } {
  const dx = to.x - from.x,
    dy = to.y - from.y,
    len = Math.hypot(dx, dy) || 1,
    ux = dx / len,
    uy = dy / len,
    size = Math.min(head, len);
  const neck = { x: to.x - ux * size, y: to.y - uy * size };
  return {
    tip: to,
    neck,
    wings: [
      { x: neck.x - uy * size * 0.5, y: neck.y + ux * size * 0.5 },
      { x: neck.x + uy * size * 0.5, y: neck.y - ux * size * 0.5 },
    ],
  };
}
