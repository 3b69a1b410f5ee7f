import { add, div, minimum, mul, reshape, sqrt, sub, sumAll } from '../graph/elementwise.js';
import { Graph, type Tensor } from '../graph/graph.js';
import { scalarInputs } from '../graph/structure.js';

/** Scalars of the optimizer step; c1 = 1 - beta1^t and c2 = 1 - beta2^t. */
export const ADAM_PARAMS = ['lr', 'beta1', 'beta2', 'epsilon', 'weightDecay', 'gradClip', 'c1', 'c2'] as const;

/**
 * AdamW with clipping by the global norm. Inputs theta, m, v, gradient, decay [n], adamParams; outputs theta2, m2, v2 [n]
 * and norm [1]. The gradient is scaled by min(1, clip / (norm + 1e-6)), as PyTorch's clip_grad_norm_ does.
 */
export function adamGraph(n: number, float: 'f32' | 'f64' = 'f32'): Graph {
  const g = new Graph(float),
    vec = (name: string): Tensor => g.input(name, float, [n]);
  const k = scalarInputs(g, 'adamParams', ADAM_PARAMS);
  const theta = vec('theta'),
    raw = vec('gradient'),
    one = g.scalar(1);
  const norm = sqrt(sumAll(mul(raw, raw)));
  const d = mul(raw, minimum(div(k.gradClip, add(norm, 1e-6)), 1));
  const m = add(mul(vec('m'), k.beta1), mul(d, sub(one, k.beta1)));
  const v = add(mul(vec('v'), k.beta2), mul(mul(d, d), sub(one, k.beta2)));
  const step = add(div(div(m, k.c1), add(sqrt(div(v, k.c2)), k.epsilon)), mul(mul(vec('decay'), theta), k.weightDecay));
  g.output('theta2', sub(theta, mul(step, k.lr)));
  g.output('m2', m);
  g.output('v2', v);
  g.output('norm', reshape(norm, [1]));
  return g;
}
