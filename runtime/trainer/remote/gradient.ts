import { nextTurn } from '../../concurrency/turns.js';
import { id } from '../../domain/index.js';
import { objective, type ObjectiveOptions, type ObjectiveResult, type ObjectiveStep } from '../objective/objective.js';
import { carried, signedWeights, type Carrier, type Reduction } from '../objective/signedWeights.js';
import { inRequests, type RequestLimits } from './chunks.js';
import type { RemoteModel } from './client.js';
import { datumOf, inSlices, prepared, scored, type Prepared } from './datums.js';
import type { TokenSequence } from './sample.js';
import { logprobRows, type Datum, type ForwardBackwardOutput } from './wire/index.js';

/** Scores samples on a server and gives it the gradient of the objective, as weights of a loss it knows. */

/** How a server takes a gradient; the probe finds it. */
export interface Carriage {
  readonly carrier: Carrier;
  readonly reduction: Reduction;
}

/** Rows of log-probs of all targets, one a datum, in the order of the samples' parts. */
export async function score(
  model: RemoteModel,
  samples: readonly Prepared[],
  signal: AbortSignal,
): Promise<Float32Array[]> {
  if (samples.length === 0) return [];
  const rows = await model.forward(
    samples.flatMap((s) => s.parts.map(scored)),
    signal,
  );
  await nextTurn();
  return rows;
}
/** The log-probs of each sample's own tokens out of the rows of its datums. */
export function ownTokens(samples: readonly Prepared[], rows: readonly Float32Array[]): Float32Array[] {
  let next = 0;
  return samples.map((s) => {
    const out = new Float32Array(s.tokens);
    for (const p of s.parts) out.set(rows[next++]!.subarray(p.span.start, p.span.start + p.length), p.offset);
    return out;
  });
}
/** log p of the tokens of one answer. */
export async function scoreOf(model: RemoteModel, s: TokenSequence, signal: AbortSignal): Promise<Float32Array> {
  const asked = prepared([
    { rollout: id('scored'), step: 0, kind: 'imitation', advantage: 0, weight: 1, sequences: [s] },
  ]);
  return ownTokens(asked, await score(model, asked, signal))[0]!;
}

export interface Slope {
  readonly result: Omit<ObjectiveResult, 'gradient'>;
  /** d loss / d log p of each sample's tokens. */
  readonly gradient: readonly Float64Array[];
}
/**
 * The objective over samples, slice by slice. It weighs a slice's steps among themselves, so each slice counts by its
 * share of the whole weight.
 */
export async function slopeOf(samples: readonly Prepared[], o: ObjectiveOptions): Promise<Slope> {
  const weightOf = (of: readonly Prepared[]): number =>
      of.reduce((n, s) => n + (counts(s, o) ? s.sample.weight : 0), 0),
    all = weightOf(samples),
    total = { loss: 0, policyLoss: 0, kl: 0, imitationLoss: 0 },
    clipped = { low: 0, high: 0, dual: 0 },
    ratios: number[] = [],
    importanceWeights: number[] = [],
    gradient: Float64Array[] = [];
  for (const slice of inSlices(samples)) {
    const r = objective(slice.map(stepOf), o),
      share = all > 0 ? weightOf(slice) / all : 0;
    for (const k of ['loss', 'policyLoss', 'kl', 'imitationLoss'] as const) total[k] += share * r[k];
    for (const k of ['low', 'high', 'dual'] as const) clipped[k] += r.clipped[k];
    for (const x of r.ratios) ratios.push(x);
    for (const x of r.importanceWeights) importanceWeights.push(x);
    for (const g of r.gradient) gradient.push(g.map((x) => share * x));
    await nextTurn();
  }
  return { result: { ...total, clipped, ratios, importanceWeights }, gradient };
}
const counts = (s: Prepared, o: ObjectiveOptions): boolean =>
  s.sample.weight !== 0 &&
  !(s.rollout && o.unknownBehaviour === 'masked' && s.sample.kind === 'policy' && !s.rollout.some(Number.isFinite));
/** Log-probs that are not asked for do not matter to an imitated step's gradient. */
const stepOf = (s: Prepared): ObjectiveStep => ({
  term: s.sample.kind,
  now: s.now ?? new Float32Array(s.tokens),
  old: s.old,
  rollout: s.rollout,
  reference: s.reference,
  advantage: s.sample.advantage,
  weight: s.sample.weight,
  coefficient: s.sample.coefficient,
});

/**
 * The datums of a gradient. `rows` are the server's own log-probs of all targets with the present weights; the carrier
 * `importance_sampling` needs them.
 */
export async function gradientDatums(
  samples: readonly Prepared[],
  gradient: readonly Float64Array[],
  c: Carriage,
  rows: readonly Float32Array[] | undefined,
  limits: RequestLimits,
): Promise<Datum[]> {
  const make = (p: Prepared['parts'][number], g: Float64Array, i: number, datums: number): Datum =>
    datumOf(p, carried(c.carrier, signedWeights(g, p.span, c.reduction, datums), rows?.[i]));
  const parts = samples.flatMap((s, i) =>
    s.parts.map((p) => ({ p, g: gradient[i]!.subarray(p.offset, p.offset + p.length) })),
  );
  const alone: Datum[] = [];
  for (const [i, { p, g }] of parts.entries()) {
    alone.push(make(p, g, i, 1));
    if (i % 16 === 15) await nextTurn();
  }
  if (c.reduction.overDatums === 'sum') return alone;
  // The server divides by the number of datums in a request, which depends on sizes alone.
  const sizes = inRequests(alone, limits).flatMap((r) => r.map(() => r.length));
  return parts.map(({ p, g }, i) => make(p, g, i, sizes[i]!));
}

/** Own log-probs out of the result of a training pass; undefined where the server gives none there. */
export function passedTokens(samples: readonly Prepared[], out: ForwardBackwardOutput): Float32Array[] | undefined {
  const targets = samples.flatMap((s) => s.parts.map((p) => p.targets.length));
  if (out.outputs.some((d) => !d.get('logprobs'))) return undefined;
  return ownTokens(samples, logprobRows(out, targets));
}
