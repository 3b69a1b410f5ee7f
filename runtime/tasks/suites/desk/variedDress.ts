import type { Random } from '../../../domain/index.js';
import { DRESSES, type Dress } from './scene.js';

const FAMILIES = ['DejaVu Sans', 'DejaVu Sans Condensed'];
/** One in this many tasks of varied looks has the plain one. */
const PLAIN = 4;
/**
 * Training with varied looks: a dress drawn for each task, light or dark, in tones down to nearly grey; one in four is
 * the plain one. The dark theme and the serifs of the held-out looks never occur.
 */
export function variedDress(r: Random): Dress {
  if (r.int(PLAIN) === 0) return DRESSES.train;
  const hue = r.int(360),
    saturation = 8 + r.int(68),
    dark = r.int(2) === 0,
    lightness = (from: number, span: number): number => {
      const l = from + r.int(span);
      return dark ? 100 - l : l;
    },
    colour = (l: number): string => rgb(hue, saturation, l),
    window = colour(lightness(70, 24)),
    field = colour(lightness(80, 18)),
    button = colour(lightness(66, 28)),
    edge = colour(10 + r.int(70)),
    chosen = rgb((hue + 60 + r.int(240)) % 360, saturation, dark ? 40 : 60),
    text = rgb(hue, saturation, dark ? 94 : 8),
    family = r.pick(FAMILIES),
    weight = r.pick(['bold', 'normal']),
    points = 11 + r.int(3);
  return {
    letters: `* { font: ${weight} ${points}pt "${family}"; }`,
    colours: sheet({
      'window, .background, menu, menubar, toolbar': [window, text],
      'entry, treeview.view, list, iconview, calendar': [field, text],
      'treeview.view:selected, calendar:selected, row:selected, *:selected': [chosen],
      'treeview.view header button, button': [button, text, edge],
    }),
    ground: sheet({ 'textview text': [field, text] }),
    terminal: `-bg '${field}' -fg '${text}'`,
    zone: DRESSES.train.zone,
  };
}
/** A style sheet from selectors, each with its ground, text and border. */
const sheet = (rules: Readonly<Record<string, readonly [string, string?, string?]>>): string =>
  Object.entries(rules)
    .map(([selectors, [ground, text, border]]) => {
      const more = [text && `color: ${text};`, border && `border-color: ${border};`].filter(Boolean).join(' ');
      return `${selectors} { background-image: none; background-color: ${ground}; text-shadow: none; ${more} }`;
    })
    .join('\n');
/** Hue in degrees, the others in percent, as #rrggbb. */
function rgb(hue: number, saturation: number, lightness: number): string {
  const s = saturation / 100,
    l = lightness / 100,
    a = s * Math.min(l, 1 - l);
  const part = (n: number): string => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))))
      .toString(16)
      .padStart(2, '0');
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}
