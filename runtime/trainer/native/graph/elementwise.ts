import { sizeOf, type Tensor } from './graph.js';
import { ELEMENT_TYPE, type DType } from './onnxProto.js';

/** Elementwise operators with NumPy broadcasting, and reductions. Every one carries its vector-Jacobian product. */

export type Value = Tensor | number;
const lift = (like: Tensor, v: Value): Tensor => (typeof v === 'number' ? like.graph.scalar(v) : v);

function broadcastShape(a: readonly number[], b: readonly number[]): number[] {
  const n = Math.max(a.length, b.length);
  return Array.from({ length: n }, (_, i) => {
    const x = a[i - (n - a.length)] ?? 1,
      y = b[i - (n - b.length)] ?? 1;
    if (x !== y && x !== 1 && y !== 1) throw new RangeError(`shapes [${a}] and [${b}] do not broadcast`);
    return Math.max(x, y);
  });
}
/** Sums a gradient back to the shape it was broadcast from. */
function unbroadcast(g: Tensor, shape: readonly number[]): Tensor {
  const lead = g.shape.length - shape.length;
  const axes = g.shape.flatMap((d, i) => (i < lead || (shape[i - lead] === 1 && d !== 1) ? [i] : []));
  const s = axes.length === 0 ? g : sum(g, axes, true);
  return sizeOf(s.shape) === sizeOf(shape) && s.shape.join() !== shape.join() ? reshape(s, shape) : s;
}
function binary(op: string, a: Tensor, b: Tensor, da: (g: Tensor) => Tensor, db: (g: Tensor) => Tensor): Tensor {
  return a.graph.node1(op, [a, b], broadcastShape(a.shape, b.shape), {
    vjp: (g) => [unbroadcast(da(g), a.shape), unbroadcast(db(g), b.shape)],
  });
}

export function reshape(x: Tensor, shape: readonly number[]): Tensor {
  if (sizeOf(shape) !== sizeOf(x.shape)) throw new RangeError(`cannot reshape [${x.shape}] to [${shape}]`);
  if (shape.join() === x.shape.join()) return x;
  return x.graph.node1('Reshape', [x, x.graph.ints([...shape])], shape, {
    dtype: x.dtype,
    vjp: (g) => [reshape(g, x.shape)],
  });
}

export const add = (a: Tensor, b: Value): Tensor =>
  binary(
    'Add',
    a,
    lift(a, b),
    (g) => g,
    (g) => g,
  );
export const sub = (a: Tensor, b: Value): Tensor =>
  binary(
    'Sub',
    a,
    lift(a, b),
    (g) => g,
    (g) => neg(g),
  );
export function mul(a: Tensor, b: Value): Tensor {
  const y = lift(a, b);
  return binary(
    'Mul',
    a,
    y,
    (g) => mul(g, y),
    (g) => mul(g, a),
  );
}
export function div(a: Tensor, b: Value): Tensor {
  const y = lift(a, b);
  return binary(
    'Div',
    a,
    y,
    (g) => div(g, y),
    (g) => neg(div(mul(g, a), mul(y, y))),
  );
}
export function neg(x: Tensor): Tensor {
  return x.graph.node1('Neg', [x], x.shape, { vjp: (g) => [neg(g)] });
}
export function exp(x: Tensor): Tensor {
  const y: Tensor = x.graph.node1('Exp', [x], x.shape, { vjp: (g) => [mul(g, y)] });
  return y;
}
export function log(x: Tensor): Tensor {
  return x.graph.node1('Log', [x], x.shape, { vjp: (g) => [div(g, x)] });
}
export function sqrt(x: Tensor): Tensor {
  const y: Tensor = x.graph.node1('Sqrt', [x], x.shape, { vjp: (g) => [div(g, mul(y, 2))] });
  return y;
}
export function abs(x: Tensor): Tensor {
  return x.graph.node1('Abs', [x], x.shape, {
    // The gradient multiplies by the sign: where() takes several times as long.
    vjp: (g) => [mul(g, sub(mul(cast(greater(x, 0), x.graph.float), 2), 1))],
  });
}
export function relu(x: Tensor): Tensor {
  const y: Tensor = x.graph.node1('Relu', [x], x.shape, {
    // A product, as in abs().
    vjp: (g) => [mul(g, cast(greater(y, 0), g.graph.float))],
  });
  return y;
}

const compare = (op: string, a: Tensor, b: Value): Tensor => {
  const y = lift(a, b);
  return a.graph.node1(op, [a, y], broadcastShape(a.shape, y.shape), { dtype: 'bool' });
};
export const greater = (a: Tensor, b: Value): Tensor => compare('Greater', a, b);
export const less = (a: Tensor, b: Value): Tensor => compare('Less', a, b);
/** Exact equality; also of integers. */
export const equal = (a: Tensor, b: Tensor): Tensor => compare('Equal', a, b);

export function where(cond: Tensor, a: Value, b: Value): Tensor {
  const x = lift(cond, a),
    y = lift(cond, b);
  return cond.graph.node1('Where', [cond, x, y], broadcastShape(cond.shape, broadcastShape(x.shape, y.shape)), {
    vjp: (g) => [undefined, unbroadcast(where(cond, g, 0), x.shape), unbroadcast(where(cond, 0, g), y.shape)],
  });
}
/** Larger of two; at a tie the gradient goes to the first. */
export function maximum(a: Tensor, b: Value): Tensor {
  const y = lift(a, b);
  return where(less(a, y), y, a);
}
/** Smaller of two; at a tie the gradient goes to the first. */
export function minimum(a: Tensor, b: Value): Tensor {
  const y = lift(a, b);
  return where(greater(a, y), y, a);
}
/** Not below a number, in one pass over the values; for what is looked at alone: it has no gradient. */
export const atLeast = (x: Tensor, low: number): Tensor => x.graph.node1('Max', [x, lift(x, low)], x.shape);
/** Clamp into [lo, hi]; no gradient outside. The bounds may be scalar tensors. */
export const clamp = (x: Tensor, lo: Value, hi: Value): Tensor => minimum(maximum(x, lo), hi);

/** The value without its gradient. */
export const stopGradient = (x: Tensor): Tensor => x.graph.node1('Identity', [x], x.shape, { dtype: x.dtype });
/** Type conversion; carries no gradient (used on masks, indices and pixels). */
export const cast = (x: Tensor, dtype: DType): Tensor =>
  x.dtype === dtype ? x : x.graph.node1('Cast', [x], x.shape, { dtype, attributes: { to: ELEMENT_TYPE[dtype] } });

const without = (shape: readonly number[], axes: readonly number[], keep: boolean): number[] =>
  shape.flatMap((d, i) => (axes.includes(i) ? (keep ? [1] : []) : [d]));
export function sum(x: Tensor, axes: readonly number[], keep = false): Tensor {
  const kept = without(x.shape, axes, true);
  return x.graph.node1('ReduceSum', [x, x.graph.ints([...axes])], without(x.shape, axes, keep), {
    attributes: { keepdims: keep ? 1 : 0 },
    vjp: (g) => [expand(reshape(g, kept), x.shape)],
  });
}
export function mean(x: Tensor, axes: readonly number[], keep = false): Tensor {
  const kept = without(x.shape, axes, true),
    n = sizeOf(x.shape) / sizeOf(kept);
  return x.graph.node1('ReduceMean', [x, x.graph.ints([...axes])], without(x.shape, axes, keep), {
    attributes: { keepdims: keep ? 1 : 0 },
    vjp: (g) => [expand(reshape(mul(g, 1 / n), kept), x.shape)],
  });
}
export const sumAll = (x: Tensor): Tensor =>
  sum(
    x,
    x.shape.map((_, i) => i),
  );

/**
 * Largest along one axis (removed). Ties share the gradient equally: on flat screen areas all positions tie, and each
 * is an equal function of the weights.
 */
export function maxOver(x: Tensor, axis: number): Tensor {
  const kept = without(x.shape, [axis], true);
  const y: Tensor = x.graph.node1('ReduceMax', [x, x.graph.ints([axis])], without(x.shape, [axis], false), {
    attributes: { keepdims: 0 },
    vjp: (g) => {
      const hit = cast(equal(x, reshape(y, kept)), x.graph.float);
      return [mul(hit, div(reshape(g, kept), sum(hit, [axis], true)))];
    },
  });
  return y;
}

export function expand(x: Tensor, shape: readonly number[]): Tensor {
  if (x.shape.join() === shape.join()) return x;
  return x.graph.node1('Expand', [x, x.graph.ints([...shape])], shape, { vjp: (g) => [unbroadcast(g, x.shape)] });
}
