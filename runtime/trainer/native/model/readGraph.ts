import { gradients } from '../graph/autodiff.js';
import { add, cast, mul, neg, reshape, sumAll } from '../graph/elementwise.js';
import { gatherElements } from '../graph/gather.js';
import { Graph } from '../graph/graph.js';
import { logSoftmax } from '../graph/norm.js';
import { glyphRead, inputShapes } from './glyph.js';
import { unpack } from './params.js';
import type { PolicyModel } from './policyGraph.js';

/**
 * Forward and backward of the reading lesson for b screens, r words on each and t cells of each word's box: find the
 * word. Loss = -sum of weight x log softmax over cells. Inputs theta [P], accumulated [P], obs, buckets i32[b,r],
 * targets i32[b,r*t] (cells), weight [b*r,t] (0 where there is no word). Outputs `gradient` [P] = accumulated + d loss,
 * `loss`.
 */
export function readGraph(m: PolicyModel, b: number, r: number, t: number, float: 'f32' | 'f64' = 'f32'): Graph {
  const g = new Graph(float);
  const theta = g.input('theta', float, [m.layout.total]);
  const logits = glyphRead(
    unpack(theta, m.layout),
    m.spec,
    m.size,
    g.input('obs', 'u8', inputShapes(m.spec, b).obs),
    g.input('buckets', 'i32', [b, r]),
  );
  const logp = logSoftmax(reshape(logits, [b * r, logits.shape[2]!]));
  const chosen = gatherElements(logp, cast(reshape(g.input('targets', 'i32', [b, r * t]), [b * r, t]), 'i64'));
  const loss = neg(sumAll(mul(chosen, g.input('weight', float, [b * r, t]))));
  const [d] = gradients(loss, [theta]);
  g.output('gradient', add(g.input('accumulated', float, [m.layout.total]), d!));
  g.output('loss', reshape(loss, [1]));
  return g;
}
