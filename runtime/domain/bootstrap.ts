import { quantile } from './quantile.js';
import { random, type Random } from './random.js';
import { wilson } from './wilson.js';

/** Outcomes of the episodes of one seed: 1 success, 0 anything else. */
export type SeedOutcomes = readonly number[];
export interface BootstrapInterval {
  readonly mean: number;
  /** 95 %. */
  readonly low: number;
  readonly high: number;
}

const SAMPLES = 2000;

/**
 * Mean over seeds with an interval that has the variance between seeds in it: each sample draws seeds with replacement,
 * and then episodes of each of them. With one seed it is the interval of its episodes alone, and says nothing of
 * another seed. `of` is what is estimated from one sample, by default the mean of the seeds' means; the same draw serves
 * every table it is given, so that what was measured in one run stays together.
 */
export function hierarchicalBootstrap(
  seeds: readonly SeedOutcomes[],
  o: {
    readonly samples?: number;
    readonly seed?: string;
    readonly of?: (sample: readonly SeedOutcomes[]) => number;
  } = {},
): BootstrapInterval {
  return pairedBootstrap(
    seeds.map((s) => [s]),
    (sample) => (o.of ?? meanOfMeans)(sample.map(([s]) => s!)),
    o,
  );
}

/**
 * The same of something that compares several measurements of each seed: `runs[i]` are the outcomes of seed i under each
 * of them, and a drawn seed brings all of its own. Episodes are drawn for each measurement by themselves. A draw may be
 * infinite (failures where there were none before): it counts, so an end of the interval may be; one of which nothing can
 * be said (NaN) does not.
 */
export function pairedBootstrap(
  runs: readonly (readonly SeedOutcomes[])[],
  of: (sample: readonly (readonly SeedOutcomes[])[]) => number,
  o: { readonly samples?: number; readonly seed?: string } = {},
): BootstrapInterval {
  const r = random(o.seed ?? 'bootstrap'),
    draws: number[] = [];
  for (let k = 0; k < (o.samples ?? SAMPLES) && runs.length > 0; k++) {
    const x = of(runs.map(() => r.pick(runs).map((outcomes) => resample(outcomes, r))));
    if (!Number.isNaN(x)) draws.push(x);
  }
  return { mean: of(runs), low: quantile(draws, 0.025) ?? NaN, high: quantile(draws, 0.975) ?? NaN };
}

const resample = (xs: SeedOutcomes, r: Random): number[] => xs.map(() => r.pick(xs));
const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;
const meanOfMeans = (sample: readonly SeedOutcomes[]): number => mean(sample.filter((s) => s.length > 0).map(mean));

/** Episodes of each template, by its name. */
export type TemplateCounts = Readonly<Record<string, { readonly episodes: number; readonly successes: number }>>;

/**
 * Success rate on the population that these templates are a sample of. Episodes of one template end alike far more often
 * than episodes of two, so each bootstrap sample draws templates with replacement, then seeds (one entry of `seeds` each;
 * the templates are the same for all), then episodes of each template under each seed. With a single seed the interval
 * says nothing about the variance between seeds.
 *
 * Samples of a few templates vary too little, so the interval is widened: it contains Wilson's interval for the number
 * of independent episodes (`trialsOf`), its upper end is at least that of Wilson's for 0 of as many templates, and its
 * lower end at most that for all of them.
 */
export function templateBootstrap(
  seeds: readonly TemplateCounts[],
  o: { readonly samples?: number; readonly seed?: string } = {},
): BootstrapInterval {
  const names = [...new Set(seeds.flatMap((s) => Object.keys(s)))],
    cells = seeds.map((s) => names.map((n) => outcomesOf(s[n]?.successes ?? 0, s[n]?.episodes ?? 0))),
    all = pooled(cells);
  if (!Number.isFinite(all)) return { mean: all, low: NaN, high: NaN };
  const n = trialsOf(cells, all),
    few = wilson(all * n, n),
    none = wilson(0, names.length),
    every = wilson(names.length, names.length);
  const r = random(o.seed ?? 'bootstrap'),
    draws: number[] = [];
  for (let k = 0; k < (o.samples ?? SAMPLES); k++) {
    const templates = names.map(() => r.int(names.length)),
      x = mean(
        cells
          .map(() => r.pick(cells))
          .map((seed) => redrawn(seed, templates, r))
          .filter((share) => !Number.isNaN(share)),
      );
    if (Number.isFinite(x)) draws.push(x);
  }
  return {
    mean: all,
    low: Math.min(few.low, every.low, quantile(draws, 0.025) ?? 1),
    high: Math.max(few.high, none.high, quantile(draws, 0.975) ?? 0),
  };
}
/**
 * How many independent episodes a mean over these templates is worth: all of them where templates do not differ, as many
 * as there are templates where each is solved always or never (Kish's effective sample size).
 */
function trialsOf(seeds: readonly (readonly SeedOutcomes[])[], share: number): number {
  const rates = seeds[0]!.map((_, t) => mean(seeds.flatMap((s) => (s[t]!.length > 0 ? [mean(s[t]!)] : [])))),
    n = rates.length,
    middle = mean(rates),
    variance = rates.reduce((sum, x) => sum + (x - middle) ** 2, 0) / Math.max(1, n - 1),
    episodes = seeds.reduce((sum, s) => sum + s.flat().length, 0);
  if (n < 2 || share === 0 || share === 1) return n;
  return variance > 0 ? Math.min(episodes, (share * (1 - share) * n) / variance) : episodes;
}
/** Share of successes among episodes redrawn from these templates of a seed. Sums while drawing: it runs a million times. */
function redrawn(seed: readonly SeedOutcomes[], templates: readonly number[], r: Random): number {
  let successes = 0,
    episodes = 0;
  for (const t of templates) {
    const outcomes = seed[t]!;
    for (let i = 0; i < outcomes.length; i++) successes += r.pick(outcomes);
    episodes += outcomes.length;
  }
  return successes / episodes;
}
/** Share of all episodes of a seed; over several seeds the mean. */
const pooled = (seeds: readonly (readonly SeedOutcomes[])[]): number => meanOfMeans(seeds.map((s) => s.flat()));

/** `n` outcomes of which `successes` are 1: all that a success rate keeps of its episodes. */
export const outcomesOf = (successes: number, n: number): SeedOutcomes =>
  Array.from({ length: n }, (_, i) => (i < successes ? 1 : 0));

/** Share of the failures before that are gone after; over several seeds from the means of both. */
export const failuresRemoved = (sample: readonly (readonly SeedOutcomes[])[]): number => {
  const before = mean(sample.map(([b]) => 1 - mean(b!))),
    after = mean(sample.map(([, a]) => 1 - mean(a!)));
  return 1 - after / before;
};

/**
 * The same of one seed, with its interval: a paired bootstrap's, and nowhere narrower than what Wilson's interval of the
 * failures after says, since draws from none always have none. It has no lower end (-Infinity) where so few failures were
 * left before that there may as well be none.
 */
export function removedInOneSeed(before: SeedOutcomes, after: SeedOutcomes): BootstrapInterval {
  const drawn = pairedBootstrap([[before, after]], failuresRemoved),
    left = wilson(after.filter((x) => x === 0).length, after.length),
    failed = 1 - mean(before);
  return {
    mean: drawn.mean,
    low: Math.min(drawn.low, 1 - left.high / failed),
    high: Math.max(drawn.high, 1 - left.low / failed),
  };
}
