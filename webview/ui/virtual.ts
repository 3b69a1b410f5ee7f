/** Maths of a virtual strip: items of one size along one axis, only those near the window exist; pure. */
export interface Strip {
  readonly count: number;
  readonly item: number;
  readonly viewport: number;
  readonly scroll: number;
}

/** Half-open range of items to keep in the document: those seen and `overscan` more on each side. */
export function windowOf(s: Strip, overscan: number): { readonly from: number; readonly to: number } {
  if (s.count <= 0 || s.item <= 0) return { from: 0, to: 0 };
  const first = Math.floor(clampScroll(s, s.scroll) / s.item),
    last = Math.ceil((clampScroll(s, s.scroll) + Math.max(0, s.viewport)) / s.item);
  return { from: Math.max(0, first - overscan), to: Math.min(s.count, Math.max(last, first + 1) + overscan) };
}
export const clampScroll = (s: Strip, scroll: number): number =>
  Math.max(0, Math.min(scroll, s.count * s.item - s.viewport));

/**
 * Scroll position that shows the item whole, with part of its neighbour where there is one; unchanged when it does
 * already.
 */
export function scrollTo(s: Strip, index: number): number {
  const margin = Math.min(s.item / 2, (s.viewport - s.item) / 2),
    start = index * s.item,
    now = clampScroll(s, s.scroll);
  if (margin <= 0) return clampScroll(s, start);
  if (start - margin < now) return clampScroll(s, start - margin);
  if (start + s.item + margin > now + s.viewport) return clampScroll(s, start + s.item + margin - s.viewport);
  return now;
}
/** Items in one page of Page Up and Page Down. */
export const pageOf = (s: Strip): number => Math.max(1, Math.floor(s.viewport / s.item) - 1);

export type Move = 'previous' | 'next' | 'first' | 'last' | 'pageBack' | 'pageOn';
export function move(s: Strip, from: number, m: Move): number {
  const to =
    m === 'previous'
      ? from - 1
      : m === 'next'
        ? from + 1
        : m === 'first'
          ? 0
          : m === 'last'
            ? s.count - 1
            : m === 'pageBack'
              ? from - pageOf(s)
              : from + pageOf(s);
  return Math.max(0, Math.min(s.count - 1, to));
}
/** The move a key means in a horizontal list. */
export const moveOfKey: Readonly<Record<string, Move>> = {
  ArrowLeft: 'previous',
  ArrowUp: 'previous',
  ArrowRight: 'next',
  ArrowDown: 'next',
  Home: 'first',
  End: 'last',
  PageUp: 'pageBack',
  PageDown: 'pageOn',
};
