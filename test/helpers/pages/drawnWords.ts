/** A word as it stands on a canvas. */
export interface DrawnWord {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly align: string;
}
/**
 * For `OpenOptions.before`, or run in a page before it draws anew: every canvas remembers what is written on it since it was cleared. Nothing else tells what
 * a person reads there.
 */
export const rememberWords = `{
  const of = CanvasRenderingContext2D.prototype,
    { fillText, clearRect } = of;
  of.fillText = function (text, x, y, ...rest) {
    const at = this.getTransform().transformPoint({ x, y });
    (this.canvas.drawnWords ??= []).push({ text, x: Math.round(at.x), y: Math.round(at.y), align: this.textAlign });
    return fillText.call(this, text, x, y, ...rest);
  };
  of.clearRect = function (x, y, ...rest) {
    if (x === 0 && y === 0) this.canvas.drawnWords = [];
    return clearRect.call(this, x, y, ...rest);
  };
}`;
/** On each canvas that fits, as it is now; those not yet drawn have none. */
export const drawnWords = (
  page: { evaluate<R>(code: string): Promise<R> },
  selector: string,
): Promise<readonly (readonly DrawnWord[])[]> =>
  page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((c) => c.drawnWords ?? [])`);

/** What stands at the ticks of a chart, in order: words of the horizontal axis are centred, those of the other end at it. */
export function tickWords(words: readonly DrawnWord[]): {
  readonly x: readonly string[];
  readonly y: readonly string[];
} {
  const of = (align: string, by: 'x' | 'y', sign: number): DrawnWord[] =>
      words.filter((w) => w.align === align).sort((a, b) => sign * (a[by] - b[by])),
    below = of('center', 'x', 1),
    // The axis has a title too, on a line of its own under the ticks.
    line = Math.min(...below.map((w) => w.y));
  return { x: below.filter((w) => w.y === line).map((w) => w.text), y: of('right', 'y', -1).map((w) => w.text) };
}
