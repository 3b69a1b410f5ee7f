import { add, mul, relu, reshape } from '../graph/elementwise.js';
import type { Tensor } from '../graph/graph.js';
import { linear, matmul } from '../graph/linear.js';
import { layerNorm, softmax } from '../graph/norm.js';
import { split, transpose } from '../graph/structure.js';
import type { ParamDef } from './params.js';

/** The parts of the networks: parameters by name, and the layers that use them. */

/** Gain of weights before a ReLU (He initialisation). */
export const HE = Math.SQRT2;

export type Params = (name: string) => Tensor;

export class ParamList {
  readonly defs: ParamDef[] = [];

  random(name: string, shape: readonly number[], std: number): void {
    this.defs.push({ name, shape, init: { std } });
  }

  constant(name: string, shape: readonly number[], fill: number): void {
    this.defs.push({ name, shape, init: { fill } });
  }

  /** Adds a list of values. */
  list(name: string, values: readonly number[]): void {
    this.defs.push({ name, shape: [values.length], init: { values } });
  }

  linear(name: string, from: number, to: number, gain = 1): void {
    this.random(`${name}.w`, [from, to], gain / Math.sqrt(from));
    this.constant(`${name}.b`, [to], 0);
  }

  norm(name: string, n: number): void {
    this.constant(`${name}.gain`, [n], 1);
    this.constant(`${name}.offset`, [n], 0);
  }
}

export const lin = (p: Params, name: string, x: Tensor): Tensor => linear(x, p(`${name}.w`), p(`${name}.b`));
export const norm = (p: Params, name: string, x: Tensor): Tensor =>
  layerNorm(x, p(`${name}.gain`), p(`${name}.offset`));

/** Parameters of a layer of self-attention and its MLP. */
export function transformerParams(d: ParamList, name: string, width: number): void {
  d.norm(`${name}.norm1`, width);
  d.linear(`${name}.qkv`, width, 3 * width);
  d.linear(`${name}.out`, width, width, 0.7);
  d.norm(`${name}.norm2`, width);
  d.linear(`${name}.up`, width, 2 * width, HE);
  d.linear(`${name}.down`, 2 * width, width, 0.7);
}

/** The layer over x[b*n, d]; `keyMask` [b, 1, 1, n] is added to the attention of every head. */
export function transformerLayer(p: Params, name: string, x: Tensor, keyMask: Tensor, heads: number): Tensor {
  const [b, , , n] = keyMask.shape as [number, number, number, number],
    d = x.shape[1]!,
    dh = d / heads;
  const qkv = reshape(lin(p, `${name}.qkv`, norm(p, `${name}.norm1`, x)), [b, n, 3, heads, dh]);
  const [q, k, v] = split(transpose(qkv, [2, 0, 3, 1, 4]), [1, 1, 1], 0).map((t) => reshape(t, [b, heads, n, dh])) as [
    Tensor,
    Tensor,
    Tensor,
  ];
  const weights = softmax(add(mul(matmul(q, transpose(k, [0, 1, 3, 2])), 1 / Math.sqrt(dh)), keyMask));
  const seen = reshape(transpose(matmul(weights, v), [0, 2, 1, 3]), [b * n, d]);
  const y = add(x, lin(p, `${name}.out`, seen));
  return add(y, lin(p, `${name}.down`, relu(lin(p, `${name}.up`, norm(p, `${name}.norm2`, y)))));
}
