import type { PolicyVersion } from '../../domain/index.js';
import { nextTurn } from '../../concurrency/turns.js';
import { correctionMetrics, HISTOGRAM_BINS, sequenceRatio, tisSequence, tisToken } from '../objective/corrections.js';
import { k1, k3 } from '../objective/kl.js';
import type { ObjectiveOptions } from '../objective/objective.js';
import { clamp, MAX_LOG_RATIO } from '../objective/policyLoss.js';
import type { UpdateReport } from '../types.js';
import { inSlices, type Prepared } from './datums.js';
import type { Slope } from './gradient.js';

/** An optimizer step: what its gradient was made from, what the server says of it, and its learning rate. */
interface ReportedStep {
  readonly result: Slope['result'];
  readonly metrics: ReadonlyMap<string, number>;
  readonly lr: number;
}

/** Collects what one call of the trainer did, optimizer step by optimizer step. What a server does not say is NaN. */
export class RemoteReport {
  readonly #o: ObjectiveOptions;
  #steps = 0;
  #skipped = 0;
  #lr = 0;
  #gradNorm = 0;
  #loss = 0;
  #policyLoss = 0;
  #imitationLoss = 0;
  #kl = 0;
  #ratios = 0;
  #ratioSum = 0;
  #ratioMax = 0;
  #oldKl = NaN;
  readonly #clipped = { low: 0, high: 0, dual: 0 };
  constructor(o: ObjectiveOptions) {
    this.#o = o;
  }
  get steps(): number {
    return this.#steps;
  }

  step({ result: r, metrics, lr }: ReportedStep): void {
    const norm = gradientNorm(metrics);
    this.#steps++;
    // A gradient whose norm is reported but not finite is not applied.
    if (norm !== undefined && !Number.isFinite(norm)) this.#skipped++;
    this.#lr += lr;
    this.#gradNorm += norm ?? NaN;
    this.#loss += r.loss;
    this.#policyLoss += r.policyLoss;
    this.#imitationLoss += r.imitationLoss;
    this.#kl += r.kl;
    for (const x of r.ratios) {
      this.#ratioSum += x;
      this.#ratioMax = Math.max(this.#ratioMax, x);
    }
    this.#ratios += r.ratios.length;
    for (const k of ['low', 'high', 'dual'] as const) this.#clipped[k] += r.clipped[k];
  }

  /** KL to the policy before the update in a forward pass; a minibatch without own samples says nothing. */
  moved(kl: number): void {
    if (!Number.isNaN(kl)) this.#oldKl = kl;
  }

  /** `samples` have the log-probs of the end; `batch` = number of samples in the batch, with the masked ones. */
  async build(d: {
    readonly version: PolicyVersion;
    readonly ms: number;
    readonly samples: readonly Prepared[];
    readonly epochs: number;
    readonly planned?: number;
    readonly batch?: number;
  }): Promise<UpdateReport> {
    const against = await againstRollouts(this.#o, d.samples, d.batch),
      tis = correctionMetrics(against.weights, this.#o.tis.cap),
      done = Math.max(1, this.#steps),
      per = (x: number, n: number): number => (n === 0 ? 0 : x / n);
    return {
      version: d.version,
      ms: d.ms,
      samples: d.samples.length,
      tokens: d.samples.reduce((n, s) => n + s.tokens, 0),
      states: d.samples.reduce((n, s) => n + s.parts.length, 0),
      optimizerSteps: this.#steps - this.#skipped,
      plannedSteps: d.planned ?? 0,
      epochs: d.epochs,
      reuseEss: reuseEss(d.samples),
      lr: this.#steps === 0 ? NaN : this.#lr / this.#steps,
      loss: this.#loss / done,
      policyLoss: this.#policyLoss / done,
      imitationLoss: this.#imitationLoss / done,
      entropy: against.entropy,
      klK1: per(against.kl1, against.tokens),
      klK3: per(against.kl3, against.tokens),
      refKl: this.#kl / done,
      oldKl: this.#oldKl,
      ratioMean: this.#ratios === 0 ? 1 : this.#ratioSum / this.#ratios,
      ratioMax: this.#ratios === 0 ? 1 : this.#ratioMax,
      clipLow: per(this.#clipped.low, this.#ratios),
      clipHigh: per(this.#clipped.high, this.#ratios),
      dualClip: per(this.#clipped.dual, this.#ratios),
      tisMean: tis.mean,
      tisCapped: tis.bounded,
      ess: tis.ess,
      tisHistogram: against.weights.length > 0 ? tis.histogram : new Array<number>(HISTOGRAM_BINS).fill(0),
      gradNorm: this.#steps === 0 ? 0 : this.#gradNorm / done,
      skippedNonFinite: this.#skipped,
      sampleWeights: against.sampleWeights,
      tokenWeights: against.tokenWeights,
    };
  }
}

/** Norm of the gradient before clipping, under whatever name; undefined where the server does not say it. */
function gradientNorm(metrics: ReadonlyMap<string, number>): number | undefined {
  for (const [k, v] of metrics) if (/(^|[/:_.])grad(ient)?_norm(:\w+)?$/.test(k)) return v;
  return undefined;
}

/** Effective sample size / n of the policy samples as last seen against the policy before the update. */
export function reuseEss(samples: readonly Prepared[]): number {
  const weights = samples.flatMap((s) =>
    s.sample.kind === 'policy' && s.now && s.old ? [sequenceRatio(s.now, s.old)] : [],
  );
  return correctionMetrics(weights, 1).ess;
}

interface AgainstRollouts {
  readonly weights: number[];
  readonly sampleWeights: Float32Array | undefined;
  readonly tokenWeights: (Float32Array | undefined)[] | undefined;
  kl1: number;
  kl3: number;
  tokens: number;
  /** Mean -log p over sampled tokens, weighted by importance: an estimate of the entropy a token; NaN without any. */
  entropy: number;
}
/** Compares the policy before the update with the one that rolled out, over tokens with known rollout log-probs. */
async function againstRollouts(
  o: ObjectiveOptions,
  samples: readonly Prepared[],
  batch: number | undefined,
): Promise<AgainstRollouts> {
  const to: AgainstRollouts = {
    weights: [],
    sampleWeights: batch === undefined ? undefined : new Float32Array(batch).fill(NaN),
    tokenWeights: batch === undefined ? undefined : new Array<Float32Array | undefined>(batch).fill(undefined),
    kl1: 0,
    kl3: 0,
    tokens: 0,
    entropy: NaN,
  };
  let surprise = 0,
    weight = 0;
  for (const slice of inSlices(samples)) {
    for (const s of slice) {
      if (s.sample.kind !== 'policy' || !s.old) continue;
      const own = knownWeights(o, s);
      let sum = 0;
      for (const { t, w } of own) {
        const x = s.rollout![t]! - s.old[t]!;
        to.weights.push(w);
        to.kl1 += k1(x);
        to.kl3 += k3(clamp(x, -MAX_LOG_RATIO, MAX_LOG_RATIO));
        sum += w;
        surprise -= w * s.old[t]!;
        weight += w;
      }
      to.tokens += own.length;
      if (to.tokenWeights && own.length > 0) to.tokenWeights[s.index] = answerWeights(s, own);
      // Tokens whose behaviour is not known weigh 1, or are not trained on.
      const ones = s.rollout && o.unknownBehaviour === 'masked' ? 0 : s.tokens - own.length,
        counted = own.length + ones;
      if (to.sampleWeights) to.sampleWeights[s.index] = counted === 0 ? NaN : (sum + ones) / counted;
    }
    await nextTurn();
  }
  if (weight > 0) to.entropy = surprise / weight;
  return to;
}
/** Weights of the tokens of the step's own answer, which is its last sequence. */
function answerWeights(s: Prepared, known: readonly { readonly t: number; readonly w: number }[]): Float32Array {
  const answer = s.sample.sequences.at(-1)!.answer.length,
    out = new Float32Array(answer).fill(NaN);
  for (const { t, w } of known) if (t >= s.tokens - answer) out[t - (s.tokens - answer)] = w;
  return out;
}
function knownWeights(o: ObjectiveOptions, s: Prepared): { readonly t: number; readonly w: number }[] {
  const { rollout, old } = s;
  if (!rollout) return [];
  const known = Array.from(rollout.keys()).filter((t) => Number.isFinite(rollout[t])),
    before = known.map((t) => old![t]!),
    roll = known.map((t) => rollout[t]!);
  const weights =
    o.tis.level === 'token'
      ? tisToken(before, roll, o.tis.cap)
      : new Array<number>(known.length).fill(tisSequence(before, roll, o.tis.cap));
  return known.map((t, i) => ({ t, w: weights[i]! }));
}
