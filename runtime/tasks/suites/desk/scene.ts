import { random, type Random } from '../../../domain/index.js';
import { TRAINED, type Lexicon } from './lexicon.js';

/** How applications look: large bold letters, so that they can be read at half resolution. */
export interface Look {
  /** GTK 3 style sheet. */
  readonly css: string;
  /** GTK 2 (the file manager). */
  readonly gtk2: string;
  /** GSettings, for GSETTINGS_BACKEND=keyfile. */
  readonly settings?: string;
  /** The template's scripts know places by the size of the letters, which stay as they are. */
  readonly fixedLetters?: true;
  /** The template's programs choose the colour of typed text themselves, so the ground below stays light. */
  readonly fixedGround?: true;
}

/** How a desktop is dressed, beside the look that a template wants: what is held out as looks. */
export interface Dress {
  /** GTK 3 theme as lines of settings.ini; absent: the image's. */
  readonly theme?: string;
  /** Style sheet after the look's own: other letters. */
  readonly letters?: string;
  /** Style sheet after that: other colours; `ground`: where text is typed. */
  readonly colours?: string;
  readonly ground?: string;
  /** Options of xterm. */
  readonly terminal?: string;
  /** Zone of the screen in which the corner of a window may be. */
  readonly zone: Zone;
}
export type Zone = 'train' | 'dev' | 'test' | 'any';

/** Side of the squares that the screen is cut into, and how many kinds of them there are. */
export const SQUARE = 32;
const KINDS = 5;
/** Window corners in two fifths of the screen, in squares of 32 pixels, are never seen in training. */
export function zoneOf(x: number, y: number): Exclude<Zone, 'any'> {
  const kind = (Math.floor(x / SQUARE) + 2 * Math.floor(y / SQUARE)) % KINDS;
  return kind === 0 ? 'test' : kind === 2 ? 'dev' : 'train';
}

export const DRESSES: Readonly<Record<'legacy' | 'train' | 'dev' | 'test', Dress>> = {
  legacy: { zone: 'any' },
  train: { zone: 'train' },
  dev: {
    theme: 'gtk-theme-name=HighContrast',
    terminal: "-bg '#fdf6e3' -fg '#073642'",
    zone: 'dev',
  },
  test: {
    theme: 'gtk-theme-name=Adwaita\ngtk-application-prefer-dark-theme=1',
    letters: '* { font-family: "DejaVu Serif"; font-size: 13pt; }\nbutton label { letter-spacing: 0; }',
    terminal: "-bg '#1d1f21' -fg '#c5c8c6'",
    zone: 'test',
  },
};

/** The sources a template draws from: chance, the lexicon, and how the desktop is dressed. */
export interface Scene extends Random {
  readonly words: Lexicon;
  readonly dress: Dress;
  /** Corners of the windows placed so far (`place` adds to it); not `free`: there was hardly any room. */
  readonly corners: { readonly x: number; readonly y: number; readonly free: boolean }[];
}
export const scene = (seed: string, words: Lexicon = TRAINED, dress: Dress = DRESSES.legacy): Scene => ({
  ...random(seed),
  words,
  dress,
  corners: [],
});
