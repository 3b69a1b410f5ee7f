import type { ObjectiveOptions } from '../objective/objective.js';
import { tisToken } from '../objective/corrections.js';
import type { Loss } from './client.js';
import { datumOf, type Prepared } from './datums.js';
import type { Datum } from './wire/index.js';

/**
 * Objectives that a server's own `ppo` or `cispo` is: positively homogeneous in the advantage, so weights and shares
 * fold into it (runtime/trainer/README.md#policy-gradient).
 */
export interface ServerLoss {
  readonly loss: Loss;
  /** The policy in the ratio's denominator: the one that acted, or the one before the update. */
  readonly against: 'rollout' | 'old';
}

/** `single`: the batch is one optimizer step, so the ratio to the policy before it is 1 and nothing clips. */
export function serverLoss(samples: readonly Prepared[], o: ObjectiveOptions, single: boolean): ServerLoss | undefined {
  const policy = samples.filter((s) => s.sample.kind === 'policy');
  if (policy.length < samples.length || policy.length === 0 || o.klBeta > 0 || o.algorithm === 'gspo') return undefined;
  if (single) {
    const known = policy.every((s) => s.rollout?.every(Number.isFinite));
    if (!known || !o.tis.enabled || o.tis.level !== 'token') return undefined;
    return { against: 'rollout', loss: bounded('cispo', 0, o.tis.cap) };
  }
  if (o.tis.enabled && o.tis.level !== 'token') return undefined;
  if (policy.some((s) => !s.old || (s.rollout && o.unknownBehaviour === 'masked' && !s.rollout.every(Number.isFinite))))
    return undefined;
  if (o.algorithm === 'cispo') return { against: 'old', loss: bounded('cispo', 1 - o.epsLow, 1 + o.epsHigh) };
  // The dual clip has no form on a server; it acts on bad steps alone.
  return policy.every((s) => s.sample.advantage >= 0)
    ? { against: 'old', loss: bounded('ppo', 1 - o.epsLow, 1 + o.epsHigh) }
    : undefined;
}
const bounded = (name: string, low: number, high: number): Loss => ({
  name,
  config: { clip_low_threshold: low, clip_high_threshold: high },
});

/** Log-probs and advantages of each datum; the loss of a step's tokens counts omega / (T sum omega). */
export function serverLossDatums(samples: readonly Prepared[], l: ServerLoss, o: ObjectiveOptions): Datum[] {
  const norm = samples.reduce((n, s) => n + s.sample.weight, 0);
  return samples.flatMap((s) => {
    const a = (s.sample.advantage * s.sample.weight) / (norm * s.tokens),
      base = l.against === 'rollout' ? s.rollout! : s.old!,
      known = l.against === 'old' && o.tis.enabled && s.rollout,
      weights = known ? tisToken(s.old!, s.rollout!, o.tis.cap) : undefined;
    return s.parts.map((p) => {
      const logprobs = new Float32Array(p.targets.length),
        advantages = new Float32Array(p.targets.length);
      for (let t = 0; t < p.length; t++) {
        const w = weights?.[p.offset + t] ?? 1;
        logprobs[p.span.start + t] = base[p.offset + t]!;
        // A behaviour that is not known weighs 1.
        advantages[p.span.start + t] = a * (Number.isFinite(w) ? w : 1);
      }
      return datumOf(p, { logprobs, advantages });
    });
  });
}
