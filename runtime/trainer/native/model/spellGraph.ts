import { gradients } from '../graph/autodiff.js';
import { add, cast, mul, neg, reshape, sumAll } from '../graph/elementwise.js';
import { gatherElements } from '../graph/gather.js';
import { Graph } from '../graph/graph.js';
import { logSoftmax } from '../graph/norm.js';
import { inputShapes } from './glyph.js';
import { unpack } from './params.js';
import type { PolicyModel } from './policyGraph.js';
import { TOWER_SIZE, towerForward, towerGrid } from './tower.js';

/**
 * Forward and backward of the reader's lesson for b screens: which character stands in every column. Loss = -sum of
 * weight x log softmax over classes. Inputs theta [P], accumulated [P], obs, targets i32[b*columns], weight [b*columns].
 * Outputs `gradient` [P] = accumulated + d loss, `loss`.
 */
export function spellGraph(m: PolicyModel, b: number, float: 'f32' | 'f64' = 'f32'): Graph {
  const g = new Graph(float),
    theta = g.input('theta', float, [m.layout.total]),
    { rows, cols } = towerGrid(m.spec),
    n = b * rows * cols;
  const { logits } = towerForward(
    unpack(theta, m.layout),
    m.spec,
    TOWER_SIZE,
    g.input('obs', 'u8', inputShapes(m.spec, b).obs),
  );
  const chosen = gatherElements(logSoftmax(logits), cast(reshape(g.input('targets', 'i32', [n]), [n, 1]), 'i64'));
  const loss = neg(sumAll(mul(reshape(chosen, [n]), g.input('weight', float, [n]))));
  const [d] = gradients(loss, [theta]);
  g.output('gradient', add(g.input('accumulated', float, [m.layout.total]), d!));
  g.output('loss', reshape(loss, [1]));
  return g;
}
