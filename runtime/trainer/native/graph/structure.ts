import { recordOf } from '../../../domain/index.js';
import { reshape } from './elementwise.js';
import type { Graph, Tensor } from './graph.js';

/** Operators that move values: transpose, concat, split, slice and pad. */

export function transpose(x: Tensor, perm: readonly number[]): Tensor {
  const inverse = perm.map((_, i) => perm.indexOf(i));
  return x.graph.node1(
    'Transpose',
    [x],
    perm.map((p) => x.shape[p]!),
    { dtype: x.dtype, attributes: { perm }, vjp: (g) => [transpose(g, inverse)] },
  );
}

export function concat(xs: readonly Tensor[], axis: number): Tensor {
  const first = xs[0]!;
  const sizes = xs.map((x) => x.shape[axis]!);
  const shape = first.shape.map((d, i) => (i === axis ? sizes.reduce((a, b) => a + b, 0) : d));
  return first.graph.node1('Concat', xs, shape, {
    dtype: first.dtype,
    attributes: { axis },
    vjp: (g) => split(g, sizes, axis),
  });
}

export function split(x: Tensor, sizes: readonly number[], axis: number): readonly Tensor[] {
  return x.graph.node(
    'Split',
    [x, x.graph.ints([...sizes])],
    sizes.map((s) => ({ dtype: x.dtype, shape: x.shape.map((d, i) => (i === axis ? s : d)) })),
    { axis },
    (gs) => [concat(gs, axis)],
  );
}

/** One input [n] as n named scalars. */
export function scalarInputs<K extends string>(g: Graph, name: string, keys: readonly K[]): Record<K, Tensor> {
  const parts = split(
    g.input(name, g.float, [keys.length]),
    keys.map(() => 1),
    0,
  );
  return recordOf(keys, (_, i) => reshape(parts[i]!, []));
}
/** Elements [from, to) of one axis. */
export function slice(x: Tensor, axis: number, from: number, to: number): Tensor {
  const g = x.graph;
  return g.node1(
    'Slice',
    [x, g.ints([from]), g.ints([to]), g.ints([axis])],
    x.shape.map((d, i) => (i === axis ? to - from : d)),
    {
      dtype: x.dtype,
      vjp: (dy) => [
        pad(
          dy,
          x.shape.map((_, i) => (i === axis ? from : 0)),
          x.shape.map((d, i) => (i === axis ? d - to : 0)),
        ),
      ],
    },
  );
}

/** Zeros before and after each axis. */
export function pad(x: Tensor, before: readonly number[], after: readonly number[]): Tensor {
  const shape = x.shape.map((d, i) => before[i]! + d + after[i]!);
  return x.graph.node1('Pad', [x, x.graph.ints([...before, ...after])], shape, {
    dtype: x.dtype,
    vjp: (g) => [
      before.reduce((acc, b, i) => (b === 0 && after[i] === 0 ? acc : slice(acc, i, b, b + x.shape[i]!)), g),
    ],
  });
}
