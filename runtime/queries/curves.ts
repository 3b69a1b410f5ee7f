import type { RunReader } from '../data/store/runStore.js';
import type { Series, SuccessCurve } from '../protocol/types.js';
import { wilson } from '../domain/stats.js';
import { Turns } from '../concurrency/turns.js';
import { downsample, pick } from './downsample.js';
import type { Outcomes } from './outcomes.js';

type Ends = Omit<Outcomes, 'steps' | 'score'>;

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

export interface CurveQuery {
  readonly window: number;
  readonly maxPoints: number;
  readonly infeasible: (family: string) => boolean;
}

/** Fewer rollouts of a family than this say nothing about it, whatever the window. */
const LEAST_EACH = 4;
/** Two-sided 95 % of the normal distribution. */
const Z = 1.96;
/**
 * Success of training rollouts in which every family weighs the same: the mean, over the families met so far, of the
 * success of each one's newest rollouts. The planner asks hard families more often, so the mean of whatever was sampled
 * falls while the policy gets better. The window is shared out among all families. Band: 95 %, of a stratified mean,
 * each family's variance from its rate with a success and a failure added.
 */
export const balancedCurve = (o: Ends, q: CurveQuery): Promise<SuccessCurve> => balanced(fixed(o), q, new Turns());

async function balanced(
  o: Ends,
  q: CurveQuery,
  turns: Turns,
  extra: Pick<SuccessCurve, 'infeasible'> = {},
): Promise<SuccessCurve> {
  const shown = o.families.map((f) => q.infeasible(f) === (extra.infeasible ?? false)),
    of = placesOf(o, (f) => shown[f]!);
  const met = new Set<number>();
  for (const i of of) met.add(o.family[i]!);
  const each = Math.max(LEAST_EACH, Math.ceil(q.window / Math.max(1, met.size))),
    newest = new Newest(each),
    band = bandOf(of.length);
  for (let at = 0; at < of.length; at++) {
    if (at % STEP === 0 && turns.over) await turns.next();
    newest.add(o.family[of[at]!]!, o.success[of[at]!]!);
    const m = Math.min(1, Math.max(0, newest.mean)),
      half = Z * newest.error;
    band.mean[at] = m;
    band.low[at] = Math.max(0, m - half);
    band.high[at] = Math.min(1, m + half);
  }
  return {
    ...thinned(o, of, band, q.maxPoints),
    ...extra,
    window: q.window,
    balanced: { families: met.size, each },
  };
}
/** Rollouts that are looked at between two looks at the clock: about a millisecond. */
const STEP = 8192;

/** The newest outcomes of every family, and the mean of the families' rates. */
class Newest {
  readonly #each: number;
  readonly #known: Rolling[] = [];
  #met = 0;
  #sum = 0;
  #variance = 0;

  constructor(each: number) {
    this.#each = each;
  }
  get mean(): number {
    return this.#sum / this.#met;
  }
  /** Standard error of the mean. */
  get error(): number {
    return Math.sqrt(Math.max(0, this.#variance)) / this.#met;
  }
  add(family: number, success: number): void {
    const each = this.#each;
    if (!this.#known[family]) this.#met++;
    const k = (this.#known[family] ??= { newest: new Uint8Array(each), n: 0, won: 0, rate: 0, variance: 0 });
    k.won += success - (k.n >= each ? k.newest[k.n % each]! : 0);
    k.newest[k.n++ % each] = success;
    const n = Math.min(each, k.n),
      likely = (k.won + 1) / (n + 2),
      rate = k.won / n,
      spread = (likely * (1 - likely)) / (n + 2);
    this.#sum += rate - k.rate;
    this.#variance += spread - k.variance;
    k.rate = rate;
    k.variance = spread;
  }
}
/** The newest outcomes of a family, as a ring. */
interface Rolling {
  readonly newest: Uint8Array;
  n: number;
  won: number;
  rate: number;
  variance: number;
}
interface Band {
  readonly mean: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
}
const bandOf = (n: number): Band => ({
  mean: new Float64Array(n),
  low: new Float64Array(n),
  high: new Float64Array(n),
});
function placesOf(o: Ends, of: (family: number) => boolean): Uint32Array {
  const out = new Uint32Array(o.at.length);
  let n = 0;
  for (let i = 0; i < o.at.length; i++) if (of(o.family[i]!)) out[n++] = i;
  return out.subarray(0, n);
}
/** The places of each family, in one pass: there are millions of outcomes, and hundreds of families. */
function placesByFamily(o: Ends): Uint32Array[] {
  const n = new Uint32Array(o.families.length);
  for (const f of o.family) n[f]!++;
  const out = Array.from(n, (size) => new Uint32Array(size));
  n.fill(0);
  for (let i = 0; i < o.family.length; i++) out[o.family[i]!]![n[o.family[i]!]!++] = i;
  return out;
}
const thinned = (
  o: Ends,
  of: Uint32Array,
  c: Band,
  maxPoints: number,
): Pick<SuccessCurve, 'at' | 'rollout' | 'mean' | 'low' | 'high'> => {
  const keep = downsample(c.mean, maxPoints),
    rates = (xs: Float64Array): number[] => pick(xs, keep).map((x) => Math.round(x * 1e4) / 1e4);
  return {
    at: keep.map((k) => o.at[of[k]!]!),
    rollout: keep.map((k) => k + 1),
    mean: rates(c.mean),
    low: rates(c.low),
    high: rates(c.high),
  };
};

/** Overall (feasible tasks, each family weighing the same), infeasible ones apart, then family by family. */
export async function successCurves(now: Ends, q: CurveQuery): Promise<SuccessCurve[]> {
  const o = fixed(now),
    turns = new Turns(),
    curves = [await balanced(o, q, turns)];
  if (o.families.some(q.infeasible)) curves.push(await balanced(o, q, turns, { infeasible: true }));
  const places = placesByFamily(o);
  for (const [i, family] of [...o.families.entries()].sort(([, a], [, b]) => (a < b ? -1 : 1)))
    curves.push(await familyCurve(o, q, { of: places[i]!, family }, turns));
  return curves;
}
async function familyCurve(
  o: Ends,
  q: CurveQuery,
  { of, family }: { readonly of: Uint32Array; readonly family: string },
  turns: Turns,
): Promise<SuccessCurve> {
  const band = bandOf(of.length);
  let won = 0;
  for (let k = 0; k < of.length; k++) {
    if (k % STEP === 0 && turns.over) await turns.next();
    won += o.success[of[k]!]! - (k >= q.window ? o.success[of[k - q.window]!]! : 0);
    const w = wilson(won, Math.min(k + 1, q.window));
    band.mean[k] = w.rate;
    band.low[k] = w.low;
    band.high[k] = w.high;
  }
  return {
    family,
    infeasible: q.infeasible(family) ? true : undefined,
    window: q.window,
    // Drawn smaller.
    ...thinned(o, of, band, Math.ceil(q.maxPoints / 2)),
  };
}

/** Outcomes as they are now: later ones are merged into the same memory while this work lets others have their turn. */
const fixed = (o: Ends): Ends => ({
  at: o.at.slice(),
  family: o.family.slice(),
  success: o.success.slice(),
  families: [...o.families],
});
