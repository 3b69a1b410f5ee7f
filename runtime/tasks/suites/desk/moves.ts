import type { Desktop } from '../../../cluster/types.js';
import type { Action, Point, Random, Size } from '../../../domain/index.js';
import { StudioError } from '../../../domain/index.js';
import { desktopJson } from '../../../foreign/desktopJson.js';
import { isObject } from '../../../foreign/json.js';
import type { Box } from './box.js';

/**
 * Scripted solutions: lists of moves, each turned into an action by looking at the desktop as it is (never at what it
 * should be).
 */
export type Move = (s: Sight) => Promise<Action | Again>;
/** The move is called again after this action (e.g. scroll until a row shows). */
export interface Again {
  readonly again: Action;
}

/** A widget as AT-SPI reports it (overlay/opt/dart/a11y.py). */
export interface Widget {
  readonly app: string;
  readonly window: string;
  readonly role: string;
  readonly name: string;
  readonly text?: string;
  readonly states: readonly string[];
  readonly box: readonly [x: number, y: number, width: number, height: number];
}
export interface WidgetQuery {
  readonly role: string;
  readonly name?: string;
  readonly window?: string;
  readonly app?: string;
  /** Which of several, top to bottom; default 0. */
  readonly nth?: number;
}

/** How many times to look for a missing widget, with the desktop at rest in between. */
const LOOKS = 8;
/** The embedded policy's cells at 640x400 (GLYPH_SPEC): a click lands on a centre. */
const CELL = 16;

/** A scripted solution's view of a desktop. One per oracle. */
export class Sight {
  readonly desktop: Desktop;
  readonly r: Random;
  constructor(desktop: Desktop, r: Random) {
    this.desktop = desktop;
    this.r = r;
  }

  /** Showing widgets. Rejects with `desktop.exec` when the desktop was started without a11y. */
  async widgets(): Promise<Widget[]> {
    const out = await this.desktop.exec(['/usr/bin/python3', '/opt/dart/a11y.py'], { timeoutMs: 15_000 });
    if (out.code !== 0) {
      throw new StudioError(
        'desktop.exec',
        `The scripted solution cannot see widgets: ${out.stderr.toString('utf8').trim().slice(-200)}`,
        'Start the desktop with a11y: true.',
      );
    }
    return widgetsOf(out.stdout);
  }

  /** Widgets of a kind, top to bottom, left to right; waits until there are enough of them. */
  async find(query: WidgetQuery): Promise<Widget> {
    for (let look = 1; ; look++) {
      const all = (await this.widgets()).filter(
        (w) =>
          w.role === query.role &&
          (query.name === undefined || w.name.trim() === query.name) &&
          (query.window === undefined || w.window === query.window) &&
          (query.app === undefined || w.app.includes(query.app)),
      );
      const found = all.sort((a, b) => a.box[1] - b.box[1] || a.box[0] - b.box[0])[query.nth ?? 0];
      if (found) return found;
      if (look === LOOKS)
        throw new StudioError(
          'internal',
          `The scripted solution did not find ${JSON.stringify(query)} on the desktop.`,
          "Please report this with the task's id.",
        );
      await this.desktop.settle({ horizonMs: 100 * look });
    }
  }

  /**
   * The area of an X window (without its frame), by class or title (regular expressions); the newest when there are
   * several.
   */
  async window(match: { readonly class?: string; readonly title?: string }): Promise<Box> {
    for (let look = 1; ; look++) {
      // xwininfo, because xdotool counts a window's offset in its frame twice.
      const search = match.class !== undefined ? '--class' : '--name',
        name = `^${match.class ?? match.title ?? ''}$`;
      const out = await this.desktop.exec(
        ['bash', '-c', 'for w in $(xdotool search --onlyvisible "$0" "$1"); do xwininfo -id $w; done', search, name],
        { timeoutMs: 10_000 },
      );
      const found = windowBoxes(out.stdout).at(-1);
      if (found) return found;
      if (look === LOOKS)
        throw new StudioError(
          'internal',
          `The scripted solution did not find the window ${JSON.stringify(match)}.`,
          "Please report this with the task's id.",
        );
      await this.desktop.settle({ horizonMs: 100 * look });
    }
  }

  get screen(): Size {
    return this.desktop.screen;
  }
  pointIn(box: Box): Point {
    return pointIn(box, this.r);
  }
}

/** Bounds of a11y.py's answer: far more than fits on a screen. */
const WIDGETS = { bytes: 4 << 20, depth: 8, values: 1 << 15 };

/** The widgets that a11y.py printed. Programs of the desktop name them, and may end it or answer in its place. */
export function widgetsOf(printed: Buffer): Widget[] {
  const refused = (why: string): StudioError =>
    new StudioError(
      'desktop.exec',
      `The scripted solution cannot see widgets: their list ${why}.`,
      'Close other programs of the desktop, or start it again.',
    );
  const list = desktopJson(printed, WIDGETS, refused);
  if (!Array.isArray(list) || !list.every(isWidget)) throw refused('holds something else');
  return list;
}

const texts = (...all: readonly unknown[]): boolean => all.every((t) => typeof t === 'string');
const isWidget = (w: unknown): w is Widget =>
  isObject(w) &&
  texts(w['app'], w['window'], w['role'], w['name'], w['text'] ?? '') &&
  Array.isArray(w['states']) &&
  texts(...(w['states'] as unknown[])) &&
  Array.isArray(w['box']) &&
  w['box'].length === 4 &&
  w['box'].every((n) => Number.isSafeInteger(n));

/** Bytes of xwininfo's output that are read: hundreds of windows. The newest are at the end. */
const MOST_WINDOWS = 1 << 18;
const PLACE = /^ {0,4}(Absolute upper-left X|Absolute upper-left Y|Width|Height): {1,4}(-?\d{1,6})$/;

/** The areas of windows, as xwininfo prints one after the other. A title among them may hold any line. */
export function windowBoxes(printed: Buffer): Box[] {
  const boxes: Box[] = [];
  let box: { x: number; y?: number; width?: number } | undefined;
  for (const line of printed.subarray(-MOST_WINDOWS).toString('utf8').split('\n')) {
    const m = PLACE.exec(line);
    if (!m) continue;
    const n = Number(m[2]);
    if (m[1] === 'Absolute upper-left X') box = { x: n };
    else if (!box) continue;
    else if (m[1] === 'Absolute upper-left Y') box.y = n;
    else if (m[1] === 'Width') box.width = n;
    else {
      const { x, y, width } = box;
      if (y !== undefined && width !== undefined && width > 1 && n > 1) boxes.push({ x, y, width, height: n });
      box = undefined;
    }
  }
  return boxes;
}

/**
 * A point to click: a random one of the cell centres well inside the box (a quarter of its size from every edge), else
 * of those further out, else the middle. At other screen sizes the same grid does no harm.
 */
export function pointIn(b: Box, r: Random): Point {
  for (const share of [0.25, 0.12, 0]) {
    const mx = Math.max(2, b.width * share),
      my = Math.max(2, b.height * share);
    const x = firstCentre(b.x + mx),
      y = firstCentre(b.y + my),
      columns = centresUpTo(x, b.x + b.width - mx),
      rows = centresUpTo(y, b.y + b.height - my);
    if (columns * rows === 0) continue;
    // Drawn by number and not from a list of cells: programs say how large their widgets are.
    const n = r.int(columns * rows);
    return { x: x + (n % columns) * CELL, y: y + Math.floor(n / columns) * CELL };
  }
  return { x: Math.round(b.x + b.width / 2), y: Math.round(b.y + b.height / 2) };
}
const firstCentre = (from: number): number => Math.ceil((from - CELL / 2) / CELL) * CELL + CELL / 2;
const centresUpTo = (first: number, last: number): number => Math.max(0, Math.floor((last - first) / CELL) + 1);

/**
 * A widget's box; of a wide list row only where its words stand, and of a wide one-line field only the beginning: where
 * people click.
 */
export const boxOf = (w: Widget): Box => {
  const [x, y, width, height] = w.box,
    words = w.name.trim().length * 13 + 12;
  const part = w.role === 'table cell' && words > 12 ? words : w.role === 'text' && height < 60 ? 96 : width;
  return { x, y, width: width > 1.5 * part ? part : width, height };
};

// Moves.
const on =
  (type: 'click' | 'left_double') =>
  (query: WidgetQuery): Move =>
  async (s) => ({ type, at: s.pointIn(boxOf(await s.find(query))) });
export const click = on('click');
export const doubleClick = on('left_double');
export type Where = (s: Sight) => Promise<Box>;
export const clickBox =
  (where: Where): Move =>
  async (s) => ({ type: 'click', at: s.pointIn(await where(s)) });
export const button = (name: string, window?: string): Move => click({ role: 'push button', name, window });
export const type =
  (text: string): Move =>
  () =>
    Promise.resolve({ type: 'type', text });
export const enterText = (text: string): Move => type(`${text}\n`);
export const key =
  (chord: string): Move =>
  () =>
    Promise.resolve({ type: 'hotkey', keys: chord.split('+') });
export const doubleClickBox =
  (where: Where): Move =>
  async (s) => ({ type: 'left_double', at: s.pointIn(await where(s)) });
export const drag =
  (from: Where, to: Where): Move =>
  async (s) => ({ type: 'drag', from: s.pointIn(await from(s)), to: s.pointIn(await to(s)) });
export const finish: Move = () => Promise.resolve({ type: 'finished' });
export const giveUp: Move = () => Promise.resolve({ type: 'fail' });
/**
 * Turn the wheel over a place until at least half of the widget's height shows, then click what shows of it. A turn of
 * the wheel is about a page, so that a widget at its edge may never show whole.
 */
export const scrollTo =
  (query: WidgetQuery, area: WidgetQuery): Move =>
  async (s) => {
    const view = boxOf(await s.find(area));
    const target = (await s.widgets()).find((w) => w.role === query.role && w.name.trim() === query.name),
      box = target && boxOf(target),
      top = box && Math.max(box.y, view.y),
      shown = box && { ...box, y: top!, height: Math.min(box.y + box.height, view.y + view.height) - top! };
    if (shown && shown.height >= box.height / 2) return { type: 'click', at: s.pointIn(shown) };
    const direction = box && box.y < view.y ? 'up' : 'down';
    return { again: { type: 'scroll', at: s.pointIn(view), direction, amount: 5 } };
  };
