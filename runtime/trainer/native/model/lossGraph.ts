import { HEADS, HEADS_OF_TYPE, recordOf, seenText, type EmbeddedPolicySpec, type Head } from '../../../domain/index.js';
import { gradients } from '../graph/autodiff.js';
import {
  add,
  cast,
  clamp,
  div,
  equal,
  exp,
  expand,
  less,
  maximum,
  minimum,
  mul,
  neg,
  reshape,
  stopGradient,
  sub,
  sum,
  sumAll,
  where,
  type Value,
} from '../graph/elementwise.js';
import { gatherElements } from '../graph/gather.js';
import { Graph, type Tensor } from '../graph/graph.js';
import { matmul } from '../graph/linear.js';
import { entropyOf, logSoftmax } from '../graph/norm.js';
import { concat, scalarInputs, slice } from '../graph/structure.js';
import type { TrainerOptions } from '../options.js';
import { unpack } from './params.js';
import { policyLogits, type PolicyModel } from './policyGraph.js';

/** Choices per action at most: type and two heads. */
export const TOKENS = 3;
/** Scalars of the loss, in the order of the `lossParams` input. */
export const LOSS_PARAMS = ['epsLow', 'epsHigh', 'dualClip', 'tisCap', 'klBeta', 'temperature'] as const;
/** Bounds on log-ratios and on the KL estimate (runtime/trainer/README.md#policy-gradient). */
const MAX_LOG_RATIO = 20,
  MAX_KL = 10;

export interface GradVariant {
  readonly algorithm: TrainerOptions['algorithm'];
  /** Truncated importance weights. */
  readonly tis: boolean;
  /** The first step of an update: the old policy is this one, so its log-probs need no forward pass of their own. */
  readonly fresh: boolean;
  readonly reference: boolean;
}

interface Scored {
  readonly logprobs: Tensor;
  readonly entropy: Tensor;
}

/**
 * log p of the chosen ids, [b, k, 3], and the entropy of the whole decision, [b]: H(type) + sum over types of p(type) x
 * H(heads that the type uses), and where a text is typed p(it is read) x H(from where).
 */
function score(
  m: PolicyModel,
  params: (n: string) => Tensor,
  g: Graph,
  b: number,
  k: number,
  temperature: Tensor,
): Scored {
  const logits = policyLogits(m, params, g, b);
  const logp = recordOf(HEADS, (h) => logSoftmax(div(logits[h], temperature)));
  const chosen = gatherElements(
    concat(
      HEADS.map((h) => logp[h]),
      1,
    ),
    cast(g.input('choices', 'i32', [b, k * TOKENS]), 'i64'),
  );
  return { logprobs: reshape(chosen, [b, k, TOKENS]), entropy: decisionEntropy(m.spec, logp) };
}

function decisionEntropy(spec: EmbeddedPolicySpec, logp: Record<Head, Tensor>): Tensor {
  const b = logp.type.shape[0]!,
    further = HEADS.filter((h) => h !== 'type'),
    g = logp.type.graph;
  const asks = spec.types.flatMap((t) => further.map((h) => (HEADS_OF_TYPE[t].includes(h) ? 1 : 0)));
  const each = concat(
    further.map((h) => reshape(entropyOf(logp[h]), [b, 1])),
    1,
  );
  const weight = matmul(exp(logp.type), g.floats(asks, [spec.types.length, further.length]));
  const all = add(entropyOf(logp.type), sum(mul(weight, each), [1])),
    seen = seenText(spec);
  if (seen < 0) return all;
  const typed = matmul(
      exp(logp.type),
      g.floats(
        spec.types.map((t) => (HEADS_OF_TYPE[t].includes('text') ? 1 : 0)),
        [spec.types.length, 1],
      ),
    ),
    read = mul(reshape(typed, [b]), reshape(exp(slice(logp.text, 1, seen, seen + 1)), [b]));
  return add(all, mul(read, entropyOf(logp.cell2)));
}

/**
 * Log-probs only, for old and reference policies. Inputs theta, obs, instruction, history, choices i32[b,3k],
 * temperature [1]; outputs logprobs [b,k,3], entropy [b].
 */
export function scoreGraph(m: PolicyModel, b: number, k: number): Graph {
  const g = new Graph();
  const s = score(
    m,
    unpack(g.input('theta', g.float, [m.layout.total]), m.layout),
    g,
    b,
    k,
    reshape(g.input('temperature', g.float, [1]), []),
  );
  g.output('logprobs', s.logprobs);
  g.output('entropy', s.entropy);
  return g;
}

/**
 * Forward and backward of the objective (runtime/trainer/README.md#policy-gradient) for b states with k action slots
 * each.
 * Inputs beside those of scoreGraph: `accumulated` [P]; per slot and token [b,k,3]: `mask` (1 = a real choice),
 * `policyWeight` and `imitationWeight` (sample weight / normaliser / number of tokens, 0 where the term does not
 * apply), `rollout` (log-prob when sampled), `corrected` (1 = rollout is known),
 * `old` unless fresh, `ref` with a reference; `advantage` [b,k]; `entropyWeight` [b]; `lossParams`.
 * Outputs: `gradient` [P] = accumulated + d loss, `logprobs`, `entropy`, `parts` = [loss, policy, imitation, kl,
 * entropy bonus].
 */
export function gradGraph(m: PolicyModel, b: number, k: number, v: GradVariant, float: 'f32' | 'f64' = 'f32'): Graph {
  const g = new Graph(float),
    tokens = [b, k, TOKENS] as const;
  const theta = g.input('theta', float, [m.layout.total]);
  const param = scalarInputs(g, 'lossParams', LOSS_PARAMS);
  const { logprobs: lp, entropy } = score(m, unpack(theta, m.layout), g, b, k, param.temperature);
  const perToken = (name: string): Tensor => g.input(name, float, tokens);
  const mask = perToken('mask'),
    policyWeight = perToken('policyWeight'),
    imitationWeight = perToken('imitationWeight');
  const count = maximum(sum(mask, [2], true), 1);
  const old = v.fresh ? stopGradient(lp) : perToken('old');
  const advantage = expand(reshape(g.input('advantage', float, [b, k]), [b, k, 1]), tokens);

  const logRatio = mul(clamp(sub(lp, old), -MAX_LOG_RATIO, MAX_LOG_RATIO), mask);
  const ratio = exp(v.algorithm === 'gspo' ? expand(div(sum(logRatio, [2], true), count), tokens) : logRatio);
  const loss =
    v.algorithm === 'cispo'
      ? cispo(ratio, advantage, lp, param.epsLow, param.epsHigh)
      : clippedLoss(ratio, advantage, param.epsLow, param.epsHigh, param.dualClip);
  const weight = v.tis
    ? importanceWeight(stopGradient(old), perToken('rollout'), perToken('corrected'), mask, param.tisCap)
    : 1;
  const policy = sumAll(mul(mul(loss, weight), policyWeight));
  const imitation = neg(sumAll(mul(lp, imitationWeight)));
  const bonus = sumAll(mul(entropy, g.input('entropyWeight', float, [b])));
  const kl = v.reference ? sumAll(mul(k3(sub(perToken('ref'), lp)), policyWeight)) : g.scalar(0);
  const total = sub(add(add(policy, imitation), v.reference ? mul(kl, param.klBeta) : 0), bonus);

  const [d] = gradients(total, [theta]);
  g.output('gradient', add(g.input('accumulated', float, [m.layout.total]), d!));
  g.output('logprobs', lp);
  g.output('entropy', entropy);
  g.output(
    'parts',
    concat(
      [total, policy, imitation, kl, bonus].map((x) => reshape(x, [1])),
      0,
    ),
  );
  return g;
}

/** max(-rA, -clip(r)A), and min(that, -cA) where A < 0. */
function clippedLoss(r: Tensor, a: Tensor, lo: Tensor, hi: Tensor, c: Tensor): Tensor {
  const one = r.graph.scalar(1);
  const l = maximum(neg(mul(r, a)), neg(mul(clamp(r, sub(one, lo), add(one, hi)), a)));
  return where(less(a, 0), minimum(l, neg(mul(a, c))), l);
}
/** -sg(clip(r)) A log p. */
function cispo(r: Tensor, a: Tensor, lp: Tensor, lo: Tensor, hi: Tensor): Tensor {
  const one = r.graph.scalar(1);
  return neg(mul(mul(stopGradient(clamp(r, sub(one, lo), add(one, hi))), a), lp));
}
/** k3 = e^x - x - 1 with x = log(ref/pi). */
const k3 = (x: Tensor): Tensor => {
  const c = clamp(x, -MAX_LOG_RATIO, MAX_LOG_RATIO);
  return clamp(sub(sub(exp(c), c), 1), -MAX_KL, MAX_KL);
};

/** Weight min(pi_old / pi_rollout, cap) per token; 1 where the rollout's log-prob is unknown. */
function importanceWeight(old: Tensor, rollout: Tensor, known: Tensor, mask: Tensor, cap: Tensor): Value {
  const d = mul(mul(sub(old, rollout), known), mask);
  const w = minimum(exp(clamp(d, -MAX_LOG_RATIO, MAX_LOG_RATIO)), cap);
  return where(equal(known, known.graph.scalar(0)), 1, w);
}
