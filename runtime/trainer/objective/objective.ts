import { StudioError } from '../../domain/index.js';
import { tokenShares } from './aggregation.js';
import { tisSequence, tisToken } from './corrections.js';
import { klSlope, klTerm } from './kl.js';
import {
  cispo,
  cispoSlope,
  clipState,
  dualClip,
  dualClipSlope,
  gspoRatio,
  ratioOf,
  ratioSlope,
  type ClipBand,
} from './policyLoss.js';

/**
 * The whole objective of one optimizer step and its derivative by every token's log-prob, in closed form
 * (runtime/trainer/README.md#objective). Whoever can score tokens and apply a gradient by log-prob (signedWeights.ts)
 * trains with exactly this loss; the embedded policy's graph is held against it.
 */

export interface ObjectiveOptions {
  readonly algorithm: 'ppo' | 'gspo' | 'cispo';
  readonly epsLow: number;
  readonly epsHigh: number;
  /** c of the dual clip. */
  readonly dualClip: number;
  /** Truncated importance weights, one a token or one a step. */
  readonly tis: { readonly enabled: boolean; readonly level: 'token' | 'sequence'; readonly cap: number };
  /** A sampled token whose behaviour log-prob is not known: importance weight 1, or left out of the loss. */
  readonly unknownBehaviour: 'one' | 'masked';
  readonly klBeta: number;
  readonly imitationCoef: number;
}

/** One step. All rows have its T tokens; log-probs are natural and finite unless said otherwise. */
export interface ObjectiveStep {
  /** Policy gradient, or -log p alone. */
  readonly term: 'policy' | 'imitation';
  /** log pi: the policy whose gradient is wanted. */
  readonly now: ArrayLike<number>;
  /** log pi_old, the policy before the update; absent = `now`, as in an update of one optimizer step. */
  readonly old?: ArrayLike<number> | undefined;
  /**
   * log pi_roll of the policy that acted; an entry that is not finite is not known (`unknownBehaviour`). Absent: nobody
   * sampled this step (a demonstration), so its importance weight is 1.
   */
  readonly rollout?: ArrayLike<number> | undefined;
  /** log pi_ref; needed where `klBeta` > 0. */
  readonly reference?: ArrayLike<number> | undefined;
  /** Advantage of the step, or of each of its tokens. */
  readonly advantage: number | ArrayLike<number>;
  /** omega in the aggregation (aggregation.ts, `stepWeight`); 0 = the step is masked. */
  readonly weight: number;
  /** 0 leaves a token out of numerator and denominator. Absent: all count. */
  readonly mask?: ArrayLike<number> | undefined;
  /** Coefficient of an imitated step, instead of `imitationCoef`. */
  readonly coefficient?: number | undefined;
}

export interface ObjectiveResult {
  /** policyLoss + klBeta * kl + imitationLoss. */
  readonly loss: number;
  readonly policyLoss: number;
  /** Weighted mean of k3, before klBeta. */
  readonly kl: number;
  readonly imitationLoss: number;
  /** d loss / d now, [step][token]; 0 where a token does not count. */
  readonly gradient: readonly Float64Array[];
  /** Ratio to pi_old of every token that counts in the policy term. */
  readonly ratios: readonly number[];
  /** Importance weight of every token that counts in the policy term and whose behaviour log-prob is known. */
  readonly importanceWeights: readonly number[];
  /** Tokens whose policy term a bound holds. */
  readonly clipped: Readonly<Record<'low' | 'high' | 'dual', number>>;
}

interface Totals {
  policy: number;
  kl: number;
  imitation: number;
  readonly ratios: number[];
  readonly importanceWeights: number[];
  readonly clipped: Record<'low' | 'high' | 'dual', number>;
}

/** Throws `trainer.invalid` on rows of unequal length, log-probs that are not finite, or a missing reference. */
export function objective(steps: readonly ObjectiveStep[], o: ObjectiveOptions): ObjectiveResult {
  const counted = steps.map((s, i) => countedTokens(s, o, i)),
    shares = tokenShares(
      counted.map((c) => c.length),
      steps.map((s) => s.weight),
    ),
    totals: Totals = {
      policy: 0,
      kl: 0,
      imitation: 0,
      ratios: [],
      importanceWeights: [],
      clipped: { low: 0, high: 0, dual: 0 },
    };
  const gradient = steps.map((s, i) => {
    const out = new Float64Array(s.now.length),
      share = shares[i]!;
    if (share === 0) return out;
    if (s.term === 'imitation') imitationTerm(s, counted[i]!, share * (s.coefficient ?? o.imitationCoef), out, totals);
    else {
      policyTerm(s, counted[i]!, share, o, out, totals);
      if (o.klBeta > 0) klPenalty(s, counted[i]!, share, o.klBeta, out, totals);
    }
    return out;
  });
  return {
    loss: totals.policy + o.klBeta * totals.kl + totals.imitation,
    policyLoss: totals.policy,
    kl: totals.kl,
    imitationLoss: totals.imitation,
    gradient,
    ratios: totals.ratios,
    importanceWeights: totals.importanceWeights,
    clipped: totals.clipped,
  };
}

/** Indices of the tokens of a step that count, after checking its rows. */
function countedTokens(s: ObjectiveStep, o: ObjectiveOptions, index: number): number[] {
  const T = s.now.length;
  const rows = { old: s.old, rollout: s.rollout, reference: s.reference, mask: s.mask };
  for (const [name, row] of Object.entries(rows))
    if (row && row.length !== T) throw unusable(`step ${index} has ${T} tokens but ${row.length} values of ${name}`);
  if (typeof s.advantage !== 'number' && s.advantage.length !== T)
    throw unusable(`step ${index} has ${T} tokens but ${s.advantage.length} advantages`);
  if (!Number.isFinite(s.weight) || s.weight < 0) throw unusable(`step ${index} has the weight ${s.weight}`);
  if (s.weight === 0) return [];
  if (s.term === 'policy' && o.klBeta > 0 && !s.reference)
    throw unusable(`step ${index} has no log-probs of the reference policy, and trainer.klBeta is ${o.klBeta}`);
  const hidden = (t: number): boolean =>
    (s.mask !== undefined && s.mask[t] === 0) ||
    (s.term === 'policy' &&
      o.unknownBehaviour === 'masked' &&
      s.rollout !== undefined &&
      !Number.isFinite(s.rollout[t]));
  const counted = Array.from({ length: T }, (_, t) => t).filter((t) => !hidden(t));
  for (const t of counted)
    for (const [name, row] of [['now', s.now] as const, ['old', s.old] as const, ['reference', s.reference] as const])
      if (row && !Number.isFinite(row[t]))
        throw unusable(`token ${t} of step ${index} has the log-prob ${row[t]} (${name})`);
  return counted;
}
const unusable = (what: string): StudioError =>
  new StudioError(
    'trainer.invalid',
    `This batch cannot be trained: ${what}.`,
    'The batch is kept. Check that the engine scores every target token; `dart-studio engine probe` says which part is wrong.',
  );

const pick = (row: ArrayLike<number>, tokens: readonly number[]): number[] => tokens.map((t) => row[t]!);
const advantageOf = (s: ObjectiveStep, t: number): number =>
  typeof s.advantage === 'number' ? s.advantage : s.advantage[t]!;

function imitationTerm(
  s: ObjectiveStep,
  tokens: readonly number[],
  share: number,
  out: Float64Array,
  to: Totals,
): void {
  for (const t of tokens) {
    to.imitation -= share * s.now[t]!;
    out[t] = -share;
  }
}

/**
 * Adds `share` * weight * loss of each token and its slope. The ratio of gspo belongs to all tokens of the step, so each
 * token's slope is the same sum over them.
 */
function policyTerm(
  s: ObjectiveStep,
  tokens: readonly number[],
  share: number,
  o: ObjectiveOptions,
  out: Float64Array,
  to: Totals,
): void {
  const band: ClipBand = { low: o.epsLow, high: o.epsHigh },
    old = s.old ?? s.now,
    weights = importanceWeights(s, tokens, old, o, to),
    whole = o.algorithm === 'gspo' ? gspoRatio(pick(s.now, tokens), pick(old, tokens)) : undefined;
  let wholeSlope = 0;
  tokens.forEach((t, i) => {
    const a = advantageOf(s, t),
      r = whole ?? ratioOf(s.now[t]!, old[t]!),
      w = share * weights[i]!,
      state = clipState(r, a, band, o.dualClip);
    to.ratios.push(r);
    if (state !== 'none') to.clipped[state]++;
    if (o.algorithm === 'cispo') {
      to.policy += w * cispo(r, a, s.now[t]!, band);
      out[t] = w * cispoSlope(r, a, band);
      return;
    }
    to.policy += w * dualClip(r, a, band, o.dualClip);
    const slope = w * dualClipSlope(r, a, band, o.dualClip);
    if (whole === undefined) out[t] = slope * ratioSlope(r, s.now[t]!, old[t]!);
    else wholeSlope += slope;
  });
  if (whole !== undefined)
    for (const t of tokens) out[t] = (wholeSlope * ratioSlope(whole, s.now[t]!, old[t]!)) / tokens.length;
}

/** Per counted token; 1 where the behaviour is not known. No gradient flows through them. */
function importanceWeights(
  s: ObjectiveStep,
  tokens: readonly number[],
  old: ArrayLike<number>,
  o: ObjectiveOptions,
  to: Totals,
): number[] {
  const { rollout } = s;
  if (!o.tis.enabled || !rollout) return tokens.map(() => 1);
  const known = tokens.filter((t) => Number.isFinite(rollout[t])),
    roll = pick(rollout, known),
    before = pick(old, known);
  const own =
    o.tis.level === 'token'
      ? tisToken(before, roll, o.tis.cap)
      : new Array<number>(known.length).fill(tisSequence(before, roll, o.tis.cap));
  for (const w of own) to.importanceWeights.push(w);
  const byToken = new Map(known.map((t, i) => [t, own[i]!]));
  return tokens.map((t) => byToken.get(t) ?? 1);
}

function klPenalty(
  s: ObjectiveStep,
  tokens: readonly number[],
  share: number,
  beta: number,
  out: Float64Array,
  to: Totals,
): void {
  const ref = s.reference!;
  for (const t of tokens) {
    to.kl += share * klTerm(s.now[t]!, ref[t]!);
    out[t]! += share * beta * klSlope(s.now[t]!, ref[t]!);
  }
}
