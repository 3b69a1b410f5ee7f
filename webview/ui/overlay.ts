/** The marks over a screenshot, in screen pixels; pure. overlayView.ts draws them. */
import type { StepView } from '../../runtime/protocol/types.js';
import { drawingOf, type Action, type Drawing, type Footnote, type Point } from './actionLooks.js';
import { keycap, visible } from './actions.js';
import { clip } from './format.js';

/** `order`: number of the action in its step, from 1; 0 when it is the only one. */
export type Mark = { readonly order: number } & Drawing;
/** A part of an action that has no place on the screen: shown at the foot of the picture. */
export type Note = { readonly order: number } & (
  { readonly kind: 'keys'; readonly caps: readonly string[] } | Exclude<Footnote, { readonly kind: 'keys' }>
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
    const d = drawingOf(a);
    switch (d.kind) {
      case 'point':
      case 'drag':
      case 'scroll':
        marks.push({ order, ...d });
        break;
      case 'keys':
        notes.push({ order, kind: 'keys', caps: d.keys.map(keycap) });
        break;
      case 'typed':
        notes.push({ order, kind: 'typed', text: clip(visible(d.text), 240) });
        break;
      case 'flag':
        notes.push({ order, ...d });
    }
  });
  return { marks, notes };
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
