import type { PolicyVersion } from '../../domain/index.js';
import { correctionMetrics, HISTOGRAM_BINS, tisToken } from '../objective/corrections.js';
import { k1, k3, klTerm } from '../objective/kl.js';
import { clipState, gspoRatio, MAX_LOG_RATIO, ratioOf } from '../objective/policyLoss.js';
import type { UpdateReport } from '../types.js';
import type { OptimizerStep } from './optimizer.js';
import type { TrainerOptions } from './options.js';
import type { PackedState, Slot } from './packing.js';

/** How often an update went through its batch: whole passes, and the optimizer steps that were to be made. */
export interface Passes {
  readonly epochs: number;
  readonly planned: number;
  readonly reuseEss: number;
}
/** Collects what one call of the trainer did, optimizer step by optimizer step, into an UpdateReport. */
export class ReportBuilder {
  readonly #o: TrainerOptions;
  #steps = 0;
  #skipped = 0;
  #gradNorm = 0;
  #loss = 0;
  #policyLoss = 0;
  #imitationLoss = 0;
  #lr = 0;
  #entropy = 0;
  #entropies = 0;
  #ratios = 0;
  #ratioSum = 0;
  #ratioMax = 0;
  #low = 0;
  #high = 0;
  #dual = 0;
  #refKl = 0;
  #passes: Passes = { epochs: 1, planned: 0, reuseEss: 1 };
  #oldKl = NaN;

  constructor(o: TrainerOptions) {
    this.#o = o;
  }

  /** `parts` = [loss, policy, imitation, kl, bonus] summed over the step's micro-batches; `lr` its learning rate. */
  step(
    states: readonly PackedState[],
    done: Pick<OptimizerStep, 'parts' | 'norm' | 'applied'> & { readonly lr: number },
    withReference: boolean,
  ): void {
    this.#steps++;
    if (!done.applied) {
      this.#skipped++;
      return;
    }
    this.#lr += done.lr;
    this.#gradNorm += done.norm;
    this.#loss += done.parts[0]!;
    this.#policyLoss += done.parts[1]!;
    this.#imitationLoss += done.parts[2]!;
    for (const p of states) {
      const own = p.slots.filter((s) => s.term === 'policy');
      for (const s of own) this.#slot(s, withReference);
      // How sure it is of what others did, imitated or injected, says nothing about how it explores.
      if (!own.some((s) => s.rollout)) continue;
      this.#entropy += p.entropy;
      this.#entropies++;
    }
  }
  passes(p: Passes): void {
    this.#passes = p;
  }
  /** KL to the policy before the update in a forward pass; a minibatch without own samples says nothing. */
  moved(kl: number): void {
    if (!Number.isNaN(kl)) this.#oldKl = kl;
  }
  #slot(s: Slot, withReference: boolean): void {
    const o = this.#o,
      band = { low: o.epsLow, high: o.epsHigh };
    const whole =
      o.algorithm === 'gspo' ? gspoRatio(s.now.subarray(0, s.tokens), s.old.subarray(0, s.tokens)) : undefined;
    for (let t = 0; t < s.tokens; t++) {
      const r = whole ?? ratioOf(s.now[t]!, s.old[t]!);
      this.#ratios++;
      this.#ratioSum += r;
      this.#ratioMax = Math.max(this.#ratioMax, r);
      const c = clipState(r, s.advantage, band, o.dualClip);
      if (c === 'low') this.#low++;
      else if (c === 'high') this.#high++;
      else if (c === 'dual') this.#dual++;
      if (withReference) this.#refKl += klTerm(s.now[t]!, s.ref[t]!);
    }
  }

  /** `batch`: number of samples in the batch; with it the report has a weight for each. */
  build(
    version: PolicyVersion,
    ms: number,
    samples: number,
    states: readonly PackedState[],
    batch?: number,
  ): UpdateReport {
    const { weights, sampleWeights, kl1, kl3, tokens } = againstRollouts(this.#o, states, batch),
      tis = correctionMetrics(weights, this.#o.tis.cap);
    const done = Math.max(1, this.#steps - this.#skipped),
      per = (x: number, n: number): number => (n === 0 ? 0 : x / n);
    return {
      version,
      ms,
      samples,
      tokens: states.reduce((n, p) => n + p.slots.reduce((m, s) => m + s.tokens, 0), 0),
      states: states.length,
      optimizerSteps: this.#steps - this.#skipped,
      plannedSteps: this.#passes.planned,
      epochs: this.#passes.epochs,
      reuseEss: this.#passes.reuseEss,
      lr: this.#steps > this.#skipped ? this.#lr / done : NaN,
      loss: this.#loss / done,
      policyLoss: this.#policyLoss / done,
      imitationLoss: this.#imitationLoss / done,
      entropy: this.#entropies === 0 ? NaN : this.#entropy / this.#entropies,
      klK1: per(kl1, tokens),
      klK3: per(kl3, tokens),
      refKl: per(this.#refKl, this.#ratios),
      oldKl: this.#oldKl,
      ratioMean: this.#ratios === 0 ? 1 : this.#ratioSum / this.#ratios,
      ratioMax: this.#ratios === 0 ? 1 : this.#ratioMax,
      clipLow: per(this.#low, this.#ratios),
      clipHigh: per(this.#high, this.#ratios),
      dualClip: per(this.#dual, this.#ratios),
      tisMean: tis.mean,
      tisCapped: tis.bounded,
      ess: tis.ess,
      tisHistogram: weights.length > 0 ? tis.histogram : new Array<number>(HISTOGRAM_BINS).fill(0),
      gradNorm: this.#gradNorm / done,
      skippedNonFinite: this.#skipped,
      sampleWeights,
    };
  }
}

interface AgainstRollouts {
  /** Importance weight of every token with known rollout log-probs. */
  readonly weights: readonly number[];
  /** Mean of them per sample of the batch, NaN where there is none. */
  readonly sampleWeights: Float32Array | undefined;
  /** Sums of the k1 and k3 estimators of KL(train || rollout) over `tokens` tokens. */
  readonly kl1: number;
  readonly kl3: number;
  readonly tokens: number;
}

/**
 * Compares the policy before the update with the one that rolled out, over all tokens with known rollout log-probs
 * (runtime/trainer/README.md#truncated-importance-sampling).
 */
function againstRollouts(
  o: TrainerOptions,
  states: readonly PackedState[],
  batch: number | undefined,
): AgainstRollouts {
  const weights: number[] = [],
    sampleWeights = batch === undefined ? undefined : new Float32Array(batch).fill(NaN);
  let kl1 = 0,
    kl3 = 0,
    tokens = 0;
  for (const p of states)
    for (const s of p.slots) {
      if (s.term !== 'policy') continue;
      if (!s.rollout) {
        // A demonstration has no behaviour log-probs, so its weight is 1 (runtime/data/README.md#experience-pool).
        if (sampleWeights) sampleWeights[s.sample] = 1;
        continue;
      }
      const old = s.old.subarray(0, s.tokens),
        own = tisToken(old, s.rollout, o.tis.cap);
      weights.push(...own);
      if (sampleWeights) sampleWeights[s.sample] = own.reduce((a, w) => a + w, 0) / own.length;
      for (let t = 0; t < s.tokens; t++) {
        const x = s.rollout[t]! - old[t]!;
        kl1 += k1(x);
        kl3 += k3(Math.max(-MAX_LOG_RATIO, Math.min(MAX_LOG_RATIO, x)));
        tokens++;
      }
    }
  return { weights, sampleWeights, kl1, kl3, tokens };
}
