import { t975, type Estimate } from '../schedule/statistics.js';
import { canAct, type Levels, type Mechanism } from './mechanisms.js';

/** One figure of one run. */
export interface Observed {
  /** What shares a level: runs of a seed, from its starting policy. */
  readonly block: string;
  /** Only how runs of this block differ counts, and its level says nothing of others. */
  readonly aside?: boolean;
  readonly levels: Levels;
  readonly value: number;
}
export interface MainEffect extends Estimate {
  readonly mechanism: Mechanism;
}
export interface Additive {
  readonly effects: readonly MainEffect[];
  readonly runs: number;
  readonly freedom: number;
  /** Standard deviation of a run about the model. */
  readonly scatter: number;
  /** What the model says of the mean of runs with these levels, over all blocks that are not aside. */
  readonly predicted: (levels: Levels) => Estimate;
}

/** On less off is 1. What acts only beside another is 0 without it, so that neither effect is mixed into the other. */
const coded = (m: Mechanism, levels: Levels): number =>
  canAct(m, levels) ? (levels[m.name] === true ? 0.5 : -0.5) : 0;

/**
 * Ordinary least squares of one figure: a level for each block and one effect, on less off, for each mechanism; no
 * interactions. Every run speaks for every mechanism. What is not the model is scatter: chance of training, number of
 * episodes, interactions, and how a mechanism's effect differs from seed to seed. Intervals hold all of them, the last
 * not wholly. Undefined while the runs there are do not tell the mechanisms apart.
 */
export function additive(observed: readonly Observed[], mechanisms: readonly Mechanism[]): Additive | undefined {
  const runs = observed.filter((r) => Number.isFinite(r.value)),
    { x, blocks, freedom, inverse } = solved(runs, mechanisms);
  if (freedom < 1 || !inverse) return undefined;
  const xty = range(x[0]!.length).map((i) => sum(x.map((row, k) => row[i]! * runs[k]!.value))),
    beta = inverse.map((row) => sum(row.map((v, j) => v * xty[j]!))),
    fitted = x.map((row) => sum(row.map((v, j) => v * beta[j]!))),
    variance = sum(fitted.map((f, k) => (runs[k]!.value - f) ** 2)) / freedom,
    main = blocks.map((b) => !runs.some((r) => r.aside && r.block === b)),
    share = 1 / main.filter((m) => m).length;
  return {
    runs: runs.length,
    freedom,
    scatter: Math.sqrt(variance),
    effects: mechanisms.map((mechanism, k) => ({
      mechanism,
      mean: beta[blocks.length + k]!,
      half: t975(freedom) * Math.sqrt(variance * inverse[blocks.length + k]![blocks.length + k]!),
      n: runs.length,
    })),
    predicted: (levels) => {
      const at = [...main.map((m) => (m ? share : 0)), ...mechanisms.map((m) => coded(m, levels))],
        spread = sum(inverse.map((row, i) => at[i]! * sum(row.map((v, j) => v * at[j]!))));
      return {
        mean: sum(at.map((v, k) => v * beta[k]!)),
        half: t975(freedom) * Math.sqrt(variance * spread),
        n: runs.length,
      };
    },
  };
}

/** Half the width of each effect's 95 % interval after such runs, where a run scatters by so much; Infinity: not told. */
export function halfWidths(
  runs: readonly Omit<Observed, 'value'>[],
  mechanisms: readonly Mechanism[],
  scatter: number,
): readonly number[] {
  const { blocks, freedom, inverse } = solved(runs, mechanisms);
  return mechanisms.map((_, k) =>
    freedom < 1 || !inverse
      ? Infinity
      : t975(freedom) * scatter * Math.sqrt(inverse[blocks.length + k]![blocks.length + k]!),
  );
}

function solved(
  runs: readonly Omit<Observed, 'value'>[],
  mechanisms: readonly Mechanism[],
): {
  readonly x: readonly (readonly number[])[];
  readonly blocks: readonly string[];
  readonly freedom: number;
  readonly inverse: readonly (readonly number[])[] | undefined;
} {
  const blocks = [...new Set(runs.map((r) => r.block))],
    x = runs.map((r) => [...blocks.map((b) => (b === r.block ? 1 : 0)), ...mechanisms.map((m) => coded(m, r.levels))]),
    width = blocks.length + mechanisms.length,
    xtx = range(width).map((i) => range(width).map((j) => sum(x.map((row) => row[i]! * row[j]!))));
  return { x, blocks, freedom: runs.length - width, inverse: invert(xtx) };
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
