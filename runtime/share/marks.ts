import type { Action } from '../domain/index.js';
import { coordinate, finite } from './html.js';

/** The mark of an action on the screen, as SVG over it, in pixels of the screen. */
interface At {
  readonly x?: unknown;
  readonly y?: unknown;
}
const place = (p: At | undefined): { readonly x: number; readonly y: number } => ({
  x: finite(p?.x) ?? 0,
  y: finite(p?.y) ?? 0,
});

/** Twice: a light line over a dark one can be seen on every screen. */
const twice = (d: string): string => `<path class="halo" d="${d}"/><path class="mark" d="${d}"/>`;
const circle = (p: At, r: number): string => {
  const { x, y } = place(p);
  return `M${coordinate(x - r)} ${coordinate(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
};
function arrow(from: At, to: At): string {
  const a = place(from),
    b = place(to),
    turn = Math.atan2(b.y - a.y, b.x - a.x),
    wing = (by: number): string =>
      `M${coordinate(b.x)} ${coordinate(b.y)}L${coordinate(b.x - 12 * Math.cos(turn + by))} ${coordinate(b.y - 12 * Math.sin(turn + by))}`;
  return `M${coordinate(a.x)} ${coordinate(a.y)}L${coordinate(b.x)} ${coordinate(b.y)}${wing(0.5)}${wing(-0.5)}`;
}
const TOWARDS: Readonly<Record<string, readonly [number, number]>> = {
  up: [0, -40],
  down: [0, 40],
  left: [-40, 0],
  right: [40, 0],
};

export function markOf(a: Action): string {
  switch (a.type) {
    case 'click':
      return twice(circle(a.at, 9));
    case 'left_double':
      return twice(circle(a.at, 9) + circle(a.at, 14));
    case 'right_single':
      return twice(`${circle(a.at, 9)}M${coordinate(place(a.at).x)} ${coordinate(place(a.at).y - 9)}v18`);
    case 'drag':
      return twice(circle(a.from, 5) + arrow(a.from, a.to));
    case 'scroll': {
      const at = place(a.at),
        [dx, dy] = TOWARDS[a.direction] ?? [0, 0];
      return twice(arrow(at, { x: at.x + dx, y: at.y + dy }));
    }
    default:
      return '';
  }
}
