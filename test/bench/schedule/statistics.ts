/** Two-sided 97.5 % points of Student's t for 1 to 10 degrees of freedom. */
const T975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/** The same for any number of them: beyond the table by the expansion about the normal point, right to three digits. */
export const t975 = (freedom: number): number => {
  const z = 1.959964;
  return (
    T975[freedom - 1] ?? z + (z ** 3 + z) / (4 * freedom) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2)
  );
};

export interface Estimate {
  readonly mean: number;
  /** Half the width of the 95 % interval over seeds; NaN for one seed. */
  readonly half: number;
  readonly n: number;
}

export function estimate(xs: readonly number[]): Estimate {
  const n = xs.length,
    mean = xs.reduce((a, b) => a + b, 0) / n;
  if (n < 2 || !Number.isFinite(mean)) return { mean, half: NaN, n };
  const sd = Math.sqrt(xs.reduce((a, x) => a + (x - mean) ** 2, 0) / (n - 1));
  return { mean, half: (t975(n - 1) * sd) / Math.sqrt(n), n };
}

/**
 * Two-sample Kolmogorov-Smirnov test: the largest distance of the empirical distributions and its asymptotic p. With
 * ties (whole steps) p is an upper bound.
 */
export function kolmogorovSmirnov(
  a: readonly number[],
  b: readonly number[],
): { readonly d: number; readonly p: number } {
  if (a.length === 0 || b.length === 0) return { d: 0, p: 1 };
  const xs = [...a].sort((x, y) => x - y),
    ys = [...b].sort((x, y) => x - y);
  let i = 0,
    j = 0,
    d = 0;
  while (i < xs.length && j < ys.length) {
    const v = Math.min(xs[i]!, ys[j]!);
    while (xs[i] === v) i++;
    while (ys[j] === v) j++;
    d = Math.max(d, Math.abs(i / xs.length - j / ys.length));
  }
  const n = Math.sqrt((xs.length * ys.length) / (xs.length + ys.length)),
    x = (n + 0.12 + 0.11 / n) * d;
  return { d, p: kolmogorov(x) };
}

/**
 * How far apart two distributions are at most: the largest distance of the empirical ones, and with it the error of
 * both (Dvoretzky-Kiefer-Wolfowitz, 97.5 % each). Few samples make `atMost` large: it never takes not having seen a
 * difference for there being none.
 */
export function distributionDistance(
  a: readonly number[],
  b: readonly number[],
): { readonly d: number; readonly atMost: number } {
  const { d } = kolmogorovSmirnov(a, b),
    error = (n: number): number => (n === 0 ? 1 : Math.sqrt(Math.log(2 / 0.025) / (2 * n)));
  return { d, atMost: Math.min(1, d + error(a.length) + error(b.length)) };
}

/** P(K > x) of the Kolmogorov distribution. */
function kolmogorov(x: number): number {
  if (x < 0.2) return 1;
  let sum = 0;
  for (let k = 1; k <= 100; k++) sum += (k % 2 === 1 ? 1 : -1) * Math.exp(-2 * k * k * x * x);
  return Math.min(1, Math.max(0, 2 * sum));
}
