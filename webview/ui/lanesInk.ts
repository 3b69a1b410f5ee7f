/** How the lanes look: a colour and a pattern for each activity, and the painting of rows, bands and axis. */
import type { Activity, Lane, LaneKind } from '../../runtime/protocol/types.js';
import { durationTicks } from './chartMath.js';
import type { Hue } from './chartSpec.js';
import { fade, theme, type Theme } from './chartTheme.js';
import { activityLook, type Pattern } from './lanesLook.js';
import { loadOf, spansIn, type Layout, type SyncBand, type Window } from './lanesMath.js';
import { t } from './words.js';

export const activities = Object.keys(activityLook) as readonly Exclude<Activity, 'idle'>[];
export const activityWord = (a: Activity): string => (a === 'idle' ? t('idle') : activityLook[a].word);
export const kindName: Readonly<Record<LaneKind, string>> = {
  desktop: t('Desktops'),
  replica: t('Policy replicas'),
  trainer: t('Trainer'),
};

export type Fills = Readonly<Record<Exclude<Activity, 'idle'>, CanvasPattern | string>>;
/** Patterns in device pixels for this context. */
export function makeFills(c: CanvasRenderingContext2D, t: Theme = theme()): Fills {
  return Object.fromEntries(
    activities.map((a) => [a, fillOf(c, activityLook[a].hue, activityLook[a].pattern, t)]),
  ) as unknown as Fills;
}
function fillOf(c: CanvasRenderingContext2D, hue: Hue, pattern: Pattern, t: Theme): CanvasPattern | string {
  const px = Math.max(1, Math.round(devicePixelRatio)),
    n = 6 * px,
    colour = t.hues[hue];
  if (pattern === 'solid') return colour;
  const tile = document.createElement('canvas');
  tile.width = tile.height = n;
  const d = tile.getContext('2d')!;
  d.fillStyle = t.background;
  d.fillRect(0, 0, n, n);
  d.fillStyle = t.contrast ? t.background : fade(colour, 0.4);
  d.fillRect(0, 0, n, n);
  d.strokeStyle = d.fillStyle = colour;
  d.lineWidth = 1.6 * px;
  d.lineCap = 'square';
  const line = (...p: [number, number, number, number]): void => {
    d.beginPath();
    d.moveTo(p[0], p[1]);
    d.lineTo(p[2], p[3]);
    d.stroke();
  };
  if (pattern === 'slash' || pattern === 'cross') for (const o of [-n, 0, n]) line(o, n, o + n, 0);
  if (pattern === 'backslash' || pattern === 'cross') for (const o of [-n, 0, n]) line(o, 0, o + n, n);
  if (pattern === 'vertical') line(n / 2, 0, n / 2, n);
  if (pattern === 'horizontal') line(0, n / 2, n, n / 2);
  if (pattern === 'dots') {
    d.beginPath();
    d.arc(n / 2, n / 2, 1.4 * px, 0, 7);
    d.fill();
  }
  if (pattern === 'checks') {
    d.fillRect(0, 0, n / 2, n / 2);
    d.fillRect(n / 2, n / 2, n / 2, n / 2);
  }
  return c.createPattern(tile, 'repeat') ?? colour;
}

export interface Scene {
  readonly width: number;
  readonly height: number;
  readonly gutter: number;
  readonly scroll: number;
  readonly window: Window;
  readonly lanes: readonly Lane[];
  /** Calls that a replica may have under way at a time; absent where it answers one after the other. */
  readonly concurrency?: number | undefined;
  readonly layout: Layout;
  readonly bands: readonly SyncBand[];
  readonly cursor?: { readonly row: number; readonly span: number };
  readonly focused: boolean;
}
/** Sizes a canvas for the screen's pixels and clears it; lengths are CSS pixels from here on. */
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const px = devicePixelRatio,
    w = Math.round(width * px),
    hgt = Math.round(height * px);
  if (canvas.width !== w || canvas.height !== hgt) {
    canvas.width = w;
    canvas.height = hgt;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const c = canvas.getContext('2d')!;
  c.setTransform(px, 0, 0, px, 0, 0);
  c.clearRect(0, 0, width, height);
  return c;
}

export function paintAxis(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
  gutter: number,
  w: Window,
  origin: number,
  label: (ms: number, step: number) => string,
): void {
  const c = prepare(canvas, width, height),
    t = theme(),
    plot = width - gutter,
    x = (at: number): number => gutter + ((at - w.from) / (w.to - w.from)) * plot;
  const ticks = durationTicks(w.from - origin, w.to - origin, Math.max(2, plot / 90)),
    step = ticks.length > 1 ? ticks[1]! - ticks[0]! : 1000;
  c.font = `${Math.round(t.fontPx * 0.85)}px ${t.font}`;
  c.fillStyle = t.dim;
  c.strokeStyle = t.grid;
  c.textBaseline = 'middle';
  for (const k of ticks) {
    const at = Math.round(x(k + origin)) + 0.5,
      words = label(k, step),
      half = c.measureText(words).width / 2;
    c.beginPath();
    c.moveTo(at, height - 5);
    c.lineTo(at, height);
    c.stroke();
    if (at - half > gutter - 6 && at + half < width) c.fillText(words, at - half, height / 2 - 1);
  }
}

export function paintLanes(canvas: HTMLCanvasElement, scene: Scene, fills: Fills): void {
  const { width, height, gutter, window: w, layout } = scene,
    c = prepare(canvas, width, height),
    t = theme(),
    plot = width - gutter;
  const x = (at: number): number => gutter + ((at - w.from) / (w.to - w.from)) * plot;
  c.translate(0, -scene.scroll);
  c.textBaseline = 'middle';
  let named = 0;
  for (const g of layout.headings) {
    c.font = `600 ${Math.round(t.fontPx * 0.85)}px ${t.font}`;
    c.fillStyle = t.dim;
    const words = `${kindName[g.kind]} (${g.count})`;
    c.fillText(words, 0, g.y + g.height / 2);
    if (g.kind === 'replica') named = c.measureText(words).width;
  }
  c.font = `${Math.round(t.fontPx * 0.85)}px ${t.font}`;
  const replicas = layout.rows.filter((r) => scene.lanes[r.lane]!.kind === 'replica'),
    top = replicas[0],
    bottom = replicas.at(-1);
  c.save();
  for (const r of layout.rows) {
    if (r.y + r.height < scene.scroll || r.y > scene.scroll + height) continue;
    const lane = scene.lanes[r.lane]!;
    c.fillStyle = t.foreground;
    c.fillText(shorten(c, lane.id, gutter - 10), 0, r.y + r.height / 2);
    c.fillStyle = fade(t.foreground, t.contrast ? 0.14 : 0.06);
    c.fillRect(gutter, r.y, plot, r.height);
  }
  c.beginPath();
  c.rect(gutter, 0, plot, layout.height);
  c.clip();
  if (top && bottom) paintBands(c, scene, t, x, top.y, bottom.y + bottom.height, named + 8);
  for (const r of layout.rows) {
    if (r.y + r.height < scene.scroll || r.y > scene.scroll + height) continue;
    const lane = scene.lanes[r.lane]!,
      overlaps = lane.kind === 'replica' && scene.concurrency !== undefined,
      [first, b] = spansIn(lane, w),
      // Calls that overlap do not end in the order in which they began.
      a = overlaps ? 0 : first;
    if (overlaps) paintLoad(c, t, { lane, row: r, gutter, plot, window: w, concurrency: scene.concurrency! });
    for (let i = a; i < b; i++) {
      const what = lane.what[i]!;
      if (what === 'idle' || (overlaps && (what !== 'sync' || lane.start[i]! + lane.ms[i]! <= w.from))) continue;
      const from = Math.max(gutter, x(lane.start[i]!)),
        wide = Math.max(0.75, x(lane.start[i]! + lane.ms[i]!) - from);
      // Too narrow for a pattern: the plain colour.
      c.fillStyle = wide < 5 ? t.hues[activityLook[what].hue] : fills[what];
      c.fillRect(from, r.y, wide > 3 ? wide - 0.5 : wide, r.height);
      if (t.contrast && wide > 4) {
        c.strokeStyle = t.hues[activityLook[what].hue];
        c.lineWidth = 1;
        c.strokeRect(from + 0.5, r.y + 0.5, wide - 1.5, r.height - 1);
      }
    }
  }
  c.restore();
  paintCursor(c, scene, t, x);
}
function paintCursor(c: CanvasRenderingContext2D, scene: Scene, t: Theme, x: (at: number) => number): void {
  const cur = scene.cursor,
    row = cur && scene.layout.rows[cur.row],
    lane = row && scene.lanes[row.lane];
  if (cur && row && lane && lane.start[cur.span] !== undefined) {
    const from = x(lane.start[cur.span]!),
      wide = Math.max(3, x(lane.start[cur.span]! + lane.ms[cur.span]!) - from);
    c.lineWidth = 2;
    c.strokeStyle = scene.focused ? t.focus : t.foreground;
    c.strokeRect(Math.max(scene.gutter, from) - 1, row.y - 1, wide + 2, row.height + 2);
  }
}
/** Width of a column of load. */
const COLUMN_PX = 2;
/** Draws how many calls of a replica were under way at a time, from the bottom of its row up. */
function paintLoad(
  c: CanvasRenderingContext2D,
  t: Theme,
  o: {
    readonly lane: Lane;
    readonly row: { readonly y: number; readonly height: number };
    readonly gutter: number;
    readonly plot: number;
    readonly window: Window;
    readonly concurrency: number;
  },
): void {
  const columns = Math.max(1, Math.floor(o.plot / COLUMN_PX)),
    wide = o.plot / columns;
  c.fillStyle = t.hues[activityLook.decide.hue];
  loadOf(o.lane, o.window, columns, o.concurrency).forEach((share, k) => {
    const high = share > 0 ? Math.max(1, share * o.row.height) : 0;
    c.fillRect(o.gutter + k * wide, o.row.y + o.row.height - high, wide, high);
  });
}

/** A new version on its way over the replicas: a tinted stripe across all of them, named where there is room. */
function paintBands(
  c: CanvasRenderingContext2D,
  scene: Scene,
  t: Theme,
  x: (at: number) => number,
  top: number,
  bottom: number,
  freeFrom: number,
): void {
  let free = freeFrom;
  for (const b of scene.bands) {
    if (b.to < scene.window.from || b.from > scene.window.to) continue;
    const from = x(b.from),
      wide = Math.max(2, x(b.to) - from);
    c.fillStyle = fade(t.hues.orange, t.contrast ? 0.5 : 0.35);
    c.fillRect(from, top - 2, wide, bottom - top + 4);
    const words = `v${b.version}`,
      w = c.measureText(words).width;
    if (from > free) {
      c.fillStyle = t.dim;
      c.fillText(words, from, top - 9);
      free = from + w + 8;
    }
  }
}
function shorten(c: CanvasRenderingContext2D, words: string, width: number): string {
  if (c.measureText(words).width <= width) return words;
  let s = words;
  while (s.length > 1 && c.measureText(`…${s}`).width > width) s = s.slice(1);
  return `…${s}`;
}
