import type { RemoteModel } from '../client.js';
import type { Carrier, Reduction } from '../../objective/signedWeights.js';
import type { Carriage } from '../gradient.js';
import { bad, figure, good, percent, type Finding } from './checks.js';
import {
  AIM,
  distance,
  groupSize,
  LONG,
  LONGER,
  MAIN,
  OTHER,
  TINY,
  sizeOf,
  type Combo,
  type Effect,
  type Lab,
  type Text,
} from './lab.js';

/** Which built-in loss carries a gradient exactly, and what the server divides it by. */

interface Trial {
  readonly combo: Combo;
  /** Main text first or alone, with what else stands in its request. */
  readonly texts: readonly Text[];
}
const alone = (...combo: Combo): Trial => ({ combo, texts: [MAIN] });
/**
 * Signed, fractional, of both signs in one datum, a longer datum, a second datum that is far shorter or far longer: a sum
 * over datums, a mean over them and one over the tokens of the request are then far apart. Each is followed by its opposite, so
 * that the weights stay where they are.
 */
const TRIALS: readonly Trial[] = [
  alone(1, 0),
  alone(-1, 0),
  alone(0, 1),
  alone(0, -1),
  alone(1, -1),
  alone(-1, 1),
  alone(0.5, 0.25),
  alone(-0.5, -0.25),
  { combo: [1, 0], texts: [LONGER] },
  { combo: [-1, 0], texts: [LONGER] },
  { combo: [1, 0.5], texts: [MAIN, TINY] },
  { combo: [-1, -0.5], texts: [MAIN, TINY] },
  { combo: [1, 0.5], texts: [MAIN, LONG] },
  { combo: [-1, -0.5], texts: [MAIN, LONG] },
];
/**
 * What a model learns before a large step is measured. Weights of 16 bits begin exactly on what they are rounded to, and
 * a first step moves only those that it carries half way to the next: half a step then moves less than half as far. Once
 * a step has carried the weights anywhere between, rounding adds up to what it should.
 */
const ELSEWHERE: Trial = { combo: [1, 0.5], texts: [OTHER] };
const REDUCTIONS: readonly Reduction[] = (['sum', 'targets', 'scored'] as const).flatMap((withinDatum) =>
  (['sum', 'mean'] as const).map((overDatums) => ({ withinDatum, overDatums })),
);
/** How far a step goes, and what a fit may leave of the effects: of all of them together, and of each of its own size. */
interface Scale {
  readonly aim: number;
  readonly exact: number;
  readonly worst: number;
  /** How often the lab's slack comes to what one effect may be off by. */
  readonly slack: number;
  /** Size of the steps of later checks, which compare what must be equal, linear or not. */
  readonly later: number;
}
/** Steps are not quite linear: what that leaves falls with their size, what a server does wrong does not. */
const FINE: Scale = { aim: AIM / 5, exact: 0.025, worst: 0.08, slack: 2, later: AIM },
  /** For arithmetic whose noise hides FINE steps. */
  COARSE: Scale = { aim: AIM, exact: 0.12, worst: 0.2, slack: 2, later: AIM },
  /** For arithmetic whose noise hides COARSE steps as well: as large as steps can be and still nearly linear. */
  LOUD: Scale = { aim: 2 * AIM, exact: 0.1, worst: 0.15, slack: 1, later: 3 * AIM };
/** Noise beside a step of AIM that is drowned. */
const DROWNED = 0.03;
/** A step so far below AIM that what it moves is rounding, and what that may be: more is a fault of the server. */
const GRAIN = { aim: AIM / 1000, most: 0.06, steps: 4 };
const CALIBRATIONS = 12;
const TOO_FAR = 0.5;

export interface Carried {
  readonly finding: Finding;
  readonly reduction?: Reduction;
  readonly rate?: number;
  /** Share of the effects that no reduction explains. */
  readonly error: number;
}

/** Measures one carrier. Throws what the server refuses. */
export async function measureCarrier(lab: Lab, carrier: Carrier): Promise<Carried> {
  const rate = await calibrated(lab, carrier);
  if (rate === undefined)
    return { finding: bad('no learning rate changes a log-prob by a measurable amount'), error: Infinity };
  const scale = await scaleFor(lab, carrier, rate),
    own = (rate * scale.aim) / AIM,
    later = (rate * scale.later) / AIM,
    trial = (m: RemoteModel, t: Trial): Promise<Effect> => lab.effect(m, () => tried(lab, m, carrier, t, own)),
    effects: Effect[] = [];
  // Loud steps change what the next one does: each has a model of its own.
  const apart = (t: Trial): Promise<Effect> =>
    lab.fresh(async (m) => {
      await tried(lab, m, carrier, ELSEWHERE, later);
      return trial(m, t);
    });
  if (scale === LOUD) for (const t of TRIALS) effects.push(await apart(t));
  else
    await lab.fresh(async (m) => {
      for (const t of TRIALS) effects.push(await trial(m, t));
    });
  return { ...judge(lab, effects, scale), rate: later };
}
async function scaleFor(lab: Lab, carrier: Carrier, rate: number): Promise<Scale> {
  if (!lab.linear) return COARSE;
  const grain = await grainOf(lab, carrier, rate);
  if (grain < GRAIN.most) lab.grain = Math.max(lab.grain, grain);
  if (await tellsSmallSteps(lab, carrier, rate)) return FINE;
  lab.coarse ||= lab.slack > DROWNED * AIM;
  return lab.coarse ? LOUD : COARSE;
}
/** Root mean square, over positions and steps, of what a step moves that should move next to nothing. */
async function grainOf(lab: Lab, carrier: Carrier, rate: number): Promise<number> {
  return lab.fresh(async (m) => {
    const squares: number[] = [];
    let [before] = await lab.rows(m, [MAIN]);
    for (let i = 0; i < GRAIN.steps; i++) {
      await tried(lab, m, carrier, alone(1, 0), (rate * GRAIN.aim) / AIM);
      const [after] = await lab.rows(m, [MAIN]);
      after!.forEach((x, k) => squares.push((x - before![k]!) ** 2));
      before = after;
    }
    // A difference has the noise of both.
    return Math.sqrt(squares.reduce((a, b) => a + b, 0) / squares.length / 2);
  });
}
async function tried(lab: Lab, m: RemoteModel, carrier: Carrier, t: Trial, rate: number): Promise<void> {
  await m.forwardBackward(await lab.raw(m, carrier, t.texts, t.combo), { name: carrier }, lab.signal);
  await lab.step(m, { rate });
}

/**
 * Whether steps far below FINE show as what they are. In bf16 each set of weights rounds log-probs in its own way, which
 * two passes over the same weights do not show, and a small step may round to none at all.
 */
async function tellsSmallSteps(lab: Lab, carrier: Carrier, rate: number): Promise<boolean> {
  if (lab.slack > (FINE.exact * FINE.aim) / 2) return false;
  const aim = FINE.aim / 10,
    sizes = await lab.fresh(async (m) => {
      const out: number[] = [];
      for (const sign of [1, -1, 1, -1] as const)
        out.push(sign * (await lab.effect(m, () => tried(lab, m, carrier, alone(sign, 0), (rate * aim) / AIM)))[0]);
      return out;
    });
  const mean = sizes.reduce((a, b) => a + b, 0) / sizes.length;
  return mean > aim / 2 && mean < 2 * aim && sizes.every((s) => Math.abs(s - mean) < mean / 5);
}
/** A learning rate whose step moves the first group by about AIM; undefined where none does. */
async function calibrated(lab: Lab, carrier: Carrier): Promise<number | undefined> {
  let rate = 1e-2,
    low = 0,
    high = Infinity;
  for (let i = 0; i < CALIBRATIONS; i++) {
    const moved = await lab.fresh((m) => lab.effect(m, () => tried(lab, m, carrier, alone(1, 0), rate))),
      size = Math.abs(moved[0]);
    if (size > AIM / 2 && size < 2 * AIM) return (rate * AIM) / size;
    // A step that is too far may have made no numbers at all.
    if (!(size < AIM)) high = Math.min(high, rate);
    else low = Math.max(low, rate);
    const visible = size < TOO_FAR && size > 2 * lab.slack + 1e-5,
      guess = visible ? rate * Math.min(AIM / size, 1000) : high === Infinity ? rate * 30 : low === 0 ? rate / 30 : NaN;
    rate = guess > low && guess < high ? guess : Math.sqrt(low * high);
  }
  return undefined;
}

/** The reduction that explains the effects best, and whether it explains them. */
function judge(lab: Lab, effects: readonly Effect[], { aim, exact, worst, slack }: Scale): Carried {
  const [best] = REDUCTIONS.map((reduction) => ({ reduction, ...fitted(effects, reduction) })).sort(
    (a, b) => a.error - b.error,
  );
  if (!best || !(best.error <= exact + lab.slack / aim))
    return {
      finding: bad(`not exact: ${wrongWords(effects, best?.error ?? NaN, aim)}`),
      error: best?.error ?? Infinity,
    };
  // A single kind of request that the server weighs differently hardly shows in the overall error.
  const odd = best.explained.findIndex((e, i) => {
    const size = Math.max(sizeOf(e), sizeOf(effects[i]!));
    return distance(e, effects[i]!) > worst * size + slack * lab.slack;
  });
  if (odd >= 0)
    return {
      finding: bad(
        `not exact: ${oddWords(TRIALS[odd]!)} moves log p by ${figure(effects[odd]![0])} and ${figure(effects[odd]![1])} where the others say ${figure(best.explained[odd]![0])} and ${figure(best.explained[odd]![1])}`,
      ),
      error: best.error,
    };
  if (best.first[0] <= 0)
    return { finding: bad('the gradient has the wrong sign: a positive weight lowers log p'), error: best.error };
  return {
    finding: good(
      `exact within ${percent(best.error)}: signed, fractional and additive; ${reductionWords(best.reduction)}`,
    ),
    reduction: best.reduction,
    error: best.error,
  };
}
interface Fit {
  /** Unexplained part of the effects: root mean square over root mean square. */
  readonly error: number;
  /** Effect of a weight of 1 on the first group. */
  readonly first: Effect;
  /** The effects as the fit has them. */
  readonly explained: readonly Effect[];
}
/** Least squares of effect = (c1 e1 + c2 e2) / divisor. */
function fitted(effects: readonly Effect[], r: Reduction): Fit {
  const rows = TRIALS.map(({ combo, texts }) => {
    const targets = texts[0]!.targets.length,
      scored = groupSize * combo.filter((c) => c !== 0).length,
      by = { sum: 1, targets, scored }[r.withinDatum] * (r.overDatums === 'mean' ? texts.length : 1);
    return combo.map((c) => c / by) as [number, number];
  });
  const dot = (f: (i: number) => number): number => rows.reduce((n, _, i) => n + f(i), 0),
    a = dot((i) => rows[i]![0] ** 2),
    b = dot((i) => rows[i]![0] * rows[i]![1]),
    d = dot((i) => rows[i]![1] ** 2),
    det = a * d - b * b;
  const solve = (k: 0 | 1): readonly [number, number] => {
    const y = dot((i) => rows[i]![0] * effects[i]![k]),
      z = dot((i) => rows[i]![1] * effects[i]![k]);
    return [(d * y - b * z) / det, (a * z - b * y) / det];
  };
  const [p, n] = [solve(0), solve(1)],
    explained = rows.map(([c1, c2]): Effect => [c1 * p[0] + c2 * p[1], c1 * n[0] + c2 * n[1]]);
  const left = dot((i) => distance(explained[i]!, effects[i]!) ** 2),
    all = dot((i) => sizeOf(effects[i]!) ** 2);
  return { error: all > 0 ? Math.sqrt(left / all) : Infinity, first: [p[0], n[0]], explained };
}
function oddWords({ combo, texts }: Trial): string {
  const of = texts[1]
    ? `a datum beside a ${texts[1] === TINY ? 'shorter' : 'longer'} one`
    : texts[0] === LONGER
      ? 'a longer datum'
      : 'a datum';
  return `${of} with weights ${combo[0]} and ${combo[1]}`;
}

/** How the server is wrong, by the effects of single combinations. */
function wrongWords(e: readonly Effect[], error: number, aim: number): string {
  const by = `${percent(error)} of the effects are unexplained`;
  if (e.some((x) => !Number.isFinite(sizeOf(x)))) return 'a step made log-probs that are no numbers';
  const [plus, minus, half] = [e[0]!, e[1]!, e[6]!];
  if (e.some((x) => sizeOf(x) > 20 * aim)) return `a datum whose weights sum to nothing or less explodes (${by})`;
  if (sizeOf(minus) < 0.2 * sizeOf(plus)) return `a negative weight does nothing (${by})`;
  if (minus[0] * plus[0] > 0) return `a negative weight does what a positive one does (${by})`;
  if (half[0] > 0.8 * plus[0]) return `a weight of 0.5 does what one of 1 does (${by})`;
  return `effects of weights do not add up (${by}; +1 gives ${figure(plus[0])}, -1 ${figure(minus[0])}, +0.5 ${figure(half[0])})`;
}
export function reductionWords(r: Reduction): string {
  const within = { sum: 'summed', targets: 'divided by its targets', scored: 'divided by its scored targets' };
  return `a datum is ${within[r.withinDatum]}, datums are ${r.overDatums === 'sum' ? 'summed' : 'averaged'}`;
}

/** The better of the exact carriers; signed cross-entropy where both are. */
export const chosen = (c: Readonly<Record<Carrier, Carried>>): (Carriage & { readonly rate: number }) | undefined => {
  for (const carrier of ['cross_entropy', 'importance_sampling'] as const) {
    const { finding, reduction, rate } = c[carrier];
    if (finding.ok && reduction && rate !== undefined) {
      // The rate was found with raw weights; the driver multiplies back what the server divides by.
      const by = { sum: 1, targets: MAIN.targets.length, scored: groupSize }[reduction.withinDatum];
      return { carrier, reduction, rate: rate / by };
    }
  }
  return undefined;
};
