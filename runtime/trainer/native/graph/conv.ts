import { maxOver, reshape, sum } from './elementwise.js';
import { gatherConst } from './gather.js';
import { sizeOf, type NodeGradient, type Tensor } from './graph.js';
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

export interface ConvOptions {
  readonly dilation?: number;
  /** [n], added by the product itself. */
  readonly bias?: Tensor;
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

/** One Gemm: neighbourhoods [rows, taps*c] of a convolution's input with W [taps, c, n] (+ bias [n]). */
function overTaps(around: Tensor, w: Tensor, bias: Tensor | undefined, gradient: NodeGradient = {}): Tensor {
  const [taps, c, n] = w.shape as [number, number, number],
    rows = around.shape[0]!;
  return around.graph.node1('Gemm', [around, reshape(w, [taps * c, n]), ...given(bias)], [rows, n], {
    attributes: { transA: 0, transB: 0 },
    flops: 2 * rows * taps * c * n,
    ...gradient,
  });
}

/**
 * 3x3 convolution of cells [batch*rows*cols, c] with W [9, c, n] (+ bias [n]). Both gradients come of the neighbourhoods
 * of dY: dX is their product with the taps reversed and W transposed, dW that of X with them, taps reversed too. Those of
 * X are not kept for it: they are more than a processor's caches hold, and reading them again takes longer than the
 * product.
 */
export function conv3(x: Tensor, w: Tensor, s: Grid, { dilation = 1, bias }: ConvOptions = {}): Tensor {
  const [, c, n] = w.shape as [number, number, number];
  return overTaps(neighbourhoods(x, s, dilation), w, bias, {
    sources: [x, w, ...given(bias)],
    vjp: (dy) => {
      const around = neighbourhoods(dy, s, dilation),
        dw = reshape(gemm(x, around, { transA: true }), [c, 9, n]);
      return [
        overTaps(around, transpose(slice0Reversed(w), [0, 2, 1]), undefined),
        slice0Reversed(transpose(dw, [1, 0, 2])),
        ...given(bias && sum(dy, [0])),
      ];
    },
  });
}
const given = (x: Tensor | undefined): Tensor[] => (x ? [x] : []);
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

/** Which rows of the input each row of the output is made of. */
export interface Taps {
  readonly batch: number;
  /** Positions of one input, and of one output. */
  readonly from: number;
  readonly to: number;
  /** Input positions of each output in turn, as many for each; -1 stands for zeros. */
  readonly index: readonly number[];
}

/**
 * Taps of a `height` x `width` convolution over rows x cols positions, zeros outside, at a stride of each side. An even
 * side reaches one further down or right: as far on either side of the two positions that a stride of 2 stands for.
 */
export function tapsOf(s: Grid, height: number, width: number, strideY: number, strideX: number): Taps {
  const index: number[] = [],
    top = (height - 1) >> 1,
    left = (width - 1) >> 1;
  for (let y = 0; y < s.rows; y += strideY)
    for (let x = 0; x < s.cols; x += strideX)
      for (let t = 0; t < height * width; t++) {
        const yy = y + Math.floor(t / width) - top,
          xx = x + (t % width) - left;
        index.push(yy >= 0 && yy < s.rows && xx >= 0 && xx < s.cols ? yy * s.cols + xx : -1);
      }
  return { batch: s.batch, from: s.rows * s.cols, to: index.length / (height * width), index };
}

/** Rows of x[batch*n, c] picked by position, -1 for zeros: [batch, index.length, c]. No gradient of its own. */
function pick(x: Tensor, batch: number, n: number, index: readonly number[]): Tensor {
  const g = x.graph,
    c = x.shape[1]!,
    withZero = pad(reshape(x, [batch, n, c]), [0, 0, 0], [0, 1, 0]);
  return g.node1('Gather', [withZero, g.ints(index.map((i) => (i < 0 ? n : i)))], [batch, index.length, c], {
    attributes: { axis: 1 },
  });
}

/**
 * Any convolution of x[batch*from, c] with W [taps, c, n] (+ bias [n]), strides too: [batch*to, n]. The gradient of x gathers, for
 * each input position, what the positions that read it send back.
 */
export function convTaps(x: Tensor, w: Tensor, s: Taps, bias?: Tensor): Tensor {
  const [taps, c, n] = w.shape as [number, number, number],
    rows = s.batch * s.to;
  if (s.index.length !== s.to * taps) throw new RangeError(`${s.index.length} taps for ${s.to} places of ${taps} each`);
  const columns = reshape(pick(x, s.batch, s.from, s.index), [rows, taps * c]);
  return overTaps(columns, w, bias, {
    sources: [x, w, ...given(bias)],
    vjp: (dy) => {
      const readers = readersOf(s),
        most = readers.length / s.from,
        sent = reshape(gemm(dy, reshape(w, [taps * c, n]), { transB: true }), [rows * taps, c]),
        back = reshape(pick(sent, s.batch, s.to * taps, readers), [s.batch, s.from, most, c]);
      return [
        reshape(sum(back, [2]), [s.batch * s.from, c]),
        // The long side last: the other way round this product takes longer.
        reshape(transpose(gemm(dy, columns, { transA: true }), [1, 0]), w.shape),
        ...given(bias && sum(dy, [0])),
      ];
    },
  });
}
/** For each input position the entries of `index` that name it, filled up with -1 to the most there are. */
function readersOf(s: Taps): number[] {
  const of: number[][] = Array.from({ length: s.from }, () => []);
  s.index.forEach((from, k) => {
    if (from >= 0) of[from]!.push(k);
  });
  const most = Math.max(...of.map((x) => x.length));
  return of.flatMap((x) => [...x, ...new Array<number>(most - x.length).fill(-1)]);
}

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

/** Pixels [batch, rows*p, cols*q, c] as blocks [batch, rows, cols, p*q*c]. */
export function toBlocks(x: Tensor, p: number, q = p): Tensor {
  const [b, h, w, c] = x.shape as [number, number, number, number];
  return reshape(transpose(reshape(x, [b, h / p, p, w / q, q, c]), [0, 1, 3, 2, 4, 5]), [b, h / p, w / q, p * q * c]);
}

/**
 * Block-Toeplitz matrix of a k x k convolution W [k*k, cin*cout]: from a patch of 2p x 2q pixels (as overlappingPatches
 * orders them, the image padded by floor(k/2)) to the p x q outputs of its block: [cout*p*q, 4*p*q*cin]. Needs p + k -
 * 1 <= 2p, and the same of q.
 */
export function toeplitz(w: Tensor, k: number, p: number, cin: number, cout: number, q = p): Tensor {
  const index: number[] = [];
  for (let out = 0; out < p * q; out++)
    for (let block = 0; block < 4; block++)
      for (let inner = 0; inner < p * q; inner++) {
        const iy = Math.floor(block / 2) * p + Math.floor(inner / q),
          ix = (block % 2) * q + (inner % q);
        const ky = iy - Math.floor(out / q),
          kx = ix - (out % q);
        index.push(ky >= 0 && ky < k && kx >= 0 && kx < k ? ky * k + kx : -1);
      }
  const taps = reshape(gatherConst(w, index), [p * q, 4 * p * q, cin, cout]);
  return reshape(transpose(taps, [3, 0, 1, 2]), [cout * p * q, 4 * p * q * cin]);
}

/**
 * A k x k convolution followed by max-pooling of p rows by q columns, as one Gemm and one maximum: x[batch, rows*p,
 * cols*q, cin] -> [batch*rows*cols, cout]. `before` is applied to the convolution's outputs [cout, p*q, places]. Works channels-first inside, so that the maximum and its gradient run over long contiguous
 * rows (4 times faster in ORT than over 16 values).
 */
export function convPool(
  x: Tensor,
  w: Tensor,
  k: number,
  p: number,
  cout: number,
  { q = p, before = (t) => t }: { readonly q?: number; readonly before?: (t: Tensor) => Tensor } = {},
): Tensor {
  const [b, h, wd, cin] = x.shape as [number, number, number, number],
    edge = Math.floor(k / 2);
  const grid: Grid = { batch: b, rows: h / p, cols: wd / q },
    n = b * grid.rows * grid.cols;
  const padded = pad(x, [0, edge, edge, 0], [0, p - edge, q - edge, 0]);
  const all = gemm(toeplitz(w, k, p, cin, cout, q), overlappingPatches(toBlocks(padded, p, q), grid), { transB: true });
  return transpose(maxOver(before(reshape(all, [cout, p * q, n])), 1), [1, 0]);
}
