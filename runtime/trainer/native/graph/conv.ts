import { maxOver, reshape } from './elementwise.js';
import { gatherConst } from './gather.js';
import { sizeOf, type Tensor } from './graph.js';
import { gemm } from './linear.js';
import { concat, pad, slice, transpose } from './structure.js';

/**
 * Convolutions made of matrix products: in ORT their gradients are several times faster than Conv's own
 * (runtime/trainer/README.md#graphs).
 */

export interface Grid {
  readonly batch: number;
  readonly rows: number;
  readonly cols: number;
}

/**
 * Neighbourhoods of every cell, zeros outside: x[batch*rows*cols, c] -> [batch*rows*cols, 9c], taps in raster order at
 * the given dilation. No gradient of its own.
 */
function neighbourhoods(x: Tensor, s: Grid, dilation: number): Tensor {
  const g = x.graph,
    c = x.shape[1]!,
    n = s.rows * s.cols;
  const withZero = pad(reshape(x, [s.batch, n, c]), [0, 0, 0], [0, 1, 0]);
  const index: number[] = [];
  for (let y = 0; y < s.rows; y++)
    for (let x0 = 0; x0 < s.cols; x0++)
      for (let t = 0; t < 9; t++) {
        const yy = y + (Math.floor(t / 3) - 1) * dilation,
          xx = x0 + ((t % 3) - 1) * dilation;
        index.push(yy >= 0 && yy < s.rows && xx >= 0 && xx < s.cols ? yy * s.cols + xx : n);
      }
  return reshape(g.node1('Gather', [withZero, g.ints(index)], [s.batch, n * 9, c], { attributes: { axis: 1 } }), [
    s.batch * n,
    9 * c,
  ]);
}

/**
 * 3x3 convolution of cells [batch*rows*cols, c] with W [9, c, n]: one gather, one Gemm.
 * Gradient: dX is the same convolution of dY with the taps reversed and W transposed; dW reuses the gathered
 * neighbourhoods.
 */
export function conv3(x: Tensor, w: Tensor, s: Grid, dilation = 1): Tensor {
  const [, c, n] = w.shape as [number, number, number];
  const columns = neighbourhoods(x, s, dilation),
    rows = x.shape[0]!;
  return x.graph.node1('Gemm', [columns, reshape(w, [9 * c, n])], [rows, n], {
    attributes: { transA: 0, transB: 0 },
    flops: 2 * rows * 9 * c * n,
    sources: [x, w],
    vjp: (dy) => [
      conv3(dy, transpose(slice0Reversed(w), [0, 2, 1]), s, dilation),
      reshape(gemm(columns, dy, { transA: true }), w.shape),
    ],
  });
}
const slice0Reversed = (w: Tensor): Tensor => {
  const n = w.shape[0]!;
  return reshape(
    gatherConst(
      reshape(w, [n, sizeOf(w.shape) / n]),
      Array.from({ length: n }, (_, i) => n - 1 - i),
    ),
    w.shape,
  );
};

/**
 * Patches that overlap by half: x[batch, rows+1, cols+1, f] (blocks of pixels, flattened) -> [batch*rows*cols, 4f],
 * each the 2x2 blocks from its own on. With a block-Toeplitz matrix this turns "convolve, then max-pool" into one large
 * Gemm.
 */
export function overlappingPatches(x: Tensor, s: Grid): Tensor {
  const f = x.shape[3]!;
  const parts = [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ].map(([dy, dx]) => slice(slice(x, 1, dy!, dy! + s.rows), 2, dx!, dx! + s.cols));
  return reshape(concat(parts, 3), [s.batch * s.rows * s.cols, 4 * f]);
}

/** Pixels [batch, rows*p, cols*p, c] as blocks [batch, rows, cols, p*p*c]. */
export function toBlocks(x: Tensor, p: number): Tensor {
  const [b, h, w, c] = x.shape as [number, number, number, number];
  return reshape(transpose(reshape(x, [b, h / p, p, w / p, p, c]), [0, 1, 3, 2, 4, 5]), [b, h / p, w / p, p * p * c]);
}

/**
 * Block-Toeplitz matrix of a k x k convolution W [k*k, cin*cout]: from a patch of 2p x 2p pixels (as overlappingPatches
 * orders them, the image padded by floor(k/2)) to the p x p outputs of its block: [cout*p*p, 4*p*p*cin]. Needs p + k -
 * 1 <= 2p.
 */
export function toeplitz(w: Tensor, k: number, p: number, cin: number, cout: number): Tensor {
  const index: number[] = [];
  for (let out = 0; out < p * p; out++)
    for (let block = 0; block < 4; block++)
      for (let inner = 0; inner < p * p; inner++) {
        const iy = Math.floor(block / 2) * p + Math.floor(inner / p),
          ix = (block % 2) * p + (inner % p);
        const ky = iy - Math.floor(out / p),
          kx = ix - (out % p);
        index.push(ky >= 0 && ky < k && kx >= 0 && kx < k ? ky * k + kx : -1);
      }
  const taps = reshape(gatherConst(w, index), [p * p, 4 * p * p, cin, cout]);
  return reshape(transpose(taps, [3, 0, 1, 2]), [cout * p * p, 4 * p * p * cin]);
}

/**
 * A k x k convolution followed by p x p max-pooling, as one Gemm and one maximum: x[batch, rows*p, cols*p, cin] ->
 * [batch*rows*cols, cout]. Works channels-first inside, so that the maximum and its gradient run over long contiguous
 * rows (4 times faster in ORT than over 16 values).
 */
export function convPool(x: Tensor, w: Tensor, k: number, p: number, cout: number): Tensor {
  const [b, h, wd, cin] = x.shape as [number, number, number, number],
    edge = Math.floor(k / 2);
  const grid: Grid = { batch: b, rows: h / p, cols: wd / p },
    n = b * grid.rows * grid.cols;
  const padded = pad(x, [0, edge, edge, 0], [0, p - edge, p - edge, 0]);
  const all = gemm(toeplitz(w, k, p, cin, cout), overlappingPatches(toBlocks(padded, p), grid), { transB: true });
  return transpose(maxOver(reshape(all, [cout, p * p, n]), 1), [1, 0]);
}
