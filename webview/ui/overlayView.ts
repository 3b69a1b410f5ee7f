/**
 * Draws marks, notes and the location heat map over a screenshot. Sizes are in box pixels: they stay the same at every
 * zoom.
 */
import { POINTERS, type Point } from './actionLooks.js';
import { h, icon, s } from './dom.js';
import { percent } from './format.js';
import { arrow, type HeatCell, type Mark, type Note } from './overlay.js';
import type { View } from './viewMath.js';
import { t } from './words.js';

/** Radius of a mark at the usual zoom; smaller where the screen is. */
const fullRing = 16,
  smallRing = 11;
/** Every line twice: a halo that parts it from any screenshot, and the ink. */
const line = (d: string): SVGElement[] => [s('path', { d, class: 'halo' }), s('path', { d, class: 'ink' })];
const circle = (c: Point, r: number): string =>
  `M${c.x - r},${c.y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`;
const cross = (c: Point, from: number, to: number): string =>
  [
    [1, 0],
    [-1, 0],
    [0, 1],
    [0, -1],
  ]
    .map(([x, y]) => `M${c.x + x! * from},${c.y + y! * from}L${c.x + x! * to},${c.y + y! * to}`)
    .join('');
const directionWords = { up: t('up'), down: t('down'), left: t('left'), right: t('right') } as const;
const dot = (c: Point, r: number): SVGElement => s('circle', { cx: c.x, cy: c.y, r, class: 'dot' });
const words = (at: Point, t: string, ring: number): SVGElement =>
  s('text', { x: at.x + ring + 5, y: at.y - ring + 1, class: 'words' }, t);

function markView(m: Mark, to: (p: Point) => Point, ring: number): SVGElement {
  const g = s('g', { class: 'mark' }),
    number = m.order ? `${m.order}` : '';
  if (m.kind === 'point') {
    const c = to(m.at),
      look = POINTERS[m.button];
    g.append(...line(circle(c, ring) + cross(c, ring - 5, ring + 8)));
    for (let i = 1; i < look.rings; i++) g.append(...line(circle(c, ring - 6 * i)));
    if (look.half)
      g.append(s('path', { d: `M${c.x},${c.y - ring}a${ring},${ring} 0 0,1 0,${2 * ring}z`, class: 'half' }));
    g.append(dot(c, 2.5));
    const label = [number, look.label].filter(Boolean).join(' ');
    if (label) g.append(words(c, label, ring));
  } else if (m.kind === 'drag') {
    const a = to(m.from),
      b = to(m.to),
      w = arrow(a, b, 16);
    g.append(
      ...line(circle(a, 8)),
      ...line(`M${a.x},${a.y}L${w.neck.x},${w.neck.y}`),
      s('path', {
        d: `M${w.tip.x},${w.tip.y}L${w.wings[0].x},${w.wings[0].y}L${w.wings[1].x},${w.wings[1].y}z`,
        class: 'head',
      }),
      dot(a, 2.5),
    );
    g.append(words(a, [number, t('drag')].filter(Boolean).join(' '), ring));
  } else {
    const c = to(m.at),
      turn = { up: 0, right: 90, down: 180, left: 270 }[m.direction];
    const chevrons = [-6, 0, 6].map((y) => `M-6,${y + 4}L0,${y - 2}L6,${y + 4}`).join('');
    g.append(
      ...line(circle(c, ring)),
      s('g', { transform: `translate(${c.x} ${c.y}) rotate(${turn})` }, line(chevrons)),
    );
    g.append(
      words(
        c,
        [number, directionWords[m.direction], m.amount === undefined ? '' : `×${m.amount}`].filter(Boolean).join(' '),
        ring,
      ),
    );
  }
  return g;
}

/** Numbers of the most probable places, beside them where that covers neither a mark nor another number. */
function heatLabels(
  cells: readonly HeatCell[],
  marks: readonly Point[],
  ring: number,
): { readonly x: number; readonly y: number; readonly text: string }[] {
  const width = 42,
    height = 15,
    out: { x: number; y: number; text: string }[] = [];
  for (const c of cells.slice(-5).reverse()) {
    const middle = c.y + c.height / 2 + 4;
    for (const at of [
      { x: c.x + c.width + 5, y: middle },
      { x: c.x - width - 1, y: middle },
      { x: c.x, y: c.y - 5 },
      { x: c.x, y: c.y + c.height + height },
    ]) {
      const clear =
        marks.every(
          (m) =>
            m.x < at.x - ring - 6 ||
            m.x > at.x + width + ring + 6 ||
            m.y < at.y - height - ring - 6 ||
            m.y > at.y + ring + 6,
        ) && out.every((l) => Math.abs(l.x - at.x) > width || Math.abs(l.y - at.y) > height);
      if (clear) {
        out.push({ ...at, text: percent(c.probability) });
        break;
      }
    }
  }
  return out;
}

/** Children of the overlay SVG. */
export function overlayView(o: {
  readonly marks: readonly Mark[];
  readonly heat: readonly HeatCell[];
  readonly highlight?: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
  readonly view: View;
}): SVGElement[] {
  const { scale, x, y } = o.view,
    ring = scale < 0.6 ? smallRing : fullRing,
    to = (p: Point): Point => ({ x: x + p.x * scale, y: y + p.y * scale });
  const rect = (c: {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
  }): Record<string, number> => {
    const p = to(c);
    return { x: p.x, y: p.y, width: c.width * scale, height: c.height * scale };
  };
  return [
    s(
      'g',
      { class: 'heat' },
      o.heat.map((c) => s('rect', { ...rect(c), 'fill-opacity': (0.12 + 0.68 * c.heat).toFixed(3) })),
      heatLabels(
        o.heat.map((c) => ({ ...c, ...rect(c) })),
        o.marks.flatMap((m) => ('at' in m ? [to(m.at)] : [to(m.from), to(m.to)])),
        ring,
      ).map((l) => s('text', { x: l.x, y: l.y, class: 'words' }, l.text)),
    ),
    s(
      'g',
      null,
      o.marks.map((m) => markView(m, to, ring)),
    ),
    ...(o.highlight ? [s('rect', { ...rect(o.highlight), class: 'highlight' })] : []),
  ];
}

export function noteView(n: Note): HTMLElement {
  const number = n.order ? h('span', { class: 'order' }, n.order) : undefined;
  switch (n.kind) {
    case 'typed':
      return h(
        'div',
        { class: 'note typed' },
        number,
        icon('text-size'),
        h('span', { class: 'typed-text' }, n.text),
        h('span', { class: 'caret' }),
      );
    case 'keys':
      return h(
        'div',
        { class: 'note keys' },
        number,
        n.caps.flatMap((c, i) => [i ? h('span', { class: 'plus' }, '+') : undefined, h('kbd', null, c)]),
      );
    case 'flag':
      return h('div', { class: `note flag ${n.tone}` }, number, icon(n.icon), h('span', null, n.text));
  }
}
