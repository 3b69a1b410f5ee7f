import type { RunReader } from '../data/store/runStore.js';
import type { Series, SuccessCurve } from '../protocol/types.js';
import { wilson } from '../domain/stats.js';
import { downsample, pick } from './downsample.js';

const nums = (xs: readonly unknown[] | undefined): number[] => (xs ?? []).map(Number);

/** Six significant digits: more cannot be drawn, and three quarters of the answer would be digits. */
function brief(x: number): number {
  if (x === 0 || !Number.isFinite(x)) return x;
  const places = 5 - Math.floor(Math.log10(Math.abs(x)));
  return places <= 0 ? Math.round(x) : places > 20 ? x : Math.round(x * 10 ** places) / 10 ** places;
}
/** Metrics by name, min-max downsampled. A name nobody wrote gives an empty series. */
export async function series(run: RunReader, names: readonly string[], maxPoints = 2000): Promise<Series[]> {
  return Promise.all(
    names.map(async (name): Promise<Series> => {
      const [at, value, version] = await run.index.columns(
        'SELECT at, value, version FROM metrics WHERE name = ? ORDER BY seq',
        [name],
      );
      const values = nums(value),
        keep = downsample(values, maxPoints),
        versions = version ?? [];
      return {
        name,
        at: pick(nums(at), keep),
        value: pick(values, keep).map(brief),
        ...(versions.some((v) => v !== null) ? { version: pick(versions, keep).map((v) => Number(v ?? 0)) } : {}),
      };
    }),
  );
}

/**
 * Outcomes of training rollouts in the order in which they ended, as columns; those a person helped with are not the
 * policy's.
 */
export interface Outcomes {
  readonly at: readonly number[];
  readonly family: readonly string[];
  readonly success: readonly boolean[];
}
export async function outcomes(run: RunReader): Promise<Outcomes> {
  const [at, family, ok] = await run.index.columns(
    "SELECT ended_at, family, outcome = 'success' FROM rollouts WHERE provenance = 'rollout' AND human = 0 AND outcome IN ('success', 'failure') ORDER BY ended_at, id",
  );
  return { at: nums(at), family: (family ?? []).map(String), success: (ok ?? []).map((v) => v === 1) };
}

/** Overall (feasible tasks), infeasible ones apart, then family by family. Pure. */
export function successCurves(
  o: Outcomes,
  q: { readonly window: number; readonly maxPoints: number; readonly infeasible: (family: string) => boolean },
): SuccessCurve[] {
  const all: number[] = [],
    infeasible: number[] = [],
    byFamily = new Map<string, number[]>();
  o.family.forEach((f, i) => {
    if (q.infeasible(f)) infeasible.push(i);
    else all.push(i);
    const mine = byFamily.get(f);
    if (mine) mine.push(i);
    else byFamily.set(f, [i]);
  });
  const curve = (
    of: readonly number[],
    extra: Pick<SuccessCurve, 'family' | 'infeasible'>,
    maxPoints = q.maxPoints,
  ): SuccessCurve => {
    const mean: number[] = [],
      low: number[] = [],
      high: number[] = [];
    let won = 0;
    of.forEach((i, k) => {
      if (o.success[i]) won++;
      if (k >= q.window && o.success[of[k - q.window]!]) won--;
      const w = wilson(won, Math.min(k + 1, q.window));
      mean.push(w.rate);
      low.push(w.low);
      high.push(w.high);
    });
    const keep = downsample(mean, maxPoints),
      rates = (xs: readonly number[]): number[] => pick(xs, keep).map((x) => Math.round(x * 1e4) / 1e4);
    return {
      ...extra,
      window: q.window,
      at: pick(
        of.map((i) => o.at[i]!),
        keep,
      ),
      rollout: keep.map((k) => k + 1),
      mean: rates(mean),
      low: rates(low),
      high: rates(high),
    };
  };
  return [
    curve(all, {}),
    ...(infeasible.length > 0 ? [curve(infeasible, { infeasible: true })] : []),
    ...[...byFamily]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([family, of]) =>
        curve(of, { family, infeasible: q.infeasible(family) ? true : undefined }, Math.ceil(q.maxPoints / 2)),
      ), // drawn smaller
  ];
}
