import { reshape, sum } from './elementwise.js';
import { sizeOf, type Tensor } from './graph.js';
import { transpose } from './structure.js';

/** Matrix products. */

export interface GemmOptions {
  readonly transA?: boolean;
  readonly transB?: boolean;
  /** [n] */
  readonly bias?: Tensor;
  /** False where the network does not ask for it: it is none of `gemmFlops`. */
  readonly counted?: boolean;
}

/** a[m,k] x b[k,n] (+ bias[n]), either side transposed on the fly. */
export function gemm(a: Tensor, b: Tensor, o: GemmOptions = {}): Tensor {
  const tA = o.transA ?? false,
    tB = o.transB ?? false;
  const [m, k] = (tA ? [a.shape[1], a.shape[0]] : a.shape) as [number, number];
  const [k2, n] = (tB ? [b.shape[1], b.shape[0]] : b.shape) as [number, number];
  if (k !== k2 || a.shape.length !== 2 || b.shape.length !== 2)
    throw new RangeError(`gemm of [${a.shape}]${tA ? '^T' : ''} and [${b.shape}]${tB ? '^T' : ''}`);
  return a.graph.node1('Gemm', o.bias ? [a, b, o.bias] : [a, b], [m, n], {
    attributes: { transA: tA ? 1 : 0, transB: tB ? 1 : 0 },
    flops: o.counted === false ? 0 : 2 * m * n * k,
    vjp: (g) => [
      tA ? gemm(b, g, { transA: tB, transB: true }) : gemm(g, b, { transB: !tB }),
      tB ? gemm(g, a, { transA: true, transB: tA }) : gemm(a, g, { transA: !tA }),
      ...(o.bias ? [sum(g, [0])] : []),
    ],
  });
}

/**
 * Batched product over equal leading axes: a[..., m, k] x b[..., k, n]. ORT fuses the transposes of the gradient into
 * the product.
 */
export function matmul(a: Tensor, b: Tensor): Tensor {
  const lead = a.shape.slice(0, -2),
    [m, k] = a.shape.slice(-2) as [number, number],
    [k2, n] = b.shape.slice(-2) as [number, number];
  if (k !== k2 || lead.join() !== b.shape.slice(0, -2).join())
    throw new RangeError(`matmul of [${a.shape}] and [${b.shape}]`);
  const swap = [...lead.map((_, i) => i), lead.length + 1, lead.length];
  return a.graph.node1('MatMul', [a, b], [...lead, m, n], {
    flops: 2 * sizeOf(lead) * m * n * k,
    vjp: (g) => [matmul(g, transpose(b, swap)), matmul(transpose(a, swap), g)],
  });
}

/** x[..., k] W[k, n] + bias. */
export function linear(x: Tensor, w: Tensor, bias?: Tensor): Tensor {
  const rows = sizeOf(x.shape) / x.shape.at(-1)!;
  return reshape(gemm(reshape(x, [rows, x.shape.at(-1)!]), w, bias ? { bias } : {}), [
    ...x.shape.slice(0, -1),
    w.shape[1]!,
  ]);
}
