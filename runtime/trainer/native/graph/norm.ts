import { add, div, exp, mean, mul, reshape, sqrt, sub, sum } from './elementwise.js';
import type { Graph, Tensor } from './graph.js';
import { gemm } from './linear.js';

/** Normalisations: ORT's fused forward; backward as few passes over the values as products allow. */

export const EPSILON = 1e-5;

/** Layer normalisation over the last axis of x[rows, c], gain and offset [c]. */
export function layerNorm(x: Tensor, gain: Tensor, offset: Tensor): Tensor {
  const g = x.graph,
    [rows, c] = x.shape as [number, number];
  const [y, mu, inv] =
    g.float === 'f32'
      ? (g.node(
          'LayerNormalization',
          [x, gain, offset],
          [{ shape: x.shape }, { shape: [rows, 1] }, { shape: [rows, 1] }],
          { axis: -1, epsilon: { float: EPSILON } },
        ) as [Tensor, Tensor, Tensor])
      : spelledOut(x, gain, offset);
  return g.node1('Identity', [y], x.shape, {
    sources: [x, gain, offset],
    vjp: (dy) => {
      const gains = reshape(gain, [c, 1]),
        centred = sub(x, mu),
        along = mul(dy, centred),
        share = mul(gemm(along, mul(gains, 1 / c), { counted: false }), mul(inv, inv)),
        d = gemm(dy, mul(gains, centring(g, c)), { counted: false }),
        ofGain = gemm(inv, along, { transA: true, counted: false });
      return [mul(sub(d, mul(centred, share)), inv), reshape(ofGain, [c]), sum(dy, [0])];
    },
  });
}
/** [c, c]: a row multiplied by it has lost its mean. */
const centring = (g: Graph, c: number): Tensor =>
  g.floats(
    Array.from({ length: c * c }, (_, i) => (i % (c + 1) === 0 ? 1 : 0) - 1 / c),
    [c, c],
  );
/** The norm in single operators, for f64: ORT's own operator returns its statistics in f32. */
function spelledOut(x: Tensor, gain: Tensor, offset: Tensor): [Tensor, Tensor, Tensor] {
  const mu = mean(x, [1], true),
    centred = sub(x, mu),
    inv = div(x.graph.scalar(1), sqrt(add(mean(mul(centred, centred), [1], true), EPSILON)));
  return [add(mul(mul(centred, inv), gain), offset), mu, inv];
}

/** Softmax over the last axis. */
export function softmax(x: Tensor): Tensor {
  const last = x.shape.length - 1;
  const y: Tensor = x.graph.node1('Softmax', [x], x.shape, {
    attributes: { axis: -1 },
    vjp: (g) => {
      const p = mul(g, y);
      return [sub(p, mul(y, sum(p, [last], true)))];
    },
  });
  return y;
}

/** Log-softmax over the last axis. */
export function logSoftmax(x: Tensor): Tensor {
  const last = x.shape.length - 1;
  const y: Tensor = x.graph.node1('LogSoftmax', [x], x.shape, {
    attributes: { axis: -1 },
    vjp: (g) => [sub(g, mul(exp(y), sum(g, [last], true)))],
  });
  return y;
}

/** Entropy of the distribution whose log-probabilities are on the last axis. */
export const entropyOf = (logp: Tensor): Tensor => mul(sum(mul(exp(logp), logp), [logp.shape.length - 1]), -1);
