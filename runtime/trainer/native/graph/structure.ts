import { cast, reshape } from './elementwise.js';
import { sizeOf, type Tensor } from './graph.js';
import { gemm } from './linear.js';

/** Operators that move values: transpose, concat, split, slice, pad and the gathers. */

export function transpose(x: Tensor, perm: readonly number[]): Tensor {
  const inverse = perm.map((_, i) => perm.indexOf(i));
  return x.graph.node1('Transpose', [x], perm.map((p) => x.shape[p]!), { dtype: x.dtype, attributes: { perm }, vjp: (g) => [transpose(g, inverse)] });
}

export function concat(xs: readonly Tensor[], axis: number): Tensor {
  const first = xs[0]!;
  const sizes = xs.map((x) => x.shape[axis]!);
  const shape = first.shape.map((d, i) => (i === axis ? sizes.reduce((a, b) => a + b, 0) : d));
  return first.graph.node1('Concat', xs, shape, { dtype: first.dtype, attributes: { axis }, vjp: (g) => split(g, sizes, axis) });
}

export function split(x: Tensor, sizes: readonly number[], axis: number): readonly Tensor[] {
  return x.graph.node('Split', [x, x.graph.ints([...sizes])], sizes.map((s) => ({ dtype: x.dtype, shape: x.shape.map((d, i) => (i === axis ? s : d)) })), { axis },
    (gs) => [concat(gs, axis)]);
}

/** Elements [from, to) of one axis. */
export function slice(x: Tensor, axis: number, from: number, to: number): Tensor {
  const g = x.graph;
  return g.node1('Slice', [x, g.ints([from]), g.ints([to]), g.ints([axis])], x.shape.map((d, i) => (i === axis ? to - from : d)),
    { dtype: x.dtype, vjp: (dy) => [pad(dy, x.shape.map((_, i) => (i === axis ? from : 0)), x.shape.map((d, i) => (i === axis ? d - to : 0)))] });
}

/** Zeros before and after each axis. */
export function pad(x: Tensor, before: readonly number[], after: readonly number[]): Tensor {
  const shape = x.shape.map((d, i) => before[i]! + d + after[i]!);
  return x.graph.node1('Pad', [x, x.graph.ints([...before, ...after])], shape, {
    dtype: x.dtype,
    vjp: (g) => [before.reduce((acc, b, i) => (b === 0 && after[i] === 0 ? acc : slice(acc, i, b, b + x.shape[i]!)), g)],
  });
}

/** Rows of a table [n, ...] by runtime indices (i32 or i64, any shape): result [...indices, ...]. The gradient is OneHot^T x grad, one Gemm. */
export function gatherRows(table: Tensor, indices: Tensor): Tensor {
  const g = table.graph, [n] = table.shape as [number], row = table.shape.slice(1), width = sizeOf(row), count = sizeOf(indices.shape);
  return g.node1('Gather', [table, indices], [...indices.shape, ...row], {
    attributes: { axis: 0 },
    vjp: (dy) => {
      const flat = cast(reshape(indices, [count]), 'i64');
      const hot = cast(g.node1('OneHot', [flat, g.ints([n]), g.constant(Float32Array.of(0, 1), [2], 'f32')], [count, n], { dtype: 'f32', attributes: { axis: -1 } }), g.float);
      return [reshape(gemm(hot, reshape(dy, [count, width]), { transA: true }), table.shape), undefined];
    },
  });
}

/** Rows of a small table [n, w] by indices known when the graph is built, -1 for a row of zeros. */
export function gatherConst(table: Tensor, indices: readonly number[]): Tensor {
  const g = table.graph, [n, width] = table.shape as [number, number];
  const withZero = concat([table, g.floats(new Array<number>(width).fill(0), [1, width])], 0);
  return g.node1('Gather', [withZero, g.ints(indices.map((i) => (i < 0 ? n : i)))], [indices.length, width], {
    attributes: { axis: 0 },
    vjp: (dy) => {
      const hot = new Float32Array((n + 1) * indices.length);
      indices.forEach((i, k) => { if (i >= 0) hot[i * indices.length + k] = 1; });
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
      return [g.node1('ScatterElements', [zeros, indices, dy], x.shape, { attributes: { axis: 1, reduction: 'add' } }), undefined];
    },
  });
}
