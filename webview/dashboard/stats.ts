import { wilson as interval } from '../../runtime/protocol/shared.js';

/** Wilson score interval of a success rate, 95 %; none without episodes. */
export const wilson = (successes: number, n: number): ReturnType<typeof interval> | undefined =>
  n > 0 ? interval(successes, n) : undefined;
/** Value at `at` on a line through (x, y), x ascending; its ends beyond them. */
export function interpolate(x: readonly number[], y: readonly number[], at: number): number | undefined {
  const n = Math.min(x.length, y.length);
  if (n === 0) return undefined;
  if (at <= x[0]!) return y[0];
  for (let i = 1; i < n; i++)
    if (at <= x[i]!) {
      const d = x[i]! - x[i - 1]!;
      return d === 0 ? y[i] : y[i - 1]! + ((y[i]! - y[i - 1]!) * (at - x[i - 1]!)) / d;
    }
  return y[n - 1];
}
