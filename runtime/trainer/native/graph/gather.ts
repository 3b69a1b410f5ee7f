import { cast, expand, reshape } from './elementwise.js';
import { sizeOf, type Tensor } from './graph.js';
import { gemm } from './linear.js';
import { concat } from './structure.js';

/** Look-ups by index; gradients add up where an index repeats. */

/**
 * Rows of a table [n, ...] by runtime indices (i32 or i64, any shape): result [...indices, ...]. In the gradient each
 * row is added where it came from: multiplying with a one-hot matrix takes nine times as long for the largest table.
 */
export function gatherRows(table: Tensor, indices: Tensor): Tensor {
  const g = table.graph,
    [n] = table.shape as [number],
    row = table.shape.slice(1),
    width = sizeOf(row),
    count = sizeOf(indices.shape);
  return g.node1('Gather', [table, indices], [...indices.shape, ...row], {
    attributes: { axis: 0 },
    vjp: (dy) => {
      const zeros = g.floats(new Float32Array(n * width), [n, width]),
        to = expand(cast(reshape(indices, [count, 1]), 'i64'), [count, width]),
        sum = g.node1('ScatterElements', [zeros, to, reshape(dy, [count, width])], [n, width], {
          attributes: { axis: 0, reduction: 'add' },
        });
      return [reshape(sum, table.shape), undefined];
    },
  });
}

/** Rows of a small table [n, w] by indices known when the graph is built, -1 for a row of zeros. */
export function gatherConst(table: Tensor, indices: readonly number[]): Tensor {
  const g = table.graph,
    [n, width] = table.shape as [number, number];
  const withZero = concat([table, g.floats(new Array<number>(width).fill(0), [1, width])], 0);
  return g.node1('Gather', [withZero, g.ints(indices.map((i) => (i < 0 ? n : i)))], [indices.length, width], {
    attributes: { axis: 0 },
    vjp: (dy) => {
      const hot = new Float32Array((n + 1) * indices.length);
      indices.forEach((i, k) => {
        if (i >= 0) hot[i * indices.length + k] = 1;
      });
      return [gemm(g.floats(hot, [n + 1, indices.length]), dy), undefined];
    },
  });
}

/** y[b, j] = x[b, indices[b, j]]; indices i64 [b, j]. Repeated indices add up in the gradient. */
export function gatherElements(x: Tensor, indices: Tensor): Tensor {
  const g = x.graph;
  return g.node1('GatherElements', [x, indices], indices.shape, {
    attributes: { axis: 1 },
    vjp: (dy) => {
      const zeros = g.floats(new Float32Array(sizeOf(x.shape)), x.shape);
      return [
        g.node1('ScatterElements', [zeros, indices, dy], x.shape, { attributes: { axis: 1, reduction: 'add' } }),
        undefined,
      ];
    },
  });
}
