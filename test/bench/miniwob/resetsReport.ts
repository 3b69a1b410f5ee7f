import { bar, summary, type Bar } from '../lib/report.js';

/** From the end of one episode to the first screen of the next on the same desktop, all in ms. */
export interface Reset {
  /** Of the next episode. */
  readonly page: string;
  /** The pool's part: other programs and pages end, storage is cleared, the first frame is compared. */
  readonly tidied: number;
  /** The browser's part: the page is open, the episode has begun and is drawn. */
  readonly begun: number;
  /** Until the desktop is at rest. */
  readonly rested: number;
  /** Until its screen is here. */
  readonly seen: number;
  readonly whole: number;
}
export interface Resets {
  /** Each on the page of the episode before. */
  readonly same: readonly Reset[];
  /** Each on another page than the episode before. */
  readonly other: readonly Reset[];
}

const PARTS = ['whole', 'tidied', 'begun', 'rested', 'seen'] as const;
/** The slowest pages that a row names. */
const SLOWEST = 3;
const round = (ms: number): number => Math.round(10 * ms) / 10;

/** A row for each part of a reset, ms, on the same page and on another. */
export const resetRows = ({ same, other }: Resets): Record<string, unknown>[] => [
  ...rowsOf('the same page', same),
  ...rowsOf('another page', other),
];

function rowsOf(on: string, resets: readonly Reset[]): Record<string, unknown>[] {
  const pages = new Set(resets.map((r) => r.page)).size,
    slowest = [...resets].sort((a, b) => b.whole - a.whole).slice(0, SLOWEST);
  return PARTS.map((part) => {
    const s = summary(resets.map((r) => r[part]));
    return {
      section: 'resets',
      on,
      pages,
      part,
      n: s.n,
      'min ms': round(s.min),
      'p50 ms': round(s.p50),
      'p95 ms': round(s.p95),
      'max ms': round(s.max),
      slowest: part === 'whole' ? slowest.map((r) => `${r.page} ${round(r.whole)}`).join(', ') : '',
    };
  });
}

/**
 * By the median of the browser's part, which is what the goals are of: a page is begun anew, or another one opened,
 * through the browser's own protocol. The whole, which has the pool's part and rests in it, stands beside it.
 */
export const resetBars = ({ same, other }: Resets): Bar[] => [
  resetBar('reset_same_page_ms', same, '<= 50'),
  resetBar('reset_other_page_ms', other, '<= 250'),
];
function resetBar(name: string, resets: readonly Reset[], goal: string): Bar {
  const begun = summary(resets.map((r) => r.begun)),
    whole = summary(resets.map((r) => r.whole));
  return bar(
    name,
    round(begun.p50),
    `ms until the page has begun, median of ${begun.n} (95 %: ${round(begun.p95)}); from episode to episode ${round(whole.p50)} (95 %: ${round(whole.p95)})`,
    goal,
  );
}

/** `n` names or all, evenly spread over a sorted list, none twice. */
export const spread = (names: readonly string[], n: number): string[] => {
  const k = Math.min(n, names.length);
  return Array.from({ length: k }, (_, i) => names[Math.floor((i * names.length) / k)]!);
};
