import { CLASSES } from '../../../domain/alphabet.js';
import { BANDS, type EmbeddedPolicySpec } from '../../../domain/index.js';
import { add, div, maxOver, mean, mul, reshape, sqrt, sub } from '../graph/elementwise.js';
import { gatherConst } from '../graph/gather.js';
import { Graph, type Tensor } from '../graph/graph.js';
import { gemm } from '../graph/linear.js';
import { EPSILON } from '../graph/norm.js';
import { transpose } from '../graph/structure.js';
import { ParamList, type Params } from './layers.js';
import { layoutOf, unpack } from './params.js';
import { READER_STEM, readRows, TOWER_SIZE, towerGrid, towerParams } from './tower.js';

/**
 * The reader (tower.ts) as replicas run it: bands of pixels, then text rows, so that of a screen only what has changed
 * is read again (policy/embedded/screenReader.ts). No gradient. Both graphs take the reader's parameters alone, `theta`
 * f32[R], the first of all.
 */

/**
 * The stem on k bands. Input `patches` f32[pixels, k*columns]: for every column of every band its block of pixels with
 * the edge around it, line by line, light -1 to 1, 0 outside the screen. Output `strokes` f32[k, columns, stem].
 */
export function bandsGraph(spec: EmbeddedPolicySpec, k: number): Graph {
  const g = new Graph(),
    { cols } = towerGrid(spec),
    { kernel, rows, cols: wide } = READER_STEM,
    { stem } = TOWER_SIZE,
    p = readersParams(g),
    window = windowMatrix(p('reader.stem.w'), kernel, rows, wide),
    patches = g.input('patches', 'f32', [window.shape[1]!, k * cols]);
  const all = reshape(gemm(window, patches), [stem, rows * wide, k * cols]),
    offset = reshape(p('reader.stem.b'), [stem, 1]);
  // The largest |x + b| of a block, with b added to its largest and smallest x alone.
  const strokes = larger(add(maxOver(all, 1), offset), sub(mul(offset, -1), minOver(all, 1)));
  g.output('strokes', reshape(transpose(normOverFirst(p, 'reader.stem.norm', strokes), [1, 0]), [k, cols, stem]));
  return g;
}

/**
 * k text rows. Input `bands` f32[k, BANDS, columns, stem]: what the stem says of the band above each, of its own two and
 * of the one below; zeros outside the screen. Outputs `features` f32[k, columns, width], `logits` f32[k, columns,
 * classes].
 */
export function rowsGraph(spec: EmbeddedPolicySpec, k: number): Graph {
  const g = new Graph(),
    { cols } = towerGrid(spec),
    { stem, width } = TOWER_SIZE,
    bands = g.input('bands', 'f32', [k, BANDS, cols, stem]),
    tall = reshape(transpose(bands, [0, 2, 1, 3]), [k * cols, BANDS * stem]),
    seen = readRows(readersParams(g), TOWER_SIZE, tall, { batch: k, rows: 1, cols });
  g.output('features', reshape(seen.features, [k, cols, width]));
  g.output('logits', reshape(seen.logits, [k, cols, CLASSES]));
  return g;
}

function readersParams(g: Graph): Params {
  const d = new ParamList();
  towerParams(d, TOWER_SIZE);
  const layout = layoutOf(d.defs);
  return unpack(g.input('theta', 'f32', [layout.total]), layout);
}

/**
 * Matrix of a k x k convolution W [k*k, n] on blocks of p x q pixels, from the (p+k-1) x (q+k-1) pixels that a block
 * sees: [n*p*q, window].
 */
function windowMatrix(w: Tensor, k: number, p: number, q: number): Tensor {
  const n = w.shape[1]!,
    [high, wide] = [p + k - 1, q + k - 1],
    index: number[] = [];
  for (let out = 0; out < p * q; out++)
    for (let at = 0; at < high * wide; at++) {
      const ky = Math.floor(at / wide) - Math.floor(out / q),
        kx = (at % wide) - (out % q);
      index.push(ky >= 0 && ky < k && kx >= 0 && kx < k ? ky * k + kx : -1);
    }
  const taps = reshape(gatherConst(w, index), [p * q, high * wide, n]);
  return reshape(transpose(taps, [2, 0, 1]), [n * p * q, high * wide]);
}

const larger = (a: Tensor, b: Tensor): Tensor => a.graph.node1('Max', [a, b], a.shape);
const minOver = (x: Tensor, axis: number): Tensor =>
  x.graph.node1(
    'ReduceMin',
    [x, x.graph.ints([axis])],
    x.shape.filter((_, i) => i !== axis),
    { attributes: { keepdims: 0 } },
  );

/** Layer normalisation over the first axis of x[c, n]: in ORT faster than over a last axis of 12. */
function normOverFirst(p: Params, name: string, x: Tensor): Tensor {
  const c = x.shape[0]!,
    column = (of: string): Tensor => reshape(p(`${name}.${of}`), [c, 1]),
    centred = sub(x, mean(x, [0], true)),
    spread = sqrt(add(mean(mul(centred, centred), [0], true), EPSILON));
  return add(mul(div(centred, spread), column('gain')), column('offset'));
}
