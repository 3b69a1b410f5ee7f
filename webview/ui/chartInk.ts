/** Drawing that uPlot does not do itself: straight marks with names, points with shapes and error bars. */
import type uPlot from 'uplot';
import { shapePath } from './chartLegend.js';
import { rowsFor } from './chartMath.js';
import type { ChartSeries, ChartSpec, Mark } from './chartSpec.js';
import { fade, type Theme } from './chartTheme.js';

/** Phases of a short run begin close to one another. */
const PHASE_ROWS = 4;
/** Lines of phases that are closer than that look like one. */
const NEAR_PX = 6;

/** Runs with the context clipped to the plot area, lengths in device pixels. */
function inside(u: uPlot, draw: (c: CanvasRenderingContext2D, px: number) => void): void {
  const { ctx } = u,
    b = u.bbox;
  ctx.save();
  ctx.beginPath();
  ctx.rect(b.left, b.top, b.width, b.height);
  ctx.clip();
  draw(ctx, devicePixelRatio);
  ctx.restore();
}

/**
 * Draws under the lines: times that nobody recorded are hatched, and each phase begins at a thin line with its name.
 */
export function drawGround(
  u: uPlot,
  g: Pick<ChartSpec, 'phases' | 'outages'>,
  t: Theme,
  font: string,
  compact: boolean,
): void {
  const { phases = [], outages = [] } = g;
  if (phases.length === 0 && outages.length === 0) return;
  inside(u, (c, px) => {
    const b = u.bbox,
      x = (at: number): number => Math.round(u.valToPos(at, 'x', true));
    for (const o of outages) {
      c.fillStyle = fade(t.foreground, t.contrast ? 0.3 : 0.09);
      c.fillRect(x(o.from), b.top, Math.max(px, x(o.to) - x(o.from)), b.height);
    }
    if (compact) return;
    c.font = font.replace(/^[\d.]+/, (n) => String(Number(n) * px));
    c.textBaseline = 'top';
    const places = phases.map((p) => ({ at: x(p.at), width: c.measureText(p.label).width + 6 * px })),
      // Names that would run into one another stand below one another; where there is no room for one its line stands
      // alone, and the summary names them all. Those of a long run that begin at one place would cover a small chart.
      rows = rowsFor(places, {
        start: b.left,
        end: b.left + b.width,
        rows: PHASE_ROWS,
        gap: 4 * px,
        near: NEAR_PX * px,
      });
    c.fillStyle = fade(t.foreground, t.contrast ? 0.8 : 0.3);
    for (const { at } of places) c.fillRect(at, b.top, px, b.height);
    // A halo keeps the lines of the next phases out of a name.
    c.lineWidth = 4 * px;
    c.lineJoin = 'round';
    c.strokeStyle = t.background;
    c.fillStyle = t.dim;
    phases.forEach((p, i) => {
      const row = rows[i];
      if (row === undefined) return;
      const left = places[i]!.at + 4 * px,
        // Names stand at the top, because curves begin low.
        top = b.top + (3 + row * (t.fontPx + 2)) * px;
      c.strokeText(p.label, left, top);
      c.fillText(p.label, left, top);
    });
  });
}

export function drawMarks(u: uPlot, marks: readonly Mark[], t: Theme, font: string): void {
  if (marks.length === 0) return;
  inside(u, (c, px) => {
    const b = u.bbox;
    c.font = font.replace(/^[\d.]+/, (n) => String(Number(n) * px));
    c.textBaseline = 'bottom';
    c.textAlign = 'left';
    for (const m of marks) {
      const at = Math.round(u.valToPos(m.at, m.axis, true));
      c.strokeStyle = t.hues[m.hue];
      c.lineWidth = px * (t.contrast ? 2 : 1.25);
      c.setLineDash([6 * px, 4 * px]);
      c.beginPath();
      if (m.axis === 'y') {
        c.moveTo(b.left, at);
        c.lineTo(b.left + b.width, at);
      } else {
        c.moveTo(at, b.top);
        c.lineTo(at, b.top + b.height);
      }
      c.stroke();
      const w = c.measureText(m.label).width,
        roomRight = at + w + 8 * px < b.left + b.width;
      const [x, y] =
        m.axis === 'y'
          ? [b.left + b.width - w - 4 * px, at - b.top > 16 * px ? at - 2 * px : at + 15 * px]
          : [roomRight ? at + 5 * px : at - w - 5 * px, b.top + 15 * px];
      // A halo parts the words from the lines and bars under them.
      c.setLineDash([]);
      c.lineWidth = 4 * px;
      c.lineJoin = 'round';
      c.strokeStyle = t.background;
      c.strokeText(m.label, x, y);
      c.fillStyle = t.foreground;
      c.fillText(m.label, x, y);
    }
  });
}

/** Draws points: small where they crowd, and error bars only on some, far enough apart to be told from each other. */
export function drawPoints(u: uPlot, series: readonly ChartSeries[], t: Theme, small: boolean): void {
  inside(u, (c, px) => {
    const [from, to] = [u.scales['x']!.min!, u.scales['x']!.max!],
      box = u.bbox;
    for (const s of series) {
      if (s.kind !== 'points') continue;
      const seen = s.x.filter((x) => x >= from && x <= to).length,
        crowded = box.width / Math.max(1, seen) < (small ? 9 : 16) * px,
        r = (small ? (crowded ? 1.5 : 2.6) : crowded ? 2.4 : 4.5) * px,
        barEvery = (crowded ? 28 : 0) * px;
      c.strokeStyle = c.fillStyle = t.hues[s.hue];
      c.lineWidth = px * 1.5;
      c.setLineDash([]);
      if (s.joined) join(u, c, s);
      let lastBar = Infinity;
      // Newest first: it is the one that always has its bar.
      for (let i = s.x.length - 1; i >= 0; i--) {
        const v = s.y[i];
        if (v === null || v === undefined || s.x[i]! < from || s.x[i]! > to) continue;
        // A point on the very edge of the plot stays whole.
        const x = Math.min(Math.max(u.valToPos(s.x[i]!, 'x', true), box.left + r), box.left + box.width - r),
          y = u.valToPos(v, 'y', true),
          low = s.low?.[i],
          high = s.high?.[i];
        if (
          !small &&
          lastBar - x >= barEvery &&
          low !== null &&
          low !== undefined &&
          high !== null &&
          high !== undefined
        ) {
          const y0 = u.valToPos(low, 'y', true),
            y1 = u.valToPos(high, 'y', true),
            cap = 3.5 * px;
          c.beginPath();
          c.moveTo(x, y0);
          c.lineTo(x, y1);
          c.moveTo(x - cap, y0);
          c.lineTo(x + cap, y0);
          c.moveTo(x - cap, y1);
          c.lineTo(x + cap, y1);
          c.stroke();
          lastBar = x;
        }
        const p = new Path2D(shapePath(s.shape, x, y, r));
        if (!crowded) {
          c.save();
          c.strokeStyle = t.background;
          c.lineWidth = px * 3;
          c.stroke(p);
          c.restore();
        }
        c.fill(p);
      }
    }
  });
}
/** A line from point to point. */
function join(u: uPlot, c: CanvasRenderingContext2D, s: ChartSeries): void {
  c.beginPath();
  s.x.forEach((x, i) => {
    const v = s.y[i];
    if (v !== null && v !== undefined) c.lineTo(u.valToPos(x, 'x', true), u.valToPos(v, 'y', true));
  });
  c.stroke();
}
