import { t975, type Estimate } from '../schedule/statistics.js';
import { MECHANISMS, MILD, OURS, VARIANTS, type Mechanism } from './mechanisms.js';

export interface Observed {
  readonly variant: string;
  readonly seed: number;
  readonly value: number;
}
export interface MainEffect extends Estimate {
  /** One, or several that no run had apart. */
  readonly mechanisms: readonly Mechanism[];
  readonly label: string;
}
export interface Additive {
  readonly effects: readonly MainEffect[];
  readonly runs: number;
  readonly freedom: number;
  /** Standard deviation of a run about the model. */
  readonly scatter: number;
}

/**
 * Ordinary least squares of one figure on which seed a run has and which mechanisms are on in it, no interactions:
 * every run speaks for every mechanism, so intervals are half as wide as those of pairs, which share the few runs of
 * "all" and "none". Undefined while the runs there are do not tell the mechanisms apart.
 */
export function additive(observed: readonly Observed[]): Additive | undefined {
  const runs = observed.filter((r) => Number.isFinite(r.value)),
    on = (r: Observed, m: Mechanism): number => (VARIANTS.find((v) => v.name === r.variant)?.on.has(m.name) ? 1 : 0);
  const columns = new Map<string, Mechanism[]>();
  for (const m of [...MECHANISMS, MILD]) {
    const key = runs.map((r) => on(r, m)).join('');
    if (key.includes('0') && key.includes('1')) columns.set(key, [...(columns.get(key) ?? []), m]);
  }
  const seeds = [...new Set(runs.map((r) => r.seed))],
    groups = [...columns.values()],
    freedom = runs.length - seeds.length - groups.length;
  if (groups.length === 0 || freedom < 1) return undefined;
  const x = runs.map((r) => [...seeds.map((s) => (s === r.seed ? 1 : 0)), ...groups.map((g) => on(r, g[0]!))]),
    width = seeds.length + groups.length;
  const xtx = range(width).map((i) => range(width).map((j) => sum(x.map((row) => row[i]! * row[j]!)))),
    xty = range(width).map((i) => sum(x.map((row, k) => row[i]! * runs[k]!.value)));
  const inverse = invert(xtx);
  if (!inverse) return undefined;
  const beta = inverse.map((row) => sum(row.map((v, j) => v * xty[j]!))),
    variance = sum(x.map((row, k) => (runs[k]!.value - sum(row.map((v, j) => v * beta[j]!))) ** 2)) / freedom;
  return {
    runs: runs.length,
    freedom,
    scatter: Math.sqrt(variance),
    effects: groups.map((mechanisms, i): MainEffect => {
      const at = seeds.length + i,
        ours = mechanisms.length > 1 && mechanisms.every((m) => m.ours);
      return {
        mechanisms,
        label: ours ? OURS.label : mechanisms.map((m) => m.label).join(' and '),
        mean: beta[at]!,
        half: t975(freedom) * Math.sqrt(variance * inverse[at]![at]!),
        n: runs.length,
      };
    }),
  };
}

const range = (n: number): number[] => [...Array(n).keys()];
const sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0);

/** Gauss-Jordan with pivoting; undefined for a singular matrix. */
function invert(a: readonly (readonly number[])[]): number[][] | undefined {
  const n = a.length,
    m = a.map((row, i) => [...row, ...range(n).map((j) => (i === j ? 1 : 0))]);
  for (let c = 0; c < n; c++) {
    const pivot = range(n - c)
      .map((k) => c + k)
      .reduce((best, r) => (Math.abs(m[r]![c]!) > Math.abs(m[best]![c]!) ? r : best), c);
    if (Math.abs(m[pivot]![c]!) < 1e-9) return undefined;
    [m[c], m[pivot]] = [m[pivot]!, m[c]!];
    const by = m[c]![c]!;
    m[c] = m[c]!.map((v) => v / by);
    for (let r = 0; r < n; r++)
      if (r !== c) {
        const f = m[r]![c]!;
        m[r] = m[r]!.map((v, k) => v - f * m[c]![k]!);
      }
  }
  return m.map((row) => row.slice(n));
}
